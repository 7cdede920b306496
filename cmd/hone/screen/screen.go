// Package screen shows a run to the user. Not on a terminal it prints plain lines. On
// a terminal it folds each round to one line, and keeps a few lines below it that say
// what is going on. The lines come from package story; this package knows where they go.
package screen

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"hone/check"
	"hone/cmd/hone/failure"
	"hone/history"
	"hone/internal/render"
	"hone/story"
)

// Options select what is shown and how.
type Options struct {
	story.Options // Verbose also shows the model's text; rounds are then not folded
	// Size returns the size of the terminal that the screen writes to, which may
	// change. Nil means that it is not a terminal, or that plain lines are wanted.
	Size func() (columns, rows int)
	// Colour colors diffs, marks and times.
	Colour render.Colours
	// Quiet shows only refusals, notices and the findings that remain at the end.
	Quiet bool
	// Followed means that another process works on the run. What a model sends does not
	// arrive here, so that silence means nothing.
	Followed bool
	// Tokens is the maximum number of tokens; 0 is not shown.
	Tokens int64
	// At is the flag -C for the commands that are shown; see [failure.Elsewhere].
	At string
}

func (o Options) folds() bool { return o.Size != nil && !o.Whole && !o.Verbose && !o.Quiet }

// Screen writes lines. Its methods may be called from several goroutines.
type Screen struct {
	o Options

	mu          sync.Mutex
	fold        *story.Fold
	out         io.Writer
	region      *region         // nil unless there is a terminal
	text        strings.Builder // printed since the last flush
	arriving    arriving
	details     []string // last lines of the round
	outputLines int      // of the running check or call that are shown
	more        int      // its lines after those
	streaming   bool     // the model's text is being shown, and its line has not ended
	asking      bool     // the user is asked
	closed      bool
	closing     chan struct{}
	closeOnce   sync.Once
	done        sync.WaitGroup
}

// New returns a screen that writes to out until it is closed.
func New(out io.Writer, o Options) *Screen {
	o.Notice, o.More, o.Full = failure.NoticeText, "hone show -v"+o.At, "hone show last --full"+o.At
	s := &Screen{o: o, out: out, fold: story.New(o.Options), closing: make(chan struct{})}
	if o.Size != nil {
		s.region = &region{out: out, size: o.Size}
		s.done.Go(s.tick)
	}
	return s
}

// Show shows an event as a line or several, if it is worth one.
func (s *Screen) Show(e history.Event) {
	defer s.lock()()
	s.endOutput()
	before, _ := s.fold.Open()
	lines := s.fold.Add(e)
	if now, open := s.fold.Open(); open && now.Number > before.Number {
		s.details = nil
	}
	s.print(lines)
	if st, decided := e.Payload.(history.State); decided && s.o.folds() {
		s.showBuild(st)
	}
	if r := s.fold.Ended(); r != nil && s.o.folds() {
		s.showRound(*r)
	}
}

func (s *Screen) print(lines []story.Line) {
	for _, l := range lines {
		always := l.Level == story.Always || l.Level == story.Live
		switch {
		case s.o.Quiet && !always, s.o.folds() && (l.Level == story.Unfold || l.Level == story.Live):
		case s.o.folds() && l.Level == story.Detail:
			s.details = append(s.details, l.Text)
			s.details = s.details[max(0, len(s.details)-maxDetails):]
		case l.Dim:
			s.endLine()
			s.text.WriteString(s.o.Colour.Dim(l.Text) + "\n")
		default:
			s.line(l.Text)
		}
	}
}

// maxDetails is the number of lines of a round that are shown until they are folded.
const maxDetails = 4

// The round is one line, and below the check before the first round are its first findings.
func (s *Screen) showRound(r story.Round) {
	s.endLine()
	s.details = nil
	columns, _ := s.o.Size()
	var named []string
	if blocking := check.BlockingOf(r.Findings); r.Number == 0 && len(blocking) > 1 {
		r.Verdict = check.Tally(blocking)
		named = FindingLines(blocking, columns-len("    "), "hone show"+s.o.At)
	}
	for _, line := range RoundLines(r, s.o.Colour, columns, max(s.o.Rounds, r.Number)) {
		s.text.WriteString(line + "\n")
	}
	for _, line := range named {
		s.text.WriteString("    " + line + "\n")
	}
}

// buildLines is the number of lines of a failed build that are shown above its folded
// round, and their length in characters.
const (
	buildLines = 20
	buildWidth = 160
)

