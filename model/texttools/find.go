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

// The parts of the text that contain calls are in order. It takes linear time: a call without an end extends to the end of the text.
func find(text string, tools []model.Spec) []found {
	r := newReader(text, tools)
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
			pos = r.readBare(at)
		case fence.MatchString(line):
			pos = r.block(at)
		case quotation.MatchString(text[pos:end]):
			pos = end
		default:
			pos = r.line(pos)
		}
		begins = false
	}
	if len(r.spans) > 0 {
		return r.spans
	}
	return atEnd(text, r.fenced)
}

// There is nothing else in the text after them.
func atEnd(text string, calls []found) []found {
	first, end := len(calls), len(text)
	for first > 0 && strings.Trim(text[calls[first-1].end(text):end], space) == "" {
		first--
		end = calls[first].from
	}
	return calls[first:]
}

// It returns where what follows begins.
func (r *reader) add(calls *[]found, from int, one found) int {
	one.from = from
	*calls = append(*calls, one)
	return one.end(r.text)
}

// The reply begins with a JSON value.
func (r *reader) readBare(at int) int {
	s := r.text[at:]
	if found, ok := r.onlyCalls(s); ok {
		r.add(&r.spans, at, found)
		return len(r.text) // what follows an envelope is text
	}
	if json.Valid([]byte(s)) {
		return len(r.text) // an answer in JSON may contain anything in its strings
	}
	return r.line(at)
}

// A block counts if it contains nothing but calls of offered tools.
func (r *reader) block(at int) int {
	m := fence.FindStringSubmatch(r.text[at:])
	begin := at + len(m[0])
	inside, rest := cutBlock(r.text[begin:], m[1]+m[2])
	if fenceOfCalls.MatchString(r.text[at:]) {
		found, ok := newReader(inside, r.tools).onlyCalls(inside)
		calls := model.Reply{Parts: found.parts}.Calls()
		foreign := func(c model.Call) bool { return !r.offers(c.Name) }
		if ok && strings.Trim(found.rest, space) == "" && len(calls) > 0 && !slices.ContainsFunc(calls, foreign) {
			found.rest = rest
			r.add(&r.fenced, at, found)
		}
	}
	return len(r.text) - len(rest)
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
func (r *reader) line(pos int) int {
	for words := false; ; words = true {
		i := strings.IndexAny(r.text[pos:], "`<[\n")
		if i < 0 {
			return len(r.text)
		}
		words = words || strings.Trim(r.text[pos:pos+i], space) != ""
		at := pos + i
		pos = at + 1
		rest := r.text[at:]
		switch {
		case rest[0] == '\n' || rest[0] == '`':
			return lineEnd(r.text, at)
		case at > 0 && strings.IndexByte(`"'`, r.text[at-1]) >= 0: // quoted
		case opensCall(rest):
			if found, ok := r.tagged(rest, words); ok {
				pos = r.add(&r.spans, at, found)
			}
		case !words && len(r.spans)+len(r.fenced) > 0 && (strings.HasPrefix(rest, "<tool_result") || strings.HasPrefix(rest, "<tool_response")):
			return len(r.text)
		}
	}
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
