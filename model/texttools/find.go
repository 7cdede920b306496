package texttools

import (
	"encoding/json"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
	"hone/internal/reply"
	"hone/model"
)

// span is a part of a text that contains calls.
type span struct {
	from, to int
	text     string // the visible text inside
	calls    []model.Call
	// fenced calls count only at the end of a reply that has no others.
	fenced bool
}

// take returns what the span holds, once.
func (s *span) take() []model.Part {
	parts := appendText(nil, s.text)
	for _, c := range s.calls {
		parts = append(parts, model.Part{Call: &c})
	}
	s.text, s.calls = "", nil
	return parts
}

// find returns the text's spans, in order. It takes linear time: it never
// reads a call twice, and a call without an end extends to the end of the text.
func find(text string, tools []model.Spec) []span {
	r := newReader(text, tools)
	r.pos = reasoning(text)
	var spans []span
	for {
		p := r.next(true)
		if p == nowhere || p == endsCalls && len(spans) > 0 {
			return selectFenced(text, spans)
		}
		s, ok := r.at(p)
		if !ok && p == atWhole && json.Valid([]byte(text[r.pos:])) {
			// An answer in JSON may contain anything in its strings.
			return nil
		}
		if !ok {
			r.skipPlace(p)
			continue
		}
		spans = append(spans, s)
		if p == atWhole {
			return spans
		}
		r.continueAt(s.to)
	}
}

// callTag matches the tags around calls and their parts.
var callTag = lazyregexp.New(`</?(?:tool_call|function|parameter|invoke|arg_)`)

// reasoning returns where a reply's reasoning ends. A tag inside of a call, or of a
// reply in JSON, does not end it.
func reasoning(text string) int {
	if json.Valid([]byte(text)) {
		return 0
	}
	var calls [][2]int
	tags := callTag.FindAllStringIndex(text, -1)
	for i := 1; i < len(tags); i++ {
		if from, to := tags[i-1][0], tags[i][0]; text[from+1] != '/' && text[to+1] == '/' {
			calls = append(calls, [2]int{from, to})
		}
	}
	return len(text) - len(reply.Answer(text, calls))
}

// at parses the calls at a place.
func (r *reader) at(p place) (span, bool) {
	switch p {
	case atWhole:
		return r.whole()
	case atFence:
		return r.fenced()
	case atTag:
		return r.tagged(r.pos, r.afterText)
	}
	return span{}, false
}

// skipPlace moves past a place that turned out to have no call.
func (r *reader) skipPlace(p place) {
	switch p {
	case atFence:
		run, _ := opensFence(r.text[r.pos:r.end])
		r.enterFence(run)
	case atTag, endsCalls:
		r.pos, r.afterText = r.pos+1, true
	}
}

// selectFenced removes the fenced spans that do not count.
func selectFenced(text string, spans []span) []span {
	isFenced := func(s span) bool { return s.fenced }
	if slices.ContainsFunc(spans, func(s span) bool { return !s.fenced }) {
		return slices.DeleteFunc(spans, isFenced)
	}
	first, end := len(spans), len(text)
	for first > 0 && strings.Trim(text[spans[first-1].to:end], space) == "" {
		first--
		end = spans[first].from
	}
	return spans[first:]
}

// fenced parses a fenced block that contains nothing but calls.
func (r *reader) fenced() (span, bool) {
	run, _ := opensFence(r.text[r.pos:r.end])
	begin, end, to := r.end, len(r.text), len(r.text)
	for at := begin; at < len(r.text); {
		next := len(r.text)
		if i := strings.IndexByte(r.text[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		if closes(r.text[at:next], run) {
			end, to = at, len(strings.TrimRight(r.text[:next], "\r\n"))
			break
		}
		at = next
	}
	s, ok := onlyCalls(r.text[begin:end], r.tools)
	s.from, s.to, s.fenced = r.pos, to, true
	return s, ok
}

// onlyCalls parses a text that contains nothing but calls of offered tools.
func onlyCalls(text string, tools []model.Spec) (span, bool) {
	r := newReader(text, tools)
	r.pos = r.skip(0)
	if !strings.HasPrefix(text[r.pos:], "<") && !strings.HasPrefix(text[r.pos:], mistral) {
		s, ok := r.whole()
		return s, ok && r.skip(s.to) == len(text) && r.offersAll(s.calls)
	}
	var all span
	for at := r.pos; at < len(text); at = r.skip(at) {
		if !opensCall(text[at:]) {
			return all, false
		}
		s, ok := r.tagged(at, false)
		if !ok || !r.offersAll(s.calls) {
			return all, false
		}
		all.calls = append(all.calls, s.calls...)
		at = s.to
	}
	return all, len(all.calls) > 0
}

// whole parses a reply that begins with JSON.
func (r *reader) whole() (span, bool) {
	if s, ok := r.envelope(); ok {
		return s, true
	}
	s := span{from: r.pos, to: len(r.text)}
	for at := r.pos; at < len(r.text); {
		end := reply.ValueEnd(r.text[at:])
		if end < 0 {
			return r.brokenWhole()
		}
		calls, ok := decode(r.text[at : at+end])
		if !ok || len(calls) == 0 {
			return r.brokenWhole()
		}
		for _, c := range calls {
			if !c.exact || !r.offers(c.Name) || !isObject(c.Args) {
				return s, false
			}
			s.calls = append(s.calls, c.Call)
		}
		at = r.skipSeparators(at + end)
		if at < len(r.text) && r.text[at] != '{' && r.text[at] != '[' {
			return s, false
		}
	}
	return s, len(s.calls) > 0
}

// brokenWhole returns an unparsed call for a reply that begins like a call of
// an offered tool.
func (r *reader) brokenWhole() (span, bool) {
	raw := strings.Trim(r.text[r.pos:], space)
	m := callHead.FindStringSubmatch(raw)
	if m == nil || !r.offers(m[1]) {
		return span{}, false
	}
	return span{from: r.pos, to: len(r.text), calls: []model.Call{{Name: m[1], Args: raw}}}, true
}

// skipSeparators skips what models write between objects.
func (r *reader) skipSeparators(at int) int {
	return len(r.text) - len(strings.TrimLeft(r.text[at:], space+",;"))
}

// offersAll reports whether there are calls, and only of offered tools.
func (r *reader) offersAll(calls []model.Call) bool {
	return len(calls) > 0 && !slices.ContainsFunc(calls, func(c model.Call) bool { return !r.offers(c.Name) })
}

func (r *reader) offers(name string) bool {
	return slices.ContainsFunc(r.tools, func(t model.Spec) bool { return t.Name == name })
}
