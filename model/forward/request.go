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
	body    []byte
	model   string
	answers int64 // requested number of answers
	limit   int64 // output tokens for each answer; 0 if the body sets none
	minimum int64 // the limit must be greater (Anthropic's thinking budget)

	// lower returns the edits that lower the limit: of each member with a
	// higher one, or of a new member if no member sets a limit.
	lower func(limit int64) []edit
	// always are further edits.
	always []edit
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
	q := request{body: body, model: t.model, answers: 1}
	switch t.kind {
	case generate:
		err = q.gemini(o)
	case messages:
		err = q.anthropic(o)
	case chat:
		err = q.chat(o, f.base)
	default:
		err = q.readLimits(o, "max_output_tokens")
	}
	if err == nil && t.kind != generate {
		err = q.readModel(o)
	}
	if err != nil {
		return request{}, malformed(err.Error())
	}
	return q, nil
}

// parseBody parses and checks the body of any request.
func (f *Forward) parseBody(body []byte) (object, error) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return object{}, malformed("its body is not JSON")
	}
	o, err := parseObject(body, 0)
	if err != nil {
		return object{}, malformed(err.Error())
	}
	if f.config.Hosted {
		return o, nil
	}
	return o, f.checkLocal(o)
}

// readModel reads the model from the body.
func (q *request) readModel(o object) error {
	m, err := o.get("model")
	if err != nil {
		return err
	}
	if m == nil || json.Unmarshal(m.value, &q.model) != nil || q.model == "" {
		return errors.New("the body does not name a model")
	}
	return nil
}

// readLimits reads the members that limit the output. If all are missing, the
// first one is added.
func (q *request) readLimits(o object, names ...string) error {
	var found []*member
	var given []int64
	for _, name := range names {
		m, err := o.get(name)
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
		found, given = append(found, m), append(given, n)
	}
	q.lower = func(limit int64) []edit {
		value := strconv.FormatInt(limit, 10)
		if q.limit == 0 {
			return []edit{o.set(found[0], names[0], value)}
		}
		var edits []edit
		for i, n := range given {
			if n > limit {
				edits = append(edits, o.set(found[i], names[i], value))
			}
		}
		return edits
	}
	return nil
}

func (q *request) readAnswers(o object, spellings ...string) error {
	m, err := o.get(spellings...)
	if err != nil {
		return err
	}
	n, err := m.number(maxAnswers)
	q.answers = max(1, n)
	return err
}

// gemini reads the limit from generationConfig, which may be missing.
func (q *request) gemini(o object) error {
	const long, short = "generationConfig", "generation_config"
	m, err := o.get(long, short)
	if err != nil {
		return err
	}
	if m.null() {
		q.lower = func(limit int64) []edit {
			return []edit{o.set(m, long, `{"maxOutputTokens":`+strconv.FormatInt(limit, 10)+`}`)}
		}
		return nil
	}
	c, err := parseObject(m.value, m.begin)
	if err != nil {
		return err
	}
	if err := q.readAnswers(c, "candidateCount", "candidate_count"); err != nil {
		return err
	}
	const camel, snake = "maxOutputTokens", "max_output_tokens"
	n, err := c.get(camel, snake)
	if err != nil {
		return err
	}
	if n != nil && n.name == snake {
		return q.readLimits(c, snake)
	}
	return q.readLimits(c, camel)
}

func (q *request) anthropic(o object) error {
	m, err := o.get("thinking")
	if err != nil {
		return err
	}
	if !m.null() {
		c, err := parseObject(m.value, m.begin)
		if err != nil {
			return err
		}
		b, err := c.get("budget_tokens")
		if err != nil {
			return err
		}
		if q.minimum, err = b.number(maxTokens); err != nil {
			return err
		}
	}
	return q.readLimits(o, "max_tokens")
}

// chat also requests the usage of a stream. OpenAI's reasoning models reject
// max_tokens; most other servers support only that.
func (q *request) chat(o object, base *url.URL) error {
	names := []string{"max_tokens", "max_completion_tokens"}
	if h := base.Hostname(); h == "api.openai.com" || strings.HasSuffix(h, ".api.openai.com") {
		names[0], names[1] = names[1], names[0]
	}
	if err := q.readLimits(o, names...); err != nil {
		return err
	}
	if err := q.readAnswers(o, "n"); err != nil {
		return err
	}
	s, err := o.get("stream")
	if err != nil {
		return err
	}
	if streamed, err := s.flag(); err != nil || !streamed {
		return err
	}
	return q.requestUsage(o)
}

func (q *request) requestUsage(o object) error {
	const name, option = "stream_options", "include_usage"
	m, err := o.get(name)
	if err != nil {
		return err
	}
	if m.null() {
		q.always = []edit{o.set(m, name, `{"`+option+`":true}`)}
		return nil
	}
	c, err := parseObject(m.value, m.begin)
	if err != nil {
		return err
	}
	u, err := c.get(option)
	if err != nil {
		return err
	}
	if asked, err := u.flag(); err != nil || asked {
		return err
	}
	q.always = []edit{c.set(u, option, "true")}
	return nil
}

// maxOutput returns the limit for all answers together; 0 if there is none.
func (q *request) maxOutput() int64 { return q.limit * q.answers }

// withLimit returns the body with its limit lowered to at most limit.
func (q *request) withLimit(limit int64) []byte {
	return apply(q.body, append(q.lower(limit), q.always...))
}
