// Package screen shows a run to the user as plain lines. On a terminal it adds a
// status line that it redraws in place while the run waits for something. It
// reads the events of a run and does not depend on any loop.
//
// It escapes control characters in every text from a model, a checker or a file.
package screen

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"hone/internal/render"
)

// Options select what is shown and how.
type Options struct {
	// Live draws the status line. It needs a terminal.
	Live bool
	// Colour colors diffs and dims streamed text.
	Colour bool
	// Verbose shows the model's text, the start of tool output, and complete
	// findings. Quiet shows only refusals, notices and the findings that remain
	// at the end.
	Verbose, Quiet bool
	// Whole shows complete findings and lists, as Verbose does.
	Whole bool
	// Get reads an object of the run: the contents of a refused edit, or the
	// long arguments or result of a call. If it is nil, these are not shown.
	Get func(object string) ([]byte, error)
	// Own reports whether the loop itself writes a file for the user. Changes of
	// such a file are not shown. Nil means that there are no such files.
	Own func(path string) bool
	// Rounds is the maximum number of rounds.
	Rounds int
	// Turns is the maximum number of turns in a session, by role. The maximum is
	// not shown for a role that is missing or has 0.
	Turns map[string]int
}

func (o Options) whole() bool { return o.Whole || o.Verbose }

// Screen writes lines. Its methods may be called from several goroutines.
type Screen struct {
	o Options

	mu          sync.Mutex
	out         io.Writer
	wait        waiting
	round       int             // the last round with a heading
	outputShown bool            // the output of the running check or call was shown
	outputBytes int             // of the running check or call
	session     session         // the current one
	open        []call          // tool calls without a result, in the order of their start
	command     *command        // the loop's own command that is running; nil if there is none
	before      string          // object of the manifest before a role's command or session
	logs        map[string]bool // shown in this round
	requestTime time.Time       // of the last request
	streaming   bool            // the model's text is being shown, and its line has not ended
	closing     chan struct{}
	closeOnce   sync.Once
	done        sync.WaitGroup
}

// waiting is the content of the status line; the zero value shows nothing.
type waiting struct {
	what  string
	since time.Time
	drawn bool
}

// New returns a screen that writes to out until it is closed.
func New(out io.Writer, o Options) *Screen {
	s := &Screen{o: o, out: out, session: session{files: map[string]bool{}}, logs: map[string]bool{}, closing: make(chan struct{})}
	if o.Live {
		s.done.Go(s.tick)
	}
	return s
}

// Close removes the status line, and prints which calls have no result. It may
// be called more than once.
func (s *Screen) Close() {
	s.closeOnce.Do(func() {
		s.mu.Lock()
		s.waitFor("")
		s.reportOpenCalls()
		s.mu.Unlock()
		close(s.closing)
		s.done.Wait()
	})
}

// tick redraws the status line until the screen is closed.
func (s *Screen) tick() {
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-t.C:
			s.mu.Lock()
			s.draw()
			s.mu.Unlock()
		}
	}
}

// The terminal must not wrap the status line, because a wrapped line could not
// be erased. Only the terminal knows its own width and that of each character,
// so it cuts the line off.
const (
	noWrap = "\x1b[?7l"
	wrap   = "\x1b[?7h"
)

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

func (s *Screen) draw() {
	if s.wait.what == "" || s.streaming {
		return
	}
	took := time.Since(s.wait.since)
	frame := spinner[int(took/(100*time.Millisecond))%len(spinner)]
	fmt.Fprintf(s.out, "\r\x1b[K"+noWrap+"  %c %s %s"+wrap, frame, took.Round(time.Second), s.wait.what)
	s.wait.drawn = true
}

// waitFor shows what in the status line; an empty text removes the line.
func (s *Screen) waitFor(what string) {
	s.clear()
	s.wait = waiting{what: render.Line(what), since: time.Now()}
}

func (s *Screen) clear() {
	if s.streaming {
		fmt.Fprintln(s.out)
		s.streaming = false
	}
	if s.wait.drawn {
		fmt.Fprint(s.out, "\r\x1b[K")
		s.wait.drawn = false
	}
}

// Say prints a line that belongs to no event.
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

// Text shows the model's text as it arrives.
func (s *Screen) Text(text string) {
	if !s.o.Verbose || s.o.Quiet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.streaming {
		s.clear()
		s.streaming = true
	}
	text = render.Escape(text)
	if s.o.Colour {
		text = render.Dim(text)
	}
	fmt.Fprint(s.out, text)
}

// maxLiveOutput is the maximum number of bytes of one command's output that are
// shown while it runs.
const maxLiveOutput = 4 << 20

// Write shows the output of a child process line by line, up to maxLiveOutput
// bytes. It shows nothing if the screen is Quiet. It makes a Screen the Live
// writer of a command.
func (s *Screen) Write(b []byte) (int, error) {
	if s.o.Quiet {
		return len(b), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.visibleOutput(b)
	if text == "" {
		return len(b), nil
	}
	s.clear()
	s.showCallName()
	s.outputShown = true
	for line := range strings.Lines(text) {
		fmt.Fprintf(s.out, "  | %s\n", render.Line(strings.TrimRight(line, "\r\n")))
	}
	return len(b), nil
}

// visibleOutput returns the part of b that is shown, as the next output of a
// command.
func (s *Screen) visibleOutput(b []byte) string {
	if !s.outputShown {
		s.outputBytes = 0
	}
	room := maxLiveOutput - s.outputBytes
	s.outputBytes += len(b)
	switch {
	case room < 0:
		return ""
	case len(b) <= room:
		return string(b)
	}
	return string(b[:room]) + "\n[more output is not shown]"
}

// findingLines is the number of lines of a finding that are shown by default.
const findingLines = 8

// lines shows a text of several lines, shortened unless the screen shows
// everything.
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