// Blank lines and the headings of the two streams are left out. Of a long text the end is shown, which says why.
func (s *Screen) showBuild(st history.State) {
	for _, f := range st.Checked {
		if f.Source != check.SourceBuild {
			continue
		}
		s.endLine()
		lines := slices.DeleteFunc(strings.Split(f.Text, "\n"), func(line string) bool {
			return line == "STDOUT:" || line == "STDERR:" || strings.TrimSpace(line) == ""
		})
		if before := len(lines) - buildLines; before > 1 {
			s.text.WriteString(s.o.Colour.Dim(fmt.Sprintf("  … %s before: hone show --round %d%s", render.Count(before, "line"), st.Round, s.o.At)) + "\n")
			lines = lines[before:]
		}
		for _, line := range lines {
			s.text.WriteString("  | " + story.Short(line, buildWidth) + "\n")
		}
	}
}

// Close removes the live lines, and prints which calls have no result. It may be
// called more than once.
func (s *Screen) Close() {
	s.closeOnce.Do(func() {
		unlock := s.lock()
		s.endOutput()
		s.endLine()
		s.print(s.fold.Close())
		s.closed = true
		unlock()
		close(s.closing)
		s.done.Wait()
	})
}

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

// unlock shows what was printed since, and unlocks the screen.
func (s *Screen) lock() (unlock func()) {
	s.mu.Lock()
	return func() {
		s.flush()
		s.mu.Unlock()
	}
}

func (s *Screen) flush() {
	if s.region == nil {
		s.write(nil)
		return
	}
	columns, rows := s.o.Size()
	s.write(s.liveLines(time.Now(), columns, rows))
}

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

func (s *Screen) endLine() {
	if s.streaming {
		s.text.WriteByte('\n')
		s.streaming = false
	}
}

// Say prints a line that belongs to no event, with the control characters of its arguments
// escaped.
func (s *Screen) Say(format string, args ...any) {
	defer s.lock()()
	s.endOutput()
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = render.Line(text)
		}
	}
	s.line(fmt.Sprintf(format, args...))
}

// The text is safe to print.
func (s *Screen) line(text string) {
	s.endLine()
	if s.o.folds() && !strings.HasPrefix(strings.TrimLeft(text, " "), "| ") { // contents stay as they are
		columns, _ := s.o.Size()
		text = render.Wrap(text, columns)
	}
	if rest, warns := strings.CutPrefix(strings.TrimLeft(text, " "), "! "); warns {
		text = text[:len(text)-len(rest)-2] + s.o.Colour.Yellow("!") + " " + rest
	}
	s.text.WriteString(text + "\n")
}

// Text shows the model's text as it arrives.
func (s *Screen) Text(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrives().text += int64(len(text))
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
	a := s.arrives()
	a.received += int64(bytes)
	a.heard = time.Now()
}

// Stopping says that the run stops, because the user has interrupted it.
func (s *Screen) Stopping() { s.Say("stopping…, ^C again ends now") }

// The number of lines of one command's output that are shown, and their length in characters.
const (
	mostOutput  = 20
	wholeOutput = 50_000 // with Verbose, and while a command may ask the user
	outputWidth = 2000
)

// Write shows the output of a child process line by line. It shows nothing if the screen is
// Quiet. It makes a Screen the Live writer of a command.
func (s *Screen) Write(b []byte) (int, error) {
	if s.o.Quiet {
		return len(b), nil
	}
	if s.o.folds() && !s.o.Asking {
		s.mu.Lock()
		defer s.mu.Unlock()
		if text := strings.TrimSpace(string(b)); text != "" {
			s.arrives().output = text[strings.LastIndexAny(text, "\r\n")+1:]
		}
		return len(b), nil
	}
	defer s.lock()()
	s.endLine()
	if call := s.fold.RunningCall(); call != "" && !s.fold.Shown {
		s.line("    " + call + ":") // the line of the call comes only after its output
	}
	if !s.fold.Shown {
		s.outputLines = 0
	}
	s.fold.Shown = true
	most := mostOutput
	if s.o.Verbose || s.o.Asking {
		most = wholeOutput
	}
	for line := range bytes.Lines(b) {
		if s.outputLines++; s.outputLines > most {
			s.more++
			continue
		}
		s.text.WriteString("  | " + story.Short(string(bytes.TrimRight(line, "\r\n")), outputWidth) + "\n")
	}
	return len(b), nil
}

// If the end of an output was left out, its findings are quoted.
func (s *Screen) endOutput() {
	if s.more > 0 {
		s.line("  … " + render.Count(s.more, "more line") + ": " + s.o.Full)
		s.more, s.fold.Shown = 0, false
	}
}
