package texttools

import "strings"

// space is the white space that is ignored around a call.
const space = " \t\r\n"

const opensThoughts, closesThoughts = "<think>", "</think>"

// scanner finds the places in a reply where a call may begin: outside of reasoning,
// of fenced blocks and of quotations. A text that is still arriving may grow by
// complete lines between two scans.
type scanner struct {
	pos     int
	started bool   // there is more than white space and reasoning before pos
	inside  string // what closes the reasoning, or opened the fenced block, at pos; empty outside of both
}

// scan calls try at each place from pos on: a JSON value at the beginning, a fenced
// block that may contain calls, or a tag. words says that there is text before a tag
// in its line. try returns the end of what it used, where scan continues; the place
// itself if there is no call.
func (s *scanner) scan(text string, try func(at int, words bool) (to int)) {
	for s.pos < len(text) {
		end := lineEnd(text, s.pos)
		line := text[s.pos:end]
		trimmed := strings.TrimLeft(line, space)
		at := end - len(trimmed)
		if trimmed == "" {
			s.pos = end
			continue
		}
		run, info := opensFence(trimmed)
		switch {
		case s.inside == closesThoughts && strings.Contains(line, closesThoughts):
			s.inside, s.pos = "", s.pos+strings.Index(line, closesThoughts)+len(closesThoughts)
		case s.inside != "":
			if closes(line, s.inside) {
				s.inside = ""
			}
			s.pos = end
		case !s.started && strings.HasPrefix(trimmed, opensThoughts):
			s.inside, s.pos = closesThoughts, at+len(opensThoughts)
		case !s.started && opensJSON(trimmed):
			s.started, s.pos = true, try(at, false)
		case run != "" && end == len(text):
			return // the next line decides
		case run != "":
			to := at
			if mayHoldCalls(info, text[end:]) {
				to = try(at, false)
			}
			if s.started, s.pos = true, to; to == at {
				s.inside, s.pos = run, end
			}
		case quotes(line):
			s.started, s.pos = true, end
		default:
			s.started = true
			s.tags(text, try)
		}
	}
}

// tags tries the tags from pos to the end of the line that contains pos, or of the
// line in which the last call ends.
func (s *scanner) tags(text string, try func(int, bool) int) {
	for words := false; s.pos < len(text); {
		i := strings.IndexAny(text[s.pos:], "`<[\n")
		if i < 0 {
			s.pos = len(text)
			return
		}
		words = words || strings.Trim(text[s.pos:s.pos+i], space) != ""
		s.pos += i
		to := s.pos
		switch {
		case text[to] == '\n' || text[to] == '`':
			s.pos = lineEnd(text, to)
			return
		case to > 0 && strings.IndexByte(`"'`, text[to-1]) >= 0:
		case strings.HasPrefix(text[to:], closesThoughts):
			s.started, s.pos = false, to+len(closesThoughts) // of reasoning that was not opened
			return
		case opensCall(text[to:]) || !words && opensResult(text[to:]):
			to = try(to, words)
		}
		s.pos, words = max(to, s.pos+1), true
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

// quotes reports whether a line is indented like code, or is a Markdown quotation.
func quotes(line string) bool {
	trimmed := strings.TrimLeft(line, " ")
	return len(line)-len(trimmed) >= 4 || strings.HasPrefix(trimmed, "\t") || strings.HasPrefix(trimmed, ">")
}

// opensFence returns the run of characters that opens a fenced block and the
// text after it; both are empty if the line does not open one.
func opensFence(line string) (run, info string) {
	line = strings.Trim(line, space)
	if !strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "~~~") {
		return "", ""
	}
	info = strings.TrimLeft(line, line[:1])
	if line[0] == '`' && strings.Contains(info, "`") {
		return "", ""
	}
	return line[:len(line)-len(info)], strings.TrimLeft(info, space)
}

// closes reports whether a line ends the block that run opened.
func closes(line, run string) bool {
	line = strings.Trim(line, space)
	return len(line) >= len(run) && strings.Trim(line, run[:1]) == ""
}

// mayHoldCalls decides by a fenced block's info string and its first line.
func mayHoldCalls(info, contents string) bool {
	switch strings.ToLower(info) {
	case "", "json", "xml", "tool_call", "tool_calls", "tool_code", "tool":
		first := strings.TrimLeft(contents, " \t")
		return first != "" && strings.IndexByte("{[<", first[0]) >= 0
	}
	return false
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
	place := -1
	s.scanner.scan(text, func(at int, _ bool) int {
		place = at
		return len(text)
	})
	sure := s.scanner.pos
	if s.waiting = place >= 0; s.waiting {
		sure = place
	}
	// White space at the end is not emitted: before a call it is removed.
	if plain := strings.TrimRight(text[s.seen:sure], space); plain != "" {
		s.emit(text[s.sent : s.seen+len(plain)])
	}
	s.seen = sure
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
