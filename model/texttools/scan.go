package texttools

import (
	"strings"

	"hone/internal/lazyregexp"
)

var (
	fenceLine = lazyregexp.New("^(?:(```+)[^`]*|(~~~+).*)$")
	// fenceOfCalls matches the beginning of a fenced block that may contain calls.
	fenceOfCalls = lazyregexp.New("^(?:```+|~~~+)[ \\t]*(?i:json|xml|tool_calls?|tool_code|tool)?[ \\t\\r]*\\n[ \\t]*[{\\[<]")
	quotation    = lazyregexp.New(`^ *(?: {4}|\t|>)`) // a Markdown quotation, or indented like code
)

// scan calls try at each place from pos on where a call may begin: a JSON value at
// the beginning, a fenced block that may contain calls, or a tag outside of fenced
// blocks and quotations. words says that there is text before a tag in its line. try
// returns the end of what it used, where scan continues; the place itself if there
// is no call.
func scan(text string, pos int, try func(at int, words bool) (to int)) {
	fence := "" // what opened the fenced block at pos; empty outside of one
	for begins := true; pos < len(text); {
		end := lineEnd(text, pos)
		line := text[pos:end]
		trimmed := strings.Trim(line, space)
		at := pos + strings.Index(line, trimmed)
		first := begins && trimmed != ""
		begins = begins && trimmed == ""
		run := opensFence(trimmed)
		switch {
		case fence != "":
			if closes(trimmed, fence) {
				fence = ""
			}
			pos = end
		case first && opensJSON(trimmed):
			pos = try(at, false)
		case run != "":
			if pos = at; fenceOfCalls.MatchString(text[at:]) {
				pos = try(at, false)
			}
			if pos == at {
				fence, pos = run, end
			}
		case quotation.MatchString(line):
			pos = end
		default:
			pos = tags(text, pos, try)
		}
	}
}

// tags tries the tags from pos to the end of the line that contains pos, or of the
// line in which the last call ends, and returns that end.
func tags(text string, pos int, try func(int, bool) int) int {
	for words := false; ; words = true {
		i := strings.IndexAny(text[pos:], "`<[\n")
		if i < 0 {
			return len(text)
		}
		words = words || strings.Trim(text[pos:pos+i], space) != ""
		at := pos + i
		if text[at] == '\n' || text[at] == '`' {
			return lineEnd(text, at)
		}
		pos = at + 1
		quoted := at > 0 && strings.IndexByte(`"'`, text[at-1]) >= 0
		if !quoted && (opensCall(text[at:]) || !words && opensResult(text[at:])) {
			pos = max(pos, try(at, words))
		}
	}
}

// opensResult reports whether s begins with the tag of a tool's result.
func opensResult(s string) bool {
	return strings.HasPrefix(s, "<tool_result") || strings.HasPrefix(s, "<tool_response")
}

// lineEnd returns the end of the line at a position, its line feed included.
func lineEnd(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// opensFence returns the run of characters that opens a fenced block; empty if the
// line does not open one.
func opensFence(line string) string {
	if m := fenceLine.FindStringSubmatch(line); m != nil {
		return m[1] + m[2]
	}
	return ""
}

// closes reports whether a line ends the block that run opened.
func closes(line, run string) bool {
	return strings.HasPrefix(line, run) && strings.Trim(line, run[:1]) == ""
}
