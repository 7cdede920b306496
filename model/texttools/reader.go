package texttools

import (
	"strings"

	"hone/model"
)

// space is what may stand around a call.
const space = " \t\r\n"

// place says what may begin at a reader's position.
type place int

const (
	nowhere   place = iota // the text's end, or that of what is sure so far
	atWhole                // a JSON value at the reply's beginning
	atFence                // the line that opens a fenced block, of calls perhaps
	atTag                  // a tag that may open a call
	endsCalls              // a result that the model made up; no call can follow one
)

// reader goes through a reply's text, which may still grow, from one place
// where a call may begin to the next.
type reader struct {
	text     string
	tools    []model.Spec
	pos      int
	end      int    // of the line at pos, its line feed included
	begun    bool   // something other than white space and thoughts stood before pos
	thinking bool   // pos is between <think> and </think>
	mid      bool   // pos is inside a line that was looked at
	words    bool   // something other than white space stood before pos in the line
	quoted   bool   // tags of the line are quotations
	fence    string // what opened the block that pos is in; empty outside
	lasts    map[string]int
}

func newReader(text string, tools []model.Spec) *reader {
	return &reader{text: text, tools: tools, lasts: map[string]int{}}
}

// next moves to the next place. Where the text is not final, it stops before
// a line that is not whole.
func (r *reader) next(final bool) place {
	for r.pos < len(r.text) {
		if !r.measure(final) {
			return nowhere
		}
		p, sure := r.step(final)
		if p != nowhere || !sure {
			return p
		}
	}
	return nowhere
}

// measure finds the end of the line at pos; false if there is none yet.
func (r *reader) measure(final bool) bool {
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

// step looks at one line, or the rest of one. sure is false where more text
// is needed to say what it is.
func (r *reader) step(final bool) (p place, sure bool) {
	switch {
	case r.thinking:
		r.think()
	case !r.begun && !r.mid:
		return r.beginning(), true
	case r.mid:
		return r.inside(), true
	case r.fence != "":
		if closes(r.text[r.pos:r.end], r.fence) {
			r.fence = ""
		}
		r.pos = r.end
	default:
		return r.line(final)
	}
	return nowhere, true
}

// think skips a line of thoughts, or what is left of them in it.
func (r *reader) think() {
	const closing = "</think>"
	if i := strings.Index(r.text[r.pos:r.end], closing); i >= 0 {
		r.pos += i + len(closing)
		r.thinking = false
		return
	}
	r.pos = r.end
}

// beginning looks for what only stands at the beginning of a reply.
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
		r.pos, r.begun = at, true
		return atWhole
	}
	r.begun = true
	return nowhere
}

// line looks at the beginning of a line outside fenced blocks.
func (r *reader) line(final bool) (p place, sure bool) {
	line := r.text[r.pos:r.end]
	if run, info := opensFence(line); run != "" {
		mayCall, sure := r.mayHoldCalls(info, final)
		if !sure {
			return nowhere, false
		}
		if mayCall {
			return atFence, true
		}
		r.enter(run)
		return nowhere, true
	}
	trimmed := strings.TrimLeft(line, " ")
	r.quoted = len(line)-len(trimmed) >= 4 || strings.HasPrefix(trimmed, "\t") || strings.HasPrefix(trimmed, ">")
	r.mid, r.words = true, false
	return nowhere, true
}

// enter goes behind the line that opens a fenced block.
func (r *reader) enter(run string) {
	r.fence, r.pos = run, r.end
}

// mayHoldCalls looks at a fenced block's info string and first line.
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

// inside looks for a tag in the rest of a line.
func (r *reader) inside() place {
	for r.pos < r.end {
		i := strings.IndexAny(r.text[r.pos:r.end], "`<[\n")
		if i < 0 {
			r.words, r.pos = true, r.end
			return nowhere
		}
		r.words = r.words || strings.Trim(r.text[r.pos:r.pos+i], space) != ""
		r.pos += i
		switch c := r.text[r.pos]; {
		case c == '\n':
			r.mid, r.pos = false, r.end
			return nowhere
		case c == '`':
			r.quoted = true
		case r.quoted || r.pos > 0 && strings.IndexByte(`"'`, r.text[r.pos-1]) >= 0:
		case opensCall(r.text[r.pos:]):
			return atTag
		case !r.words && opensResult(r.text[r.pos:]):
			return endsCalls
		}
		r.pos, r.words = r.pos+1, true
	}
	return nowhere
}

// opensFence is the run of characters that opens a fenced block, and the word
// after it; empty where line opens none.
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

// moveTo goes on behind a call.
func (r *reader) moveTo(at int) {
	r.pos, r.mid, r.quoted, r.words = at, true, false, true
}

// last is where a closing tag stands for the last time; -1 where it does not.
func (r *reader) last(closing string) int {
	at, ok := r.lasts[closing]
	if !ok {
		at = strings.LastIndex(r.text, closing)
		r.lasts[closing] = at
	}
	return at
}

// skip is the first position from at on that is not white space.
func (r *reader) skip(at int) int {
	return len(r.text) - len(strings.TrimLeft(r.text[at:], space))
}

// past is the position behind word, if that follows at after white space, and
// otherwise at.
func (r *reader) past(at int, word string) int {
	if i := r.skip(at); word != "" && strings.HasPrefix(r.text[i:], word) {
		return i + len(word)
	}
	return at
}
