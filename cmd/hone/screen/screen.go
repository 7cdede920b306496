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

	"hone"
	"hone/check"
	"hone/internal/render"
	"hone/journal"
	"hone/workspace"
)

// Options say how much is shown and how.
type Options struct {
	// Live draws the line that grows in place; for terminals alone.
	Live bool
	// Colour paints diffs and streamed text.
	Colour bool
	// Verbose shows the model's text and the findings whole; Quiet shows
	// only what a person must know: refusals, notices and the findings that
	// are left at the end.
	Verbose, Quiet bool
	// Get reads an object of the run, for the contents of refused edits. Nil
	// shows none.
	Get func(object string) ([]byte, error)
	// Rounds is the most rounds there can be.
	Rounds int
}

// Screen writes lines. Its methods may be called from several goroutines.
type Screen struct {
	o Options

	mu      sync.Mutex
	out     io.Writer
	wait    waiting
	round   int       // whose heading was shown last
	heard   bool      // what the check that is under way printed has been shown
	asked   time.Time // when the event of the last request was made
	streams bool      // the model's text is being shown, and its line is open
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
	s := &Screen{o: o, out: out, stop: make(chan struct{})}
	if o.Live {
		s.done.Go(s.tick)
	}
	return s
}

// Close ends the growing line. It may be called again.
func (s *Screen) Close() {
	s.stopped.Do(func() {
		s.mu.Lock()
		s.waitFor("")
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

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

func (s *Screen) draw() {
	if s.wait.what == "" || s.streams {
		return
	}
	took := time.Since(s.wait.since)
	frame := spinner[int(took/(100*time.Millisecond))%len(spinner)]
	fmt.Fprintf(s.out, "\r\x1b[K  %c %s, %s", frame, s.wait.what, took.Round(time.Second))
	s.wait.drawn = true
}

// waitFor begins the growing line, or ends it for what is empty.
func (s *Screen) waitFor(what string) {
	s.clear()
	s.wait = waiting{what: what, since: time.Now()}
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

// Write shows what a child process says, line by line as it comes; nothing
// where the screen is Quiet. It makes a Screen the Live writer of a command.
func (s *Screen) Write(b []byte) (int, error) {
	if s.o.Quiet {
		return len(b), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.heard = true
	for line := range strings.Lines(string(b)) {
		fmt.Fprintf(s.out, "  | %s\n", render.Line(strings.TrimRight(line, "\r\n")))
	}
	return len(b), nil
}

// Event shows an event as a line or several, where it is worth one.
func (s *Screen) Event(e journal.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heading(e)
	switch {
	case e.Type == "notice":
		show(s, e, s.notice)
	case e.Type == "outside":
		show(s, e, s.outside)
	case e.Type == "change":
		show(s, e, s.changed)
	case e.Type == "retry":
		show(s, e, s.retried)
	case e.Type == "round":
		show(s, e, s.decided)
	case s.o.Quiet:
	default:
		s.progress(e)
	}
}

// heading begins a round; also one that an earlier process began.
func (s *Screen) heading(e journal.Event) {
	if e.Step != nil && e.Step.Round > s.round && !s.o.Quiet {
		s.round = e.Step.Round
		s.line("round %d of %d", s.round, max(s.o.Rounds, s.round))
	}
}

// progress shows what Quiet leaves out.
func (s *Screen) progress(e journal.Event) {
	begin := e.Phase == journal.Begin
	switch {
	case e.Type == "ask":
		s.asked = e.Time
		show(s, e, s.request)
	case e.Type == "reply":
		took := e.Time.Sub(s.asked)
		show(s, e, func(r hone.Replied) { s.reply(r, took) })
	case e.Type == "approval" && begin:
		s.waitFor("")
	case e.Type == "check" && begin:
		s.heard = false
		s.waitFor("checking")
	case e.Type == "check":
		show(s, e, s.checked)
	case e.Type == "end":
		s.waitFor("")
	}
}

// show decodes an event for whoever draws it. What cannot be decoded was
// written by another hone and is passed over.
func show[T any](s *Screen, e journal.Event, draw func(T)) {
	var v T
	if e.Decode(&v) == nil {
		draw(v)
	}
}

func (s *Screen) notice(n hone.Notice) { s.line("hone: %s", n.Text) }

func (s *Screen) outside(o hone.Outside) {
	for _, p := range o.Paths {
		s.line("hone: %s was changed by somebody else while the run was stopped", p)
	}
}

func (s *Screen) request(a hone.Asked) {
	s.line("  asking %s: %s, about %s tokens", a.Model, render.Bytes(a.Bytes), render.Tokens(a.Bytes/4))
	s.waitFor("waiting for " + a.Model)
}

func (s *Screen) reply(r hone.Replied, took time.Duration) {
	s.waitFor("")
	used := ""
	if u := r.Usage; u != nil {
		used = fmt.Sprintf(", %s tokens in (%s of them cached), %s out", render.Tokens(u.Input+u.CacheRead+u.CacheWrite),
			render.Tokens(u.CacheRead), render.Tokens(u.Output))
	}
	s.line("  it answered: %s in %s%s", render.Bytes(int64(r.Bytes)), took.Round(100*time.Millisecond), used)
	if !r.Finish.Normal() {
		s.line("  ! the answer did not come to its end: %s %s", string(r.Finish), r.Detail)
	}
}

func (s *Screen) retried(r hone.Retried) {
	s.line("  ! %s; trying again in %s", r.Error, time.Duration(r.Wait)*time.Millisecond)
	s.waitFor("waiting before another attempt")
}

func (s *Screen) changed(c hone.Changed) {
	switch c.Ruling {
	case workspace.Allow:
		if !s.o.Quiet {
			s.line("  %s %s%s", sign(c), c.Path, size(c))
		}
	case workspace.Drop:
		if !s.o.Quiet {
			s.line("  = %s: %s", c.Path, c.Reason)
		}
	case workspace.Declined:
		s.line("  ! %s is not changed: %s", c.Path, c.Reason)
	default:
		s.line("  ! %s is refused: %s", wanted(c), c.Reason)
		s.attempted(c)
	}
}

// wanted says what a refused edit would have done.
func wanted(c hone.Changed) string {
	path := c.Path
	if path == "" {
		path = `""`
	}
	if c.Delete {
		return "deleting " + path
	}
	return path
}

// decided shows what stood in the way of the check: why a reply was not used.
// Quiet shows what is left at the end, and nothing before.
func (s *Screen) decided(st hone.State) {
	if s.o.Quiet {
		s.left(st)
		return
	}
	for _, f := range st.Findings[:max(0, len(st.Findings)-len(st.Checked))] {
		if !f.Advisory {
			s.lines("  ! ", "    ", f.Text)
		}
	}
}

// left shows the findings that a run ends with.
func (s *Screen) left(st hone.State) {
	for _, f := range st.Findings {
		if st.Decision == hone.StopNow && !f.Advisory {
			s.finding(f)
		}
	}
}

func sign(c hone.Changed) string {
	switch {
	case c.Delete:
		return "deleted"
	case c.Before.Exists():
		return "changed"
	}
	return "created"
}

func size(c hone.Changed) string {
	if c.Delete {
		return ""
	}
	return ", " + render.Bytes(c.After.Size)
}

// attempted shows what a refused edit would have written, as the seed asks.
func (s *Screen) attempted(c hone.Changed) {
	if c.Attempted == "" || s.o.Get == nil {
		return
	}
	b, err := s.o.Get(c.Attempted)
	if err != nil {
		return
	}
	s.line("    it would have held:")
	for line := range strings.Lines(string(b)) {
		s.line("    | %s", strings.TrimSuffix(line, "\n"))
	}
}

func (s *Screen) checked(c hone.Checked) {
	s.waitFor("")
	n := len(c.Findings)
	took := c.Took.Round(100 * time.Millisecond)
	if n == 0 {
		s.line("  the check found nothing, after %s", took)
		return
	}
	s.line("  the check found %s, after %s", Count(n, "thing"), took)
	for _, f := range c.Findings {
		if s.heard && !f.Broken && (f.Source == check.SourceBuild || f.Source == check.SourceCommand) {
			s.line("    - %s failed; what it printed stands above", f.Source)
			continue
		}
		s.finding(f)
	}
}

// findingLines is how much of a finding is shown unless Verbose.
const findingLines = 8

func (s *Screen) finding(f check.Finding) {
	where := f.Source
	if f.File != "" {
		where += ", " + f.File
	}
	s.lines("    - "+render.Line(where)+": ", "      ", f.Text)
}

// lines shows a text of several lines, cut short unless Verbose.
func (s *Screen) lines(head, indent, text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	s.line("%s%s", head, lines[0])
	for i, line := range lines[1:] {
		if left := len(lines) - 1 - i; i+1 >= findingLines && left > 1 && !s.o.Verbose {
			s.line("%s[%d more lines: hone show last]", indent, left)
			return
		}
		s.line("%s%s", indent, line)
	}
}

// Count words a number of things.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Finding shows one finding.
func (s *Screen) Finding(f check.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finding(f)
}
