// Package screen shows a run to the user. Not on a terminal it prints plain lines. On
// a terminal it folds each round to one line, and keeps a few lines below it that say
// what is going on. It reads the events of a run and does not depend on any loop.
//
// It escapes control characters in every text from a model, a checker or a file.
package screen

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"hone/cmd/hone/rounds"
	"hone/history"
	"hone/internal/render"
)

// Options select what is shown and how.
type Options struct {
	// Size returns the size of the terminal that the screen writes to, which may
	// change. Nil means that it is not a terminal, or that plain lines are wanted.
	Size func() (columns, rows int)
	// Typed returns how many bytes of complete lines the user has typed on the terminal
	// that no process has read. Their echo moves the live lines. Nil means that it is
	// not known.
	Typed func() int
	// Colour colors diffs, marks and times.
	Colour render.Colours
	// Verbose shows the model's text, the start of tool output, and complete
	// findings; rounds are not folded. Quiet shows only refusals, notices and the
	// findings that remain at the end.
	Verbose, Quiet bool
	// Whole shows complete findings and lists, as Verbose does.
	Whole bool
	// Asking means that a check may ask the user at the terminal: then nothing is drawn
	// while it runs, and its output is not folded.
	Asking bool
	// Followed means that another process works on the run. What a model sends does not
	// arrive here, so that silence means nothing; and events may be older than now.
	Followed bool
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
	// Tokens is the maximum number of tokens; 0 is not shown.
	Tokens int64
	// Check is the command of the check; empty if it has none.
	Check string
}

func (o Options) whole() bool { return o.Whole || o.Verbose }

// folds reports whether finished rounds fold to one line.
func (o Options) folds() bool { return o.Size != nil && !o.whole() && !o.Quiet }

// Screen writes lines. Its methods may be called from several goroutines.
type Screen struct {
	o Options

	mu          sync.Mutex
	out         io.Writer
	region      *region         // nil unless there is a terminal
	text        strings.Builder // printed since the last flush
	now         activity
	rounds      rounds.Fold
	ended       *rounds.Round   // by the last event; nil if it ended none
	details     []string        // last lines of the round
	outputShown bool            // the output of the running check or call was shown
	outputBytes int             // of the running check or call
	session     session         // the current one
	open        []call          // tool calls without a result, in the order of their start
	command     *command        // the loop's own command that is running; nil if there is none
	logs        map[string]bool // shown in this round
	requestTime time.Time       // of the last request
	streaming   bool            // the model's text is being shown, and its line has not ended
	asking      bool            // the user is asked
	spent       spending
	outage      history.Outage
	at          time.Time // of the event that is being shown; zero if none is
	closed      bool
	closing     chan struct{}
	closeOnce   sync.Once
	done        sync.WaitGroup
}

// New returns a screen that writes to out until it is closed.
func New(out io.Writer, o Options) *Screen {
	s := &Screen{o: o, out: out, session: session{files: map[string]bool{}}, logs: map[string]bool{}, closing: make(chan struct{})}
	s.rounds = rounds.Fold{Get: o.Get, Own: o.Own, Lines: o.folds()}
	if o.Size != nil {
		s.region = &region{out: out, size: o.Size, typed: o.Typed}
		s.done.Go(s.tick)
	}
	return s
}

// Close removes the live lines, and prints which calls have no result. It may be
// called more than once.
func (s *Screen) Close() {
	s.closeOnce.Do(func() {
		unlock := s.lock()
		s.endLine()
		s.waitFor("")
		s.reportOpenCalls()
		s.closed = true
		unlock()
		close(s.closing)
		s.done.Wait()
	})
}

// tick redraws the live lines until the screen is closed.
func (s *Screen) tick() {
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-t.C:
			s.lock()()
		}
	}
}

// lock locks the screen. The function that it returns shows what was printed since,
// and unlocks it.
func (s *Screen) lock() (unlock func()) {
	s.mu.Lock()
	return func() {
		s.flush()
		s.mu.Unlock()
	}
}

// flush writes what was printed, and redraws the live lines.
func (s *Screen) flush() {
	if s.region == nil {
		s.write(nil)
		return
	}
	columns, rows := s.o.Size()
	s.write(s.liveLines(time.Now(), columns, rows))
}

