package texttools

import "strings"

// stream passes on what of a reply's text is surely not a call.
type stream struct {
	show func(string)
	read *reader
	text strings.Builder
	sent int  // bytes of text that were shown
	seen int  // bytes of it that are no call; from sent on they are white space
	held bool // from here on nothing is sure before the end
}

func newStream(show func(string)) *stream {
	return &stream{show: show, read: newReader("", nil)}
}

// add takes a piece of text as it arrives. Lines are judged when they are
// whole.
func (s *stream) add(piece string) {
	s.text.WriteString(piece)
	if s.held || !strings.Contains(piece, "\n") {
		return
	}
	s.read.text = s.text.String()
	p := s.read.next(false)
	for p == endsCalls {
		s.read.pos++
		p = s.read.next(false)
	}
	s.held = p != nowhere
	// White space before a call will turn out to be a part of it.
	if sure := strings.TrimRight(s.read.text[s.seen:s.read.pos], space); sure != "" {
		s.pass(s.read.text[s.sent : s.seen+len(sure)])
	}
	s.seen = s.read.pos
}

// end shows the rest of the visible text, once that is known.
func (s *stream) end(visible string) {
	if strings.HasPrefix(visible, s.text.String()[:s.sent]) {
		s.pass(visible[s.sent:])
	}
}

func (s *stream) pass(text string) {
	if text != "" {
		s.show(text)
		s.sent += len(text)
	}
}
