package texttools

import (
	"encoding/json"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
	"hone/internal/reply"
	"hone/model"
)

var (
	// fence matches the line that opens a fenced block; the groups are the run that opens it.
	fence = lazyregexp.New("^(?:(```+)[^`\n]*|(~~~+)[^\n]*)(?:\n|$)")
	// fenceOfCalls matches the beginning of a fenced block that may contain calls.
	fenceOfCalls = lazyregexp.New("^(?:```+|~~~+)[ \\t]*(?i:json|xml|tool_calls?|tool_code|tool)?[ \\t\\r]*\\n[ \\t]*[{\\[<]")
	quotation    = lazyregexp.New(`^ *(?: {4}|\t|>)`) // a Markdown quotation, or indented like code
)

// span is a part of a text that contains calls.
type span struct {
	from, to int
	parts    []model.Part // the calls, perhaps after visible text
}

// finder collects the spans of a text. Its methods read what begins at a position,
// and return where to continue.
type finder struct {
	*reader
	spans  []span
	fenced []span // in fenced blocks
}

// They are in order. It takes linear time: a call without an end extends to the end of the text.
func find(text string, tools []model.Spec) []span {
	f := finder{reader: newReader(text, tools)}
	begins := true
	for pos := reasoningEnd(text); pos < len(text); {
		end := lineEnd(text, pos)
		line := strings.TrimLeft(text[pos:end], space)
		at := end - len(line)
		switch {
		case line == "":
			pos = end
			continue
		case begins && opensJSON(line):
			pos = f.readBare(at)
		case fence.MatchString(line):
			pos = f.block(at)
		case quotation.MatchString(text[pos:end]):
			pos = end
		default:
			pos = f.line(pos)
		}
		begins = false
	}
	if len(f.spans) > 0 {
		return f.spans
	}
	return atEnd(text, f.fenced)
}

// There is nothing else in the text after them.
func atEnd(text string, spans []span) []span {
	first, end := len(spans), len(text)
	for first > 0 && strings.Trim(text[spans[first-1].to:end], space) == "" {
		first--
		end = spans[first].from
	}
	return spans[first:]
}

func (f *finder) add(spans *[]span, from int, found found) (to int) {
	to = len(f.text) - len(found.rest)
	*spans = append(*spans, span{from, to, found.parts})
	return to
}

// The reply begins with a JSON value.
func (f *finder) readBare(at int) int {
	s := f.text[at:]
	if found, ok := f.onlyCalls(s); ok {
		f.add(&f.spans, at, found)
		return len(f.text) // what follows an envelope is text
	}
	if json.Valid([]byte(s)) {
		return len(f.text) // an answer in JSON may contain anything in its strings
	}
	return f.line(at)
}

// A block counts if it contains nothing but calls of offered tools.
func (f *finder) block(at int) int {
	m := fence.FindStringSubmatch(f.text[at:])
	begin := at + len(m[0])
	inside, rest := cutBlock(f.text[begin:], m[1]+m[2])
	if fenceOfCalls.MatchString(f.text[at:]) {
		found, ok := newReader(inside, f.tools).onlyCalls(inside)
		calls := model.Reply{Parts: found.parts}.Calls()
		foreign := func(c model.Call) bool { return !f.offers(c.Name) }
		if ok && strings.Trim(found.rest, space) == "" && len(calls) > 0 && !slices.ContainsFunc(calls, foreign) {
			found.rest = rest
			f.add(&f.fenced, at, found)
		}
	}
	return len(f.text) - len(rest)
}

// run opened the block.
func cutBlock(s, run string) (inside, rest string) {
	for end := 0; end < len(s); {
		next := lineEnd(s, end)
		line := strings.Trim(s[end:next], space)
		if strings.HasPrefix(line, run) && strings.Trim(line, run[:1]) == "" {
			return s[:end], s[next:]
		}
		end = next
	}
	return s, ""
}

// It reads to the end of the line, or of the line in which the last call ends.
func (f *finder) line(pos int) int {
	for words := false; ; words = true {
		i := strings.IndexAny(f.text[pos:], "`<[\n")
		if i < 0 {
			return len(f.text)
		}
		words = words || strings.Trim(f.text[pos:pos+i], space) != ""
		at := pos + i
		pos = at + 1
		rest := f.text[at:]
		switch {
		case rest[0] == '\n' || rest[0] == '`':
			return lineEnd(f.text, at)
		case at > 0 && strings.IndexByte(`"'`, f.text[at-1]) >= 0: // quoted
		case opensCall(rest):
			if found, ok := f.tagged(rest, words); ok {
				pos = f.add(&f.spans, at, found)
			}
		case opensResult(rest) && !words && len(f.spans)+len(f.fenced) > 0:
			return len(f.text)
		}
	}
}

func opensResult(s string) bool {
	return strings.HasPrefix(s, "<tool_result") || strings.HasPrefix(s, "<tool_response")
}

// The line feed is included.
func lineEnd(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

var callTag = lazyregexp.New(`</?(?:tool_call|function|parameter|invoke|arg_)`)

// A tag inside of a call, or of a reply in JSON, does not end the reasoning.
func reasoningEnd(text string) int {
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