// write writes what was printed above these live lines.
func (s *Screen) write(lines []string) {
	text := s.text.String()
	s.text.Reset()
	switch {
	case s.region != nil:
		s.region.update(text, lines)
	case text != "":
		_, _ = io.WriteString(s.out, text)
	}
}

// Around calls print, which writes to the terminal by itself, while no live lines are
// drawn. It must write complete lines, and must not use the screen.
func (s *Screen) Around(print func()) {
	defer s.lock()()
	s.endLine()
	s.write(nil)
	print()
}

// endLine ends the line of a model's text.
func (s *Screen) endLine() {
	if s.streaming {
		s.text.WriteByte('\n')
		s.streaming = false
	}
}

// Say prints a line that belongs to no event.
func (s *Screen) Say(format string, args ...any) {
	defer s.lock()()
	s.line(format, args...)
}

// line prints one line, with the control characters of its arguments escaped.
func (s *Screen) line(format string, args ...any) {
	s.endLine()
	text := lineText(format, args)
	if s.o.folds() && !strings.HasPrefix(strings.TrimLeft(text, " "), "| ") { // contents stay as they are
		columns, _ := s.o.Size()
		text = render.Wrap(text, columns)
	}
	if rest, warns := strings.CutPrefix(strings.TrimLeft(text, " "), "! "); warns {
		text = text[:len(text)-len(rest)-2] + s.o.Colour.Yellow("!") + " " + rest
	}
	s.text.WriteString(text + "\n")
}

// lineText formats a line, with the control characters of its arguments escaped.
func lineText(format string, args []any) string {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = render.Line(text)
		}
	}
	return fmt.Sprintf(format, args...)
}

// detail prints a line that is folded with its round.
func (s *Screen) detail(format string, args ...any) {
	if !s.o.folds() {
		s.line(format, args...)
		return
	}
	s.details = append(s.details, lineText(format, args))
	if n := len(s.details); n > maxDetails {
		s.details = s.details[n-maxDetails:]
	}
}

// maxDetails is the number of lines of a round that are shown until they are folded.
const maxDetails = 4

// Text shows the model's text as it arrives.
func (s *Screen) Text(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.text += int64(len(text))
	if !s.o.Verbose || s.o.Quiet {
		return
	}
	s.streaming = true
	s.text.WriteString(s.o.Colour.Dim(render.Escape(text)))
	s.flush()
}

// Received notes that so many bytes of a model's response have arrived.
func (s *Screen) Received(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.received += int64(bytes)
	s.now.heard = time.Now()
}

// Stopping says that the run stops, because the user has interrupted it.
func (s *Screen) Stopping() { s.Say("stopping…, ^C again ends now") }

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
	if s.o.folds() && !s.o.Asking {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now.output = lastLine(string(b), s.now.output)
		return len(b), nil
	}
	defer s.lock()()
	text := s.visibleOutput(b)
	if text == "" {
		return len(b), nil
	}
	s.endLine()
	s.showCallName()
	s.outputShown = true
	for line := range strings.Lines(text) {
		fmt.Fprintf(&s.text, "  | %s\n", render.Line(strings.TrimRight(line, "\r\n")))
	}
	return len(b), nil
}

// lastLine returns the last line of a text that is not empty, or else another line.
func lastLine(text, otherwise string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return otherwise
	}
	return text[strings.LastIndexAny(text, "\r\n")+1:]
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

// The number of lines of a text that are shown by default: its first lines, which say
// what failed, and its end, which says why.
const (
	headLines = 3
	tailLines = 8
)

// lines shows a text of several lines, shortened unless the screen shows
// everything.
func (s *Screen) lines(head, indent, text string) {
	s.printLines(s.line, head, indent, text)
}

func (s *Screen) printLines(print func(string, ...any), head, indent, text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	omitted := len(lines) - headLines - tailLines
	if omitted <= 1 || s.o.whole() {
		omitted = 0
	}
	for i, line := range lines {
		switch {
		case i == 0:
			print("%s%s", head, line)
		case omitted > 0 && i == headLines:
			print("%s[%d lines omitted: hone show -v]", indent, omitted)
		case i < headLines || i >= headLines+omitted:
			print("%s%s", indent, line)
		}
	}
}
