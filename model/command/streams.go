package command

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	mostOutput = 16 << 20 // of standard output
	mostErrors = 64 << 10 // of standard error
	mostWords  = 1 << 10  // of one stream, in an error
)

// streams are what an agent prints while it runs.
type streams struct{ stdout, stderr *stream }

// stream keeps the end of one of them, and shows its lines. What agents print
// last is what counts: their answer, and their counts of tokens.
type stream struct {
	end  []byte
	most int
	lost bool // more was printed than is kept
	show io.Writer
	held []byte // a line that has no end yet
	hide func(string) string
}

// listen makes the writers for one session.
func (a *Agent) listen() *streams {
	return &streams{
		stdout: &stream{most: mostOutput, show: a.config.Live, hide: a.readable},
		stderr: &stream{most: mostErrors, show: a.config.Live, hide: a.readable},
	}
}

// close shows the last lines that have no end.
func (s *streams) close() {
	for _, one := range []*stream{s.stdout, s.stderr} {
		one.pass(len(one.held))
	}
}

// Write never fails.
func (s *stream) Write(p []byte) (int, error) {
	s.keep(p)
	if s.show == nil {
		return len(p), nil
	}
	// A secret may come in two pieces, so only whole lines are shown.
	const longest = 64 << 10
	s.held = append(s.held, p...)
	end := bytes.LastIndexByte(s.held, '\n') + 1
	if end == 0 && len(s.held) > longest {
		end = len(s.held)
	}
	s.pass(end)
	return len(p), nil
}

// pass shows so many of the held bytes. Whether anybody can still see them
// does not matter to the session.
func (s *stream) pass(n int) {
	if n == 0 {
		return
	}
	_, _ = io.WriteString(s.show, s.hide(string(s.held[:n])))
	s.held = append(s.held[:0], s.held[n:]...)
}

// keep adds to the end, and moves it to the front of its memory now and then.
func (s *stream) keep(p []byte) {
	if len(p) > s.most {
		p, s.end, s.lost = p[len(p)-s.most:], s.end[:0], true
	}
	s.end = append(s.end, p...)
	if len(s.end) > 2*s.most {
		s.end, s.lost = append(s.end[:0], s.end[len(s.end)-s.most:]...), true
	}
}

// kept is the end of what was printed, and whether that is all of it.
func (s *stream) kept() (end []byte, whole bool) {
	if len(s.end) > s.most {
		return s.end[len(s.end)-s.most:], false
	}
	return s.end, !s.lost
}

// clean takes the secrets out of a text.
func (a *Agent) clean(text string) string {
	if a.config.Redact == nil {
		return text
	}
	return a.config.Redact(text)
}

// readable is what a program printed as text without its secrets. The secrets go
// last, because colours may stand within one.
func (a *Agent) readable(printed string) string { return a.clean(plain(printed)) }

// plain is what a program printed as text: valid UTF-8 without the sequences
// that colour a terminal and without control characters but tabs and line feeds.
func plain(printed string) string {
	escape := regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))`)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, escape.ReplaceAllString(strings.ToValidUTF8(printed, "�"), ""))
}

// oneLine puts a text on one line, without characters that no one sees.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// lastWords are the ends of both streams, for a person.
func (a *Agent) lastWords(s *streams) string {
	var said []string
	for _, one := range []struct {
		name string
		*stream
	}{{"error", s.stderr}, {"output", s.stdout}} {
		end, _ := one.kept()
		// What is cut off must not cut a secret in two before it is found.
		end = end[max(0, len(end)-mostErrors):]
		if words := lastBytes(oneLine(a.readable(string(end))), mostWords); words != "" {
			said = append(said, "its standard "+one.name+" ends: "+words)
		}
	}
	if len(said) == 0 {
		return "it printed nothing"
	}
	return strings.Join(said, "; ")
}

// lastBytes is the end of a text, whole runes of at most so many bytes.
func lastBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	from := len(text) - most
	for !utf8.RuneStart(text[from]) {
		from++
	}
	return "…" + text[from:]
}
