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
	var spans, fenced []span
	scan(text, reasoning(text), func(at int, words bool) int {
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
			if f, ok = r.only(rest); !ok && json.Valid([]byte(rest)) {
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
		*list = append(*list, span{at, to, f.parts})
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
	run := opensFence(strings.Trim(s[:begin], space))
	end, rest := begin, ""
	for line := range strings.Lines(s[begin:]) {
		if closes(strings.Trim(line, space), run) {
			rest = s[end+len(line):]
			break
		}
		end += len(line)
	}
	r := newReader(s[begin:end], tools)
	f, ok := r.only(s[begin:end])
	foreign := func(p model.Part) bool { return p.Call != nil && !r.offers(p.Call.Name) }
	called := func(p model.Part) bool { return p.Call != nil }
	ok = ok && strings.Trim(f.rest, space) == "" && slices.ContainsFunc(f.parts, called) && !slices.ContainsFunc(f.parts, foreign)
	f.rest = rest
	return f, ok
}
