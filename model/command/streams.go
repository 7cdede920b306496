package command

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the stored output, in bytes.
const (
	maxStdout = 16 << 20
	maxStderr = 64 << 10
	maxTail   = 1 << 10 // of one stream, in an error
)

// streams are an agent's standard output and standard error.
type streams struct{ stdout, stderr *stream }

// stream stores the end of an output stream and shows its lines. Agents print
// the answer and the token counts last.
type stream struct {
	end       []byte
	limit     int
	truncated bool // the beginning of the output is lost
	live      io.Writer
	partial   []byte // an incomplete line
	redact    func(string) string
}

// newStreams returns the writers for one session.
func (a *Agent) newStreams() *streams {
	return &streams{
		stdout: &stream{limit: maxStdout, live: a.config.Live, redact: a.readable},
		stderr: &stream{limit: maxStderr, live: a.config.Live, redact: a.readable},
	}
}

// close shows the last, incomplete lines.
func (s *streams) close() {
	for _, one := range []*stream{s.stdout, s.stderr} {
		one.flush(len(one.partial))
	}
}

// Write never fails.
func (s *stream) Write(p []byte) (int, error) {
	s.store(p)
	if s.live == nil {
		return len(p), nil
	}
	// Only complete lines are shown, because a secret may arrive in pieces.
	const longest = 64 << 10
	s.partial = append(s.partial, p...)
	end := bytes.LastIndexByte(s.partial, '\n') + 1
	if end == 0 && len(s.partial) > longest {
		end = len(s.partial)
	}
	s.flush(end)
	return len(p), nil
}

// flush shows the first n partial bytes. A write error does not affect the
// session.
func (s *stream) flush(n int) {
	if n == 0 {
		return
	}
	_, _ = io.WriteString(s.live, s.redact(string(s.partial[:n])))
	s.partial = append(s.partial[:0], s.partial[n:]...)
}

// store appends p, and removes old output when the buffer holds twice the limit.
func (s *stream) store(p []byte) {
	if len(p) > s.limit {
		p, s.end, s.truncated = p[len(p)-s.limit:], s.end[:0], true
	}
	s.end = append(s.end, p...)
	if len(s.end) > 2*s.limit {
		s.end, s.truncated = append(s.end[:0], s.end[len(s.end)-s.limit:]...), true
	}
}

// tail returns the end of the output, and whether it is the complete output.
func (s *stream) tail() (end []byte, complete bool) {
	if len(s.end) > s.limit {
		return s.end[len(s.end)-s.limit:], false
	}
	return s.end, !s.truncated
}

// redact removes secrets from a text.
func (a *Agent) redact(text string) string {
	if a.config.Redact == nil {
		return text
	}
	return a.config.Redact(text)
}

// readable returns printed output as plain text without secrets. Secrets are
// removed last, because escape sequences may interrupt one.
func (a *Agent) readable(printed string) string { return a.redact(plainText(printed)) }

// plainText returns printed output as valid UTF-8 without terminal escape
// sequences and without control characters except tabs and line feeds.
func plainText(printed string) string {
	escape := regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))`)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, escape.ReplaceAllString(strings.ToValidUTF8(printed, "�"), ""))
}

// oneLine returns a text as one line without invisible characters.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// tails returns the ends of both streams, for an error.
func (a *Agent) tails(s *streams) string {
	var tails []string
	for _, one := range []struct {
		name string
		*stream
	}{{"stderr", s.stderr}, {"stdout", s.stdout}} {
		end, _ := one.tail()
		// The text is shortened to maxTail only after the secrets are removed,
		// because shortening could split a secret.
		end = end[max(0, len(end)-maxStderr):]
		if text := lastBytes(oneLine(a.readable(string(end))), maxTail); text != "" {
			tails = append(tails, "its "+one.name+" ends with: "+text)
		}
	}
	if len(tails) == 0 {
		return "it printed nothing"
	}
	return strings.Join(tails, "; ")
}

// lastBytes returns the end of a text, at most limit bytes without the
// ellipsis, and only whole characters.
func lastBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	from := len(text) - limit
	for !utf8.RuneStart(text[from]) {
		from++
	}
	return "…" + text[from:]
}
