package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/sjson"

	"hone/model"
)

// object is a JSON object of a request, for reading. What is sent is the
// request's own text, in which [asked.withLimit] sets members.
type object = map[string]any

func (f *Forward) parseBody(body []byte) (object, error) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, malformedError("its body is not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // another number could be out of range
	v, err := decode(d)
	if err != nil {
		return nil, malformedError(err.Error())
	}
	o, ok := v.(object)
	if !ok {
		return nil, malformedError("its body is not an object")
	}
	if what := f.wire.beyond(o); what != "" && !f.config.Hosted {
		return nil, &refusal{http.StatusBadRequest, "hone refuses this call: it asks the provider for " + model.OneLine(what) +
			", which goes beyond the request; disable that in the agent's settings"}
	}
	return o, nil
}

// d reads valid JSON. Two equal names in an object are an error, because servers differ in which of them counts.
func decode(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decode(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		o := object{}
		for d.More() {
			t, _ := d.Token()
			name := fmt.Sprint(t)
			if _, twice := o[name]; twice {
				return nil, fmt.Errorf("duplicate member %q", name)
			}
			if o[name], err = decode(d); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return o, err
	}
	return t, nil
}

// protobuf accepts names with and without underscores, and some servers ignore case.
func canon(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' {
			return -1
		}
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}

// reader reads members of objects. It keeps the first error.
type reader struct{ err error }

func (r *reader) fail(format string, args ...any) {
	r.err = cmp.Or(r.err, fmt.Errorf(format, args...))
}

// member returns the member with one of the spellings, and how the object
// spells it: as the first of them if it is missing. Any other spelling of the
// name is an error.
func (r *reader) member(o object, spellings ...string) (name string, value any) {
	found := false
	name = spellings[0]
	for key, v := range o {
		if canon(key) != canon(spellings[0]) {
			continue
		}
		if found || !slices.Contains(spellings, key) {
			r.fail("unsupported spelling %q of %q", key, spellings[0])
		}
		name, value, found = key, v, true
	}
	return name, value
}

// It is nil if the member is missing or null.
func (r *reader) object(o object, spellings ...string) (string, object) {
	name, v := r.member(o, spellings...)
	inner, ok := v.(object)
	if v != nil && !ok {
		r.fail("%q is not an object", name)
	}
	return name, inner
}

// The number is from 1 to limit; 0 if it is missing or null.
func (r *reader) number(o object, limit int64, spellings ...string) (string, int64) {
	name, v := r.member(o, spellings...)
	if v == nil {
		return name, 0
	}
	number, _ := v.(json.Number)
	n, err := number.Float64()
	if err != nil || n < 1 || n > float64(limit) || n != math.Trunc(n) {
		r.fail("%q is not a whole number from 1 to %d", name, limit)
		return name, 0
	}
	return name, int64(n)
}

type asked struct {
	body    []byte
	model   string
	answers int64 // requested number of answers
	limit   int64 // output tokens for each answer; 0 if the body sets none
	minimum int64 // the limit must be greater (Anthropic's thinking budget)

	limits  []limit // if none is set, the first is added
	config  string  // before their names: "generationConfig." or the like
	options bool    // a stream needs include_usage
}

type limit struct {
	name   string
	tokens int64 // 0 if it is not set
}

// Limits on what a request may ask for, so that products do not overflow.
const (
	maxTokens  = 1 << 40
	maxAnswers = 128
)

// The errors are sent to the agent.
func (f *Forward) parseRequest(t target, body []byte) (asked, error) {
	o, err := f.parseBody(body)
	if err != nil {
		return asked{}, err
	}
	var r reader
	q := asked{body: body, model: t.model}
	limited := func(o object, spellings ...string) {
		name, n := r.number(o, maxTokens, spellings...)
		if q.limits = append(q.limits, limit{name, n}); n > 0 && (q.limit == 0 || n < q.limit) {
			q.limit = n
		}
	}
	switch t.kind {
	case generate:
		name, config := r.object(o, "generationConfig", "generation_config")
		q.config = name + "."
		_, q.answers = r.number(config, maxAnswers, "candidateCount", "candidate_count")
		limited(config, "maxOutputTokens", "max_output_tokens")
	case messages:
		_, thinking := r.object(o, "thinking")
		_, q.minimum = r.number(thinking, maxTokens, "budget_tokens")
		limited(o, "max_tokens")
	case chat:
		// OpenAI's reasoning models reject max_tokens; most other servers support only that.
		names := []string{"max_tokens", "max_completion_tokens"}
		if h := "." + f.base.Hostname(); strings.HasSuffix(h, ".api.openai.com") {
			slices.Reverse(names)
		}
		limited(o, names[0])
		limited(o, names[1])
		_, q.answers = r.number(o, maxAnswers, "n")
		_, stream := r.member(o, "stream")
		if streamed, ok := stream.(bool); stream != nil && !ok {
			r.fail(`"stream" is neither true nor false`)
		} else if _, set := r.object(o, "stream_options"); streamed {
			q.options = set["include_usage"] != true
		}
	case responses:
		limited(o, "max_output_tokens")
	}
	if t.kind != generate {
		_, named := r.member(o, "model")
		if q.model, _ = named.(string); q.model == "" {
			r.fail("the body does not name a model")
		}
	}
	if q.answers = max(1, q.answers); r.err != nil {
		return asked{}, malformedError(r.err.Error())
	}
	return q, nil
}

// It changes nothing else in the body.
func (q *asked) withLimit(most int64) []byte {
	body := q.body
	set := func(path string, value any) {
		// It cannot fail: the body is an object, and so is what the path passes through.
		body, _ = sjson.SetBytes(body, path, value)
	}
	for i, l := range q.limits {
		if l.tokens > most || q.limit == 0 && i == 0 {
			set(q.config+l.name, most)
		}
	}
	if q.options {
		set("stream_options.include_usage", true)
	}
	return body
}
