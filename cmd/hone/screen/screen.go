// Package screen shows a run to a person: plain lines, on a terminal and off
// it, and on a terminal one more line that grows in place while something is
// waited for. It reads the run's events and knows no loop.
//
// Whatever a model, a checker or a file said is shown without its control
// characters.
package screen

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"hone/internal/render"
)

// Options say how much is shown and how.
type Options struct {
	// Live draws the line that grows in place; for terminals alone.
	Live bool
	// Colour paints diffs and streamed text.
	Colour bool
	// Verbose shows the model's text, the beginning of what tools print, and
	// findings whole; Quiet shows only what a person must know: refusals,
	// notices and the findings that are left at the end.
	Verbose, Quiet bool
	// Whole shows findings whole, as Verbose does, and no more than that.
	Whole bool
	// Get reads an object of the run, for the contents of refused edits and
	// for calls with long arguments or results. Nil shows none of these.
	Get func(object string) ([]byte, error)
	// Own reports whether the loop itself writes a file for people: what
	// becomes of it is nobody's change. Nil: there is none.
	Own func(path string) bool
	// Rounds is the most rounds there can be.
	Rounds int
	// Turns is the most turns that a session of a role can have. A role that
	// is missing, or has 0, is shown without.
	Turns map[string]int
}

func (o Options) whole() bool { return o.Whole || o.Verbose }

// Screen writes lines. Its methods may be called from several goroutines.
type Screen struct {
	o Options

	mu      sync.Mutex
	out     io.Writer
	wait    waiting
	round   int             // whose heading was shown last
	heard   bool            // what the check or the call that is under way printed has been shown
	written int             // bytes of it
	session session         // that is under way
	open    []call          // tool calls without a result, in the order of their beginnings
	command *command        // the loop's own that is under way; nil: none is
	before  string          // object that holds the manifest before a command of a role's, or its session
	logs    map[string]bool // that were shown in this round
	asked   time.Time       // when the event of the last request was made
	streams bool            // the model's text is being shown, and its line is open
	stop    chan struct{}
	stopped sync.Once
	done    sync.WaitGroup
}

// waiting is what the growing line says; the zero value says nothing.
type waiting struct {
	what  string
	since time.Time
	drawn bool
}

// New makes a screen that writes to out until it is closed.
func New(out io.Writer, o Options) *Screen {
	s := &Screen{o: o, out: out, session: session{files: map[string]bool{}}, logs: map[string]bool{}, stop: make(chan struct{})}
	if o.Live {
		s.done.Go(s.tick)
	}
	return s
}

// Close ends the growing line, and says which calls have no result. It may be
// called again.
func (s *Screen) Close() {
	s.stopped.Do(func() {
		s.mu.Lock()
		s.waitFor("")
		s.closeCalls()
		s.mu.Unlock()
		close(s.stop)
		s.done.Wait()
	})
}

// tick redraws the growing line.
func (s *Screen) tick() {
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			s.mu.Lock()
			s.draw()
			s.mu.Unlock()
		}
	}
}

// A growing line that were wrapped could not be erased: the terminal, which
// alone knows its width and that of each character, cuts it off instead.
const (
	noWrap = "\x1b[?7l"
	wrap   = "\x1b[?7h"
)

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

func (s *Screen) draw() {
	if s.wait.what == "" || s.streams {
		return
	}
	took := time.Since(s.wait.since)
	frame := spinner[int(took/(100*time.Millisecond))%len(spinner)]
	fmt.Fprintf(s.out, "\r\x1b[K"+noWrap+"  %c %s %s"+wrap, frame, took.Round(time.Second), s.wait.what)
	s.wait.drawn = true
}

// waitFor begins the growing line, or ends it for what is empty.
func (s *Screen) waitFor(what string) {
	s.clear()
	s.wait = waiting{what: render.Line(what), since: time.Now()}
}

func (s *Screen) clear() {
	if s.streams {
		fmt.Fprintln(s.out)
		s.streams = false
	}
	if s.wait.drawn {
		fmt.Fprint(s.out, "\r\x1b[K")
		s.wait.drawn = false
	}
}

// Say prints lines that belong to no event.
func (s *Screen) Say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line(format, args...)
}

// line prints one line, with the control characters of its arguments escaped.
func (s *Screen) line(format string, args ...any) {
	s.clear()
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = render.Line(text)
		}
	}
	fmt.Fprintf(s.out, format+"\n", args...)
}

// Text shows the model's words as they come.
func (s *Screen) Text(text string) {
	if !s.o.Verbose || s.o.Quiet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.streams {
		s.clear()
		s.streams = true
	}
	text = render.Escape(text)
	if s.o.Colour {
		text = render.Dim(text)
	}
	fmt.Fprint(s.out, text)
}

// mostHeard is how many bytes of one command are shown as they come.
const mostHeard = 4 << 20

// Write shows what a child process says, line by line as it comes; nothing
// where the screen is Quiet. What goes beyond mostHeard is not shown. It makes a
// Screen the Live writer of a command.
func (s *Screen) Write(b []byte) (int, error) {
	if s.o.Quiet {
		return len(b), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.hear(b)
	if text == "" {
		return len(b), nil
	}
	s.clear()
	s.above()
	s.heard = true
	for line := range strings.Lines(text) {
		fmt.Fprintf(s.out, "  | %s\n", render.Line(strings.TrimRight(line, "\r\n")))
	}
	return len(b), nil
}

// hear is what is shown of more of a command's output.
func (s *Screen) hear(b []byte) string {
	if !s.heard {
		s.written = 0
	}
	room := mostHeard - s.written
	s.written += len(b)
	switch {
	case room < 0:
		return ""
	case len(b) <= room:
		return string(b)
	}
	return string(b[:room]) + "\n[more output is not shown]"
}

// findingLines is how much of a finding is shown unless in whole.
const findingLines = 8

// lines shows a text of several lines, cut short unless in whole.
func (s *Screen) lines(head, indent, text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	s.line("%s%s", head, lines[0])
	for i, line := range lines[1:] {
		if left := len(lines) - 1 - i; i+1 >= findingLines && left > 1 && !s.o.whole() {
			s.line("%s[%d more lines: hone show last]", indent, left)
			return
		}
		s.line("%s%s", indent, line)
	}
}
