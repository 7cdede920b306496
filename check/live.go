package check

import (
	"bytes"
	"io"
	"unicode/utf8"

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

// A nil to discards what is written.
func newLive(to io.Writer, redact func(string) string) *live { return &live{to: to, redact: redact} }

func (l *live) Write(p []byte) (int, error) {
	const most = 64 << 10 // twice as much as the longest secret
	if l.to == nil {
		return len(p), nil
	}
	l.pending = append(l.pending, p...)
	end := bytes.LastIndexByte(l.pending, '\n') + 1
	if end == 0 && len(l.pending) > most {
		end = l.cut(len(l.pending) / 2)
	}
	l.emit(end)
	return len(p), nil
}

// cut returns a position close to n at which no secret is.
func (l *live) cut(n int) int {
	const around = 1 << 10
	clean := func(b []byte) string { return applyRedact(l.redact, excerpt.Output(b)) }
	for at := n; at > n-around; at-- {
		before, after := l.pending[at-around:at], l.pending[at:at+around]
		if utf8.RuneStart(after[0]) && clean(l.pending[at-around:at+around]) == clean(before)+clean(after) {
			return at
		}
	}
	return n
}

// The last line may have no newline.
func (l *live) close() { l.emit(len(l.pending)) }

// Errors of the viewer do not affect the check.
func (l *live) emit(n int) {
	if n == 0 {
		return
	}
	_, _ = io.WriteString(l.to, applyRedact(l.redact, excerpt.Output(l.pending[:n])))
	l.pending = append(l.pending[:0], l.pending[n:]...)
}
