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
	parts    []model.Part // the calls, perhaps after visible text
}

// find returns the text's spans, in order. It takes linear time: a call without an
// end extends to the end of the text.
func find(text string, tools []model.Spec) []span {
	r := newReader(text, tools)
	s := scanner{pos: reasoning(text)}
	var spans, fenced []span
	s.scan(text, func(at int, words bool) int {
		f, ok := found{}, false
		list := &spans
		switch rest := text[at:]; {
		case opensResult(rest):
			if len(spans)+len(fenced) > 0 {
				return len(text)
			}
		case opensCall(rest):
			f, ok = r.tagged(rest, words)
		case opensJSON(rest):
			if f, ok = newReader(rest, tools).only(); !ok && json.Valid([]byte(rest)) {
				return len(text) // an answer in JSON may contain anything in its strings
			}
		default:
			f, ok = fencedCalls(rest, tools)
			list = &fenced
		}
		if !ok {
			return at
		}
		to := len(text) - len(f.rest)
		*list = append(*list, span{at, to, f.parts()})
		if opensJSON(text[at:]) {
			return len(text) // what follows an envelope is text
		}
		return to
	})
	if len(spans) > 0 {
		return spans
	}
	return atEnd(text, fenced)
}

// atEnd returns the last spans after which there is nothing else in the text.
func atEnd(text string, spans []span) []span {
	first, end := len(spans), len(text)
	for first > 0 && strings.Trim(text[spans[first-1].to:end], space) == "" {
		first--
		end = spans[first].from
	}
	return spans[first:]
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

// fencedCalls reads the fenced block at the beginning of s if it contains nothing but
// calls of offered tools.
func fencedCalls(s string, tools []model.Spec) (found, bool) {
	begin := lineEnd(s, 0)
	run, _ := opensFence(s[:begin])
	end, closing := begin, ""
	for line := range strings.Lines(s[begin:]) {
		if closes(line, run) {
			closing = strings.TrimRight(line, "\r\n")
			break
		}
		end += len(line)
	}
	r := newReader(s[begin:end], tools)
	f, ok := r.only()
	ok = ok && len(f.calls) > 0 && strings.Trim(f.rest, space) == "" && !slices.ContainsFunc(f.calls, func(c call) bool { return !r.offers(c.Name) })
	f.rest = s[end+len(closing):]
	return f, ok
}

// only reads a text that contains nothing but calls, all of them in JSON or in tags,
// or begins with an envelope.
func (r *reader) only() (all found, ok bool) {
	s := strings.TrimLeft(r.text, space)
	if opensJSON(s) {
		all, ok = r.certain(s)
		if left := strings.TrimLeft(all.rest, separators); !all.envelope {
			ok, all.rest = ok && left == "", ""
		}
		return all, ok
	}
	for ; s != ""; s = strings.TrimLeft(all.rest, separators) {
		f, ok := r.tagged(s, false)
		if !ok {
			return all, false
		}
		all = found{text: all.text + f.text, calls: append(all.calls, f.calls...), rest: f.rest}
	}
	return all, true
}

// certain reads objects without a tag, which must be calls beyond doubt. If one of
// them cannot be parsed, nothing is certain about the others.
func (r *reader) certain(s string) (found, bool) {
	f, ok := r.values("", s, "")
	isUncertain := func(c call) bool { return !c.certain }
	if f.broken && !slices.ContainsFunc(f.calls[:len(f.calls)-1], isUncertain) {
		f, ok = r.broken("", s, s, "")
	}
	return f, ok && !slices.ContainsFunc(f.calls, isUncertain)
}
