package texttools

import (
	"strings"

	"hone/internal/lazyregexp"
	"hone/internal/reply"
)

// scanner finds the places in a reply where a call may begin: outside of fenced
// blocks and of quotations. A text that is still arriving may grow by complete lines
// between two scans.
type scanner struct {
	pos     int
	started bool   // there is more than white space before pos
	fence   string // what opened the fenced block at pos; empty outside of one
}

var (
	fenceLine = lazyregexp.New("^(?:(```+)[^`]*|(~~~+).*)$")
	// fenceOfCalls matches the beginning of a fenced block that may contain calls.
	fenceOfCalls = lazyregexp.New("^(?:```+|~~~+)[ \\t]*(?i:json|xml|tool_calls?|tool_code|tool)?[ \\t\\r]*\\n[ \\t]*[{\\[<]")
	quotation    = lazyregexp.New(`^ *(?: {4}|\t|>)`) // a Markdown quotation, or indented like code
)

// scan calls try at each place from pos on: a JSON value at the beginning, a fenced
// block that may contain calls, or a tag. words says that there is text before a tag
// in its line. try returns the end of what it used, where scan continues; the place
// itself if there is no call.
func (s *scanner) scan(text string, try func(at int, words bool) (to int)) {
	for s.pos < len(text) {
		end := lineEnd(text, s.pos)
		line := text[s.pos:end]
		trimmed := strings.Trim(line, space)
		at := s.pos + strings.Index(line, trimmed)
		first := !s.started && trimmed != ""
		s.started = s.started || first
		run := opensFence(trimmed)
		switch {
		case trimmed == "":
			s.pos = end
		case s.fence != "":
			if closes(trimmed, s.fence) {
				s.fence = ""
			}
			s.pos = end
		case first && opensJSON(trimmed):
			s.pos = try(at, false)
		case run != "" && end == len(text):
			return // the next line decides
		case run != "":
			if s.pos = at; fenceOfCalls.MatchString(text[at:]) {
				s.pos = try(at, false)
			}
			if s.pos == at {
				s.fence, s.pos = run, end
			}
		case quotation.MatchString(line):
			s.pos = end
		default:
			s.tags(text, try)
		}
	}
}

// tags tries the tags from pos to the end of the line that contains pos, or of the
// line in which the last call ends.
func (s *scanner) tags(text string, try func(int, bool) int) {
	for words := false; s.pos < len(text); words = true {
		i := strings.IndexAny(text[s.pos:], "`<[\n")
		if i < 0 {
			s.pos = len(text)
			return
		}
		words = words || strings.Trim(text[s.pos:s.pos+i], space) != ""
		at := s.pos + i
		if text[at] == '\n' || text[at] == '`' {
			s.pos = lineEnd(text, at)
			return
		}
		s.pos = at + 1
		quoted := at > 0 && strings.IndexByte(`"'`, text[at-1]) >= 0
		if !quoted && (opensCall(text[at:]) || !words && opensResult(text[at:])) {
			s.pos = max(s.pos, try(at, words))
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

// stream emits the beginning of a reply's text that cannot be a call.
type stream struct {
	onText  func(string)
	scanner scanner
	text    strings.Builder
	sent    int  // bytes that were emitted
	seen    int  // bytes that are no call; those after sent are white space
	waiting bool // the rest may contain calls, so nothing more is emitted
}

// add appends a piece of text. It emits complete lines only.
func (s *stream) add(piece string) {
	s.text.WriteString(piece)
	if s.waiting || !strings.Contains(piece, "\n") {
		return
	}
	text := s.text.String()
	text = text[:strings.LastIndexByte(text, '\n')+1]
	sure := s.place(text)
	// White space at the end is not emitted: before a call it is removed.
	if plain := strings.TrimRight(text[s.seen:sure], space); plain != "" {
		s.emit(text[s.sent : s.seen+len(plain)])
	}
	s.seen = sure
}

// place returns the first place in a text where a call may begin, or where the scan
// ended. After the end of reasoning the text begins anew.
func (s *stream) place(text string) int {
	for from := s.scanner.pos; ; from = s.scanner.pos {
		place := -1
		s.scanner.scan(text, func(at int, _ bool) int {
			place = at
			return len(text)
		})
		if s.waiting = place >= 0; s.waiting {
			return place
		}
		answer := reply.Answer(text[from:], nil)
		if len(answer) == len(text)-from {
			return s.scanner.pos
		}
		s.scanner = scanner{pos: len(text) - len(answer)}
	}
}

// end emits the rest of the visible text of the complete reply.
func (s *stream) end(visible string) {
	if strings.HasPrefix(visible, s.text.String()[:s.sent]) {
		s.emit(visible[s.sent:])
	}
}

func (s *stream) emit(text string) {
	if text != "" {
		s.onText(text)
		s.sent += len(text)
	}
}
