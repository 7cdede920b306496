package forward

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// request is the parsed body of a generation call.
type request struct {
	body    object
	model   string
	answers int64 // requested number of answers
	limit   int64 // output tokens for each answer; 0 if the body sets none
	minimum int64 // the limit must be greater (Anthropic's thinking budget)

	limits []string // members that limit the output; if all are missing, the first is added
	config string   // member of the body whose object has the limits; empty means the body itself
	inner  object   // that object
}

// Limits on what a request may ask for, so that products do not overflow.
const (
	maxTokens  = 1 << 40
	maxAnswers = 128
)

// parseRequest parses the body of a generation call. The errors are sent to the
// agent.
func (f *Forward) parseRequest(t target, body []byte) (request, error) {
	o, err := f.parseBody(body)
	if err != nil {
		return request{}, err
	}
	q := request{body: o, model: t.model, answers: 1}
	switch t.kind {
	case generate:
		err = q.readGemini()
	case messages:
		err = q.readAnthropic()
	case chat:
		err = q.readChat(f.base)
	default:
		err = q.readLimits("max_output_tokens")
	}
	if err == nil && t.kind != generate {
		err = q.readModel()
	}
	if err != nil {
		return request{}, malformedError(err.Error())
	}
	return q, nil
}

// parseBody parses and checks the body of any request.
func (f *Forward) parseBody(body []byte) (object, error) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return object{}, malformedError("its body is not JSON")
	}
	o, err := parseObject(body)
	if err != nil {
		return object{}, malformedError(err.Error())
	}
	if f.config.Hosted {
		return o, nil
	}
	return o, f.checkLocal(o)
}

// readModel reads the model from the body.
func (q *request) readModel() error {
	m, err := q.body.get("model")
	if err != nil {
		return err
	}
	if m == nil || json.Unmarshal(m.value, &q.model) != nil || q.model == "" {
		return errors.New("the body does not name a model")
	}
	return nil
}

// limitsObject returns the object that has the limits.
func (q *request) limitsObject() *object {
	if q.config != "" {
		return &q.inner
	}
	return &q.body
}

// readLimits reads the members that limit the output.
func (q *request) readLimits(names ...string) error {
	q.limits = names
	for _, name := range names {
		m, err := q.limitsObject().get(name)
		if err != nil {
			return err
		}
		n, err := m.number(maxTokens)
		if err != nil {
			return err
		}
		if n > 0 && (q.limit == 0 || n < q.limit) {
			q.limit = n
		}
	}
	return nil
}

func (q *request) readAnswers(spellings ...string) error {
	m, err := q.limitsObject().get(spellings...)
	if err != nil {
		return err
	}
	n, err := m.number(maxAnswers)
	q.answers = max(1, n)
	return err
}

// innerObject parses an object in the body, which may be missing or null. It returns
// the spelling that the body uses.
func (q *request) innerObject(spellings ...string) (name string, o object, err error) {
	m, err := q.body.get(spellings...)
	switch {
	case err != nil || m == nil:
		return spellings[0], object{}, err
	case !m.null():
		o, err = parseObject(m.value)
	}
	return m.name, o, err
}

func (q *request) readGemini() (err error) {
	if q.config, q.inner, err = q.innerObject("generationConfig", "generation_config"); err != nil {
		return err
	}
	if err := q.readAnswers("candidateCount", "candidate_count"); err != nil {
		return err
	}
	const camel, snake = "maxOutputTokens", "max_output_tokens"
	n, err := q.inner.get(camel, snake)
	if err != nil {
		return err
	}
	if n != nil && n.name == snake {
		return q.readLimits(snake)
	}
	return q.readLimits(camel)
}

func (q *request) readAnthropic() error {
	_, thinking, err := q.innerObject("thinking")
	if err != nil {
		return err
	}
	b, err := thinking.get("budget_tokens")
	if err != nil {
		return err
	}
	if q.minimum, err = b.number(maxTokens); err != nil {
		return err
	}
	return q.readLimits("max_tokens")
}

// readChat also requests the usage of a stream. OpenAI's reasoning models reject
// max_tokens; most other servers support only that.
func (q *request) readChat(base *url.URL) error {
	names := []string{"max_tokens", "max_completion_tokens"}
	if h := base.Hostname(); h == "api.openai.com" || strings.HasSuffix(h, ".api.openai.com") {
		names[0], names[1] = names[1], names[0]
	}
	if err := q.readLimits(names...); err != nil {
		return err
	}
	if err := q.readAnswers("n"); err != nil {
		return err
	}
	s, err := q.body.get("stream")
	if err != nil {
		return err
	}
	if streamed, err := s.flag(); err != nil || !streamed {
		return err
	}
	return q.requestUsage()
}

func (q *request) requestUsage() error {
	const option = "include_usage"
	name, options, err := q.innerObject("stream_options")
	if err != nil {
		return err
	}
	u, err := options.get(option)
	if err != nil {
		return err
	}
	if asked, err := u.flag(); err != nil || asked {
		return err
	}
	options.set(option, []byte("true"))
	q.body.set(name, options.text())
	return nil
}

// maxOutput returns the limit for all answers together; 0 if there is none.
func (q *request) maxOutput() int64 { return q.limit * q.answers }

// withLimit returns the body with its limit lowered to at most limit.
func (q *request) withLimit(limit int64) []byte {
	o := q.limitsObject()
	for i, name := range q.limits {
		// readLimits has read them without an error.
		m, _ := o.get(name)
		n, _ := m.number(maxTokens)
		if n > limit || q.limit == 0 && i == 0 {
			o.set(name, strconv.AppendInt(nil, limit, 10))
		}
	}
	if q.config != "" {
		q.body.set(q.config, o.text())
	}
	return q.body.text()
}
