package check

import (
	"bytes"
	"io"

	"hone/internal/excerpt"
)

// live forwards a stream without its secrets. It forwards complete lines,
// because a secret may arrive in two pieces; a very long line is forwarded in
// parts.
type live struct {
	to      io.Writer
	redact  func(string) string
	pending []byte
}

// newLive returns nil if to is nil.
func newLive(to io.Writer, redact func(string) string) *live {
	if to == nil {
		return nil
	}
	return &live{to: to, redact: redact}
}

// writer returns l as an io.Writer, or a nil interface if l is nil.
func (l *live) writer() io.Writer {
	if l == nil {
		return nil
	}
	return l
}

func (l *live) Write(p []byte) (int, error) {
	const most = 64 << 10
	l.pending = append(l.pending, p...)
	end := bytes.LastIndexByte(l.pending, '\n') + 1
	if end == 0 && len(l.pending) > most {
		end = len(l.pending)
	}
	l.emit(end)
	return len(p), nil
}

// close forwards a last line without a newline.
func (l *live) close() {
	if l != nil {
		l.emit(len(l.pending))
	}
}

// emit forwards the first n pending bytes. Errors of the viewer do not affect
// the check.
func (l *live) emit(n int) {
	if n == 0 {
		return
	}
	_, _ = io.WriteString(l.to, applyRedact(l.redact, excerpt.Output(l.pending[:n])))
	l.pending = append(l.pending[:0], l.pending[n:]...)
}
