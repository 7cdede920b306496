package check

import (
	"bytes"
	"io"
)

// live shows a stream without its secrets. It passes on whole lines, because a
// secret may come in two pieces; a line that is longer than most is passed on
// in parts.
type live struct {
	to     io.Writer
	redact func(string) string
	held   []byte
}

// newLive is nil, the writer that is not there, where nobody watches.
func newLive(to io.Writer, redact func(string) string) *live {
	if to == nil {
		return nil
	}
	return &live{to: to, redact: redact}
}

// writer is the live stream as a command's field, which must be a plain nil
// where there is none.
func (l *live) writer() io.Writer {
	if l == nil {
		return nil
	}
	return l
}

func (l *live) Write(p []byte) (int, error) {
	const most = 64 << 10
	l.held = append(l.held, p...)
	end := bytes.LastIndexByte(l.held, '\n') + 1
	if end == 0 && len(l.held) > most {
		end = len(l.held)
	}
	l.pass(end)
	return len(p), nil
}

// close passes on a last line that has no end.
func (l *live) close() {
	if l != nil {
		l.pass(len(l.held))
	}
}

// pass shows so many of the held bytes. Whether anybody can still see them
// does not matter to the check.
func (l *live) pass(n int) {
	if n == 0 {
		return
	}
	_, _ = io.WriteString(l.to, clean(l.redact, string(l.held[:n])))
	l.held = append(l.held[:0], l.held[n:]...)
}
