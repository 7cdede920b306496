package texttools

import (
	"strings"

	"hone/model"
)

// space is the white space that is ignored around a call.
const space = " \t\r\n"

// place is what may begin at a reader's position.
type place int

const (
	nowhere   place = iota // nothing: the end of the text, or of its complete lines
	atWhole                // a JSON value at the beginning of the reply
	atFence                // the line that opens a fenced block, perhaps with calls
	atTag                  // a tag that may open a call
	endsCalls              // a result that the model invented; calls after it do not count
)

// reader finds the places in a reply's text where a call may begin. The text
// may still grow.
type reader struct {
	text      string
	tools     []model.Spec
	pos       int
	end       int            // of the line at pos, its line feed included
	started   bool           // there is more than white space and thoughts before pos
	thinking  bool           // pos is between <think> and </think>
	inLine    bool           // pos is inside a line whose beginning was examined
	afterText bool           // there is more than white space before pos in its line
	quoted    bool           // tags in the line are quotations
	fence     string         // what opened the fenced block at pos; empty outside of one
	lastClose map[string]int // last position of each closing tag
}

func newReader(text string, tools []model.Spec) *reader {
	return &reader{text: text, tools: tools, lastClose: map[string]int{}}
}

// next moves to the next place. If the text is not final, it stops before an
// incomplete line.
func (r *reader) next(final bool) place {
	for r.pos < len(r.text) {
		if !r.findLineEnd(final) {
			return nowhere
		}
		p, sure := r.scan(final)
		if p != nowhere || !sure {
			return p
		}
	}
	return nowhere
}

// findLineEnd sets the end of the line at pos. It returns false if the line is
// incomplete.
func (r *reader) findLineEnd(final bool) bool {
	if r.pos < r.end {
		return true
	}
	if i := strings.IndexByte(r.text[r.pos:], '\n'); i >= 0 {
		r.end = r.pos + i + 1
		return true
	}
	r.end = r.pos
	if final {
		r.end = len(r.text)
	}
	return final
}

// scan examines one line or the rest of one. sure is false if that needs more
// text.
func (r *reader) scan(final bool) (p place, sure bool) {
	switch {
	case r.thinking:
		r.skipThoughts()
	case !r.started && !r.inLine:
		return r.beginning(), true
	case r.inLine:
		return r.restOfLine(), true
	case r.fence != "":
		if closes(r.text[r.pos:r.end], r.fence) {
			r.fence = ""
		}
		r.pos = r.end
	default:
		return r.lineStart(final)
	}
	return nowhere, true
}

// skipThoughts skips a line inside <think>, up to a closing tag.
func (r *reader) skipThoughts() {
	const closing = "</think>"
	if i := strings.Index(r.text[r.pos:r.end], closing); i >= 0 {
		r.pos += i + len(closing)
		r.thinking = false
		return
	}
	r.pos = r.end
}

// beginning handles what is special at the beginning of a reply.
func (r *reader) beginning() place {
	const opening = "<think>"
	line := r.text[r.pos:r.end]
	trimmed := strings.TrimLeft(line, space)
	if trimmed == "" {
		r.pos = r.end
		return nowhere
	}
	at := r.pos + len(line) - len(trimmed)
	switch {
	case strings.HasPrefix(trimmed, opening):
		r.pos, r.thinking = at+len(opening), true
		return nowhere
	case trimmed[0] == '{' || trimmed[0] == '[' && !strings.HasPrefix(trimmed, mistral):
		r.pos, r.started = at, true
		return atWhole
	}
	r.started = true
	return nowhere
}

// lineStart looks at the beginning of a line outside fenced blocks.
func (r *reader) lineStart(final bool) (p place, sure bool) {
	line := r.text[r.pos:r.end]
	if run, info := opensFence(line); run != "" {
		mayCall, sure := r.mayHoldCalls(info, final)
		if !sure {
			return nowhere, false
		}
		if mayCall {
			return atFence, true
		}
		r.enterFence(run)
		return nowhere, true
	}
	trimmed := strings.TrimLeft(line, " ")
	r.quoted = len(line)-len(trimmed) >= 4 || strings.HasPrefix(trimmed, "\t") || strings.HasPrefix(trimmed, ">")
	r.inLine, r.afterText = true, false
	return nowhere, true
}

// enterFence moves past the line that opens a fenced block.
func (r *reader) enterFence(run string) {
	r.fence, r.pos = run, r.end
}

// mayHoldCalls decides by a fenced block's info string and first line.
func (r *reader) mayHoldCalls(info string, final bool) (may, sure bool) {
	switch strings.ToLower(info) {
	case "", "json", "xml", "tool_call", "tool_calls", "tool_code", "tool":
	default:
		return false, true
	}
	first := strings.TrimLeft(r.text[r.end:], " \t")
	if first == "" {
		return false, final
	}
	return strings.ContainsRune("{[<", rune(first[0])), true
}

// restOfLine searches the rest of a line for a tag.
func (r *reader) restOfLine() place {
	for r.pos < r.end {
		i := strings.IndexAny(r.text[r.pos:r.end], "`<[\n")
		if i < 0 {
			r.afterText, r.pos = true, r.end
			return nowhere
		}
		r.afterText = r.afterText || strings.Trim(r.text[r.pos:r.pos+i], space) != ""
		r.pos += i
		switch c := r.text[r.pos]; {
		case c == '\n':
			r.inLine, r.pos = false, r.end
			return nowhere
		case c == '`':
			r.quoted = true
		case r.quoted || r.pos > 0 && strings.IndexByte(`"'`, r.text[r.pos-1]) >= 0:
		case opensCall(r.text[r.pos:]):
			return atTag
		case !r.afterText && opensResult(r.text[r.pos:]):
			return endsCalls
		}
		r.pos, r.afterText = r.pos+1, true
	}
	return nowhere
}

// opensFence returns the run of characters that opens a fenced block and the
// text after it; both are empty if the line does not open one.
func opensFence(line string) (run, info string) {
	line = strings.Trim(line, space)
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, c)
		n := len(line) - len(rest)
		if n < 3 || c == "`" && strings.Contains(rest, c) {
			continue
		}
		return line[:n], strings.TrimLeft(rest, space)
	}
	return "", ""
}

// closes reports whether line ends the block that run opened.
func closes(line, run string) bool {
	line = strings.Trim(line, space)
	return len(line) >= len(run) && strings.Trim(line, run[:1]) == ""
}

// continueAt moves to the position after a call.
func (r *reader) continueAt(at int) {
	r.pos, r.inLine, r.quoted, r.afterText = at, true, false, true
}

// last returns the position of the last closing tag; -1 if there is none.
func (r *reader) last(closing string) int {
	at, ok := r.lastClose[closing]
	if !ok {
		at = strings.LastIndex(r.text, closing)
		r.lastClose[closing] = at
	}
	return at
}

// skip returns the first position from at on that is not white space.
func (r *reader) skip(at int) int {
	return len(r.text) - len(strings.TrimLeft(r.text[at:], space))
}

// past returns the position after word if it follows at, ignoring white space;
// otherwise it returns at.
func (r *reader) past(at int, word string) int {
	if i := r.skip(at); word != "" && strings.HasPrefix(r.text[i:], word) {
		return i + len(word)
	}
	return at
}
