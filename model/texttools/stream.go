package texttools

import "strings"

// stream emits the beginning of a reply's text that cannot be a call.
type stream struct {
	onText  func(string)
	read    *reader
	text    strings.Builder
	sent    int  // bytes that were emitted
	seen    int  // bytes that are no call; those after sent are white space
	waiting bool // the rest may contain calls, so nothing more is emitted
}

func newStream(onText func(string)) *stream {
	return &stream{onText: onText, read: newReader("", nil)}
}

// add appends a piece of text. It emits complete lines only.
func (s *stream) add(piece string) {
	s.text.WriteString(piece)
	if s.waiting || !strings.Contains(piece, "\n") {
		return
	}
	s.read.text = s.text.String()
	p := s.read.next(false)
	for p == endsCalls {
		s.read.pos++
		p = s.read.next(false)
	}
	s.waiting = p != nowhere
	// White space at the end is not emitted: before a call it is removed.
	if sure := strings.TrimRight(s.read.text[s.seen:s.read.pos], space); sure != "" {
		s.emit(s.read.text[s.sent : s.seen+len(sure)])
	}
	s.seen = s.read.pos
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
