package forward

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// request is what matters of a body that asks for an answer.
type request struct {
	body    []byte
	model   string
	answers int64 // how many it asks for
	limit   int64 // tokens of each answer; 0: none is set
	needs   int64 // tokens that the limit must exceed (Anthropic's thinking)

	// lower are the edits that bring the limit down; each is for one member
	// that has a higher one, or is missing where none has any.
	lower func(limit int64) []edit
	// always are the edits that are made in any case.
	always []edit
}

// The most that a request may ask for. They keep products in range.
const (
	mostTokens  = 1 << 40
	mostAnswers = 128
)

// parseRequest reads a body of a kind that generates. The errors are for the
// agent, which wrote it.
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
		err = q.limits(o, "max_output_tokens")
	}
	if err == nil && t.kind != generate {
		err = q.named(o)
	}
	if err != nil {
		return request{}, malformed(err.Error())
	}
	return q, nil
}

// parseBody reads a body as far as every request needs it.
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
	return o, f.local(o)
}

// named reads the model of a body that has it.
func (q *request) named(o object) error {
	m, err := o.get("model")
	if err != nil {
		return err
	}
	if m == nil || json.Unmarshal(m.value, &q.model) != nil || q.model == "" {
		return errors.New("it names no model")
	}
	return nil
}

// limits reads the members that limit the output. The first is the one to be
// added where all are missing.
func (q *request) limits(o object, names ...string) error {
	var found []*member
	var given []int64
	for _, name := range names {
		m, err := o.get(name)
		if err != nil {
			return err
		}
		n, err := m.number(mostTokens)
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

func (q *request) several(o object, spellings ...string) error {
	m, err := o.get(spellings...)
	if err != nil {
		return err
	}
	n, err := m.number(mostAnswers)
	q.answers = max(1, n)
	return err
}

// gemini's limit stands in an object of its own, which may be missing.
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
	if err := q.several(c, "candidateCount", "candidate_count"); err != nil {
		return err
	}
	const camel, snake = "maxOutputTokens", "max_output_tokens"
	n, err := c.get(camel, snake)
	if err != nil {
		return err
	}
	if n != nil && n.name == snake {
		return q.limits(c, snake)
	}
	return q.limits(c, camel)
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
		if q.needs, err = b.number(mostTokens); err != nil {
			return err
		}
	}
	return q.limits(o, "max_tokens")
}

// chat asks for the usage where a stream would not tell it. OpenAI's reasoning
// models refuse max_tokens; most other servers know nothing else.
func (q *request) chat(o object, base *url.URL) error {
	names := []string{"max_tokens", "max_completion_tokens"}
	if h := base.Hostname(); h == "api.openai.com" || strings.HasSuffix(h, ".api.openai.com") {
		names[0], names[1] = names[1], names[0]
	}
	if err := q.limits(o, names...); err != nil {
		return err
	}
	if err := q.several(o, "n"); err != nil {
		return err
	}
	s, err := o.get("stream")
	if err != nil {
		return err
	}
	if streamed, err := s.flag(); err != nil || !streamed {
		return err
	}
	return q.askUsage(o)
}

func (q *request) askUsage(o object) error {
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

// wants is the most tokens that all answers may have; 0 where no limit is set.
func (q *request) wants() int64 { return q.limit * q.answers }

// limited is the body with its limit at most so high.
func (q *request) limited(limit int64) []byte {
	return apply(q.body, append(q.lower(limit), q.always...))
}
