package screen_test

import (
	"bytes"
	"fmt"
	"hone/story"
	"strings"
	"sync"
	"testing"

	"hone"
	"hone/check"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

// buffer is safe for concurrent use: the goroutine of the status line also
// writes to it.
type buffer struct {
	mu     sync.Mutex
	b      bytes.Buffer
	writes chan struct{}
}

func newBuffer() *buffer { return &buffer{writes: make(chan struct{}, 100)} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.writes <- struct{}{}:
	default:
	}
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// feed appends entries to a real journal that the screen observes.
func feed(t *testing.T, s *screen.Screen, entries ...journal.Entry) {
	t.Helper()
	home, err := journal.OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	j, err := home.Create(home.NewRun())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	j.Observe(history.Observer(s.Show))
	for _, e := range entries {
		if _, err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
}

func at(round int, name string) *journal.Identity { return &journal.Identity{Round: round, Name: name} }

// evil is a text that tries to draw on the terminal and to forge a line.
const evil = "x\x1b[2J\x07\u202e\nround 9 of 9"

// all returns one event of each kind that is shown, with evil in every text that
// does not come from hone.
func all() []journal.Entry {
	begin, record := journal.Begin, journal.Record
	finding := check.Finding{Source: evil, File: evil, Text: evil}
	return []journal.Entry{
		{Type: "notice", Payload: history.Notice{Text: evil}},
		{Type: "outside", Payload: history.Outside{Paths: []string{evil}}},
		{Type: "ask", Phase: begin, Step: at(1, "editor"), Payload: history.Asked{Model: evil, Bytes: 400}},
		{Type: "retry", Payload: history.Retried{Error: evil, Wait: 1000}},
		{Type: "reply", Phase: record, Step: at(1, "editor"), Payload: history.Replied{Model: evil, Finish: model.Length, Detail: evil, Bytes: 12}},
		{Type: "change", Phase: record, Step: at(1, "change"), Payload: history.Changed{Verdict: workspace.Verdict{Path: evil, Ruling: workspace.Deny, Reason: evil}}},
		{Type: "command", Phase: begin, Step: at(1, evil), Payload: history.CommandBegun{}},
		{Type: "command", Phase: record, Step: at(1, evil), Payload: history.Report{Said: evil, Log: evil}},
		{Type: "command", Phase: begin, Step: at(1, evil+evil), Payload: history.CommandBegun{}},
		{Type: "step", Phase: record, Step: at(1, "step"), Payload: history.Report{Said: evil}},
		{Type: "server", Payload: history.Served{What: history.Up, URL: evil}},
		{Type: "ask", Phase: begin, Step: at(1, "agent"), Payload: history.Asked{Role: evil, Model: evil, Bytes: 400, Command: true}},
		{Type: "reply", Phase: record, Step: at(1, "agent"), Payload: history.Replied{Role: evil, Model: evil, Finish: model.Length, Detail: evil}},
		{Type: "check", Phase: begin, Step: at(1, "check")},
		{Type: "check", Phase: record, Step: at(1, "check"), Payload: history.Checked{Findings: []check.Finding{finding}}},
		{Type: "round", Payload: hone.State{Round: 1, Decision: hone.StopNow, Findings: []check.Finding{finding}}},
		{Type: "end", Payload: hone.End{Kind: hone.Kind(evil)}},
	}
}

func TestScreenShowsNoControls(t *testing.T) {
	for name, o := range map[string]screen.Options{"plain": {Options: story.Options{Rounds: 3}}, "verbose": {Options: story.Options{Rounds: 3, Verbose: true}}, "quiet": {Quiet: true}} {
		out := newBuffer()
		s := screen.New(out, o)
		feed(t, s, all()...)
		s.Say("%s", evil)
		s.Text(evil + "\n")
		_, _ = s.Write([]byte(evil + "\n"))
		s.Close()
		if strings.ContainsAny(out.String(), "\x1b\x07\u202e\r") {
			t.Errorf("%s: %q", name, out.String())
		}
		forged := 0
		if o.Verbose {
			forged = 1 // streamed text keeps its lines
		}
		if n := strings.Count(out.String(), "\nround 9 of 9"); n != forged {
			t.Errorf("%s: %d forged lines, want %d, in\n%s", name, n, forged, out.String())
		}
	}
}

func TestScreenHeadsEachRoundOnce(t *testing.T) {
	out := newBuffer()
	s := screen.New(out, screen.Options{Options: story.Options{Rounds: 2}})
	feed(t, s, journal.Entry{Type: "step", Phase: journal.Begin, Step: at(1, "open")}, journal.Entry{Type: "step", Phase: journal.Begin, Step: at(1, "compose")},
		journal.Entry{Type: "step", Phase: journal.Begin, Step: at(2, "open")}, journal.Entry{Type: "step", Phase: journal.Begin, Step: at(3, "open")})
	s.Close()
	if want := "round 1 of 2\nround 2 of 2\nround 3 of 3\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestQuietShowsWhatOneMustKnow compares the output with and without Quiet.
func TestQuietShowsWhatOneMustKnow(t *testing.T) {
	entries := []journal.Entry{
		{Type: "notice", Payload: history.Notice{Text: "a notice"}},
		{Type: "ask", Phase: journal.Begin, Step: at(1, "editor"), Payload: history.Asked{Model: "a/b", Bytes: 400}},
		{Type: "change", Phase: journal.Record, Step: at(1, "change"), Payload: history.Changed{Verdict: workspace.Verdict{Path: "made", Ruling: workspace.Allow}}},
		{Type: "change", Phase: journal.Record, Step: at(1, "change"), Payload: history.Changed{Verdict: workspace.Verdict{Path: "refused", Ruling: workspace.Deny}}},
		{Type: "change", Phase: journal.Record, Step: at(1, "change"), Payload: history.Changed{Verdict: workspace.Verdict{Path: "declined", Ruling: workspace.Declined}}},
		{Type: "round", Payload: hone.State{Round: 1, Decision: hone.AnotherRound, Findings: []check.Finding{{Source: "s", Text: "not yet the end"}}}},
		{Type: "round", Payload: hone.State{Round: 2, Decision: hone.StopNow, Findings: []check.Finding{{Source: "s", Text: "left over"}, {Source: "s", Text: "by the way", Advisory: true}}}},
	}
	shown := func(o screen.Options) string {
		out := newBuffer()
		s := screen.New(out, o)
		feed(t, s, entries...)
		_, _ = s.Write([]byte("a child's words\n"))
		s.Close()
		return out.String()
	}
	quiet, loud := shown(screen.Options{Quiet: true}), shown(screen.Options{})
	for _, want := range []string{"a notice", "! refused is refused", "! declined is not changed"} {
		if !strings.Contains(quiet, want) || !strings.Contains(loud, want) {
			t.Errorf("%q is not shown:\n%s\n%s", want, quiet, loud)
		}
	}
	for _, not := range []string{"round 1", "asking a/b", "created made", "not yet the end", "left over", "a child's words"} {
		if strings.Contains(quiet, not) || !strings.Contains(loud, not) {
			t.Errorf("%q is not what Quiet leaves out:\n%s\n%s", not, quiet, loud)
		}
	}
	if strings.Contains(quiet+loud, "by the way") {
		t.Error("a note is shown as a finding that is left")
	}
}

func TestTextIsShownWithVerboseAlone(t *testing.T) {
	for _, test := range []struct {
		o    screen.Options
		want string
	}{
		{screen.Options{}, "next\n"},
		{screen.Options{Options: story.Options{Verbose: true}}, "one two\nnext\n"},
		{screen.Options{Options: story.Options{Verbose: true}, Colour: true}, "\x1b[2mone \x1b[0m\x1b[2mtwo\x1b[0m\nnext\n"},
		{screen.Options{Options: story.Options{Verbose: true}, Quiet: true}, "next\n"},
	} {
		out := newBuffer()
		s := screen.New(out, test.o)
		s.Text("one ")
		s.Text("two")
		s.Say("next")
		s.Close()
		if out.String() != test.want {
			t.Errorf("%+v: %q, want %q", test.o, out.String(), test.want)
		}
	}
}

// TestAround: what is written around the screen follows what the screen printed, and
// no live lines are there meanwhile.
func TestAround(t *testing.T) {
	for name, o := range map[string]screen.Options{"plain": {Options: story.Options{Verbose: true}}, "terminal": {Options: story.Options{Verbose: true}, Size: size(80, 24)}} {
		out := newBuffer()
		s := screen.New(out, o)
		feed(t, s, askedModel(1))
		s.Text("thinking")
		s.Around(func() {
			_, _ = out.Write([]byte("a thought\n"))
		})
		s.Close()
		if got := terminal(out.String(), 80); !strings.HasSuffix(got, "\nthinking\na thought\n") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

func TestFindingIsCutUnlessVerbose(t *testing.T) {
	f := check.Finding{Source: "checker", File: "a", Text: strings.Repeat("line\n", 20)}
	for verbose, want := range map[bool]int{false: 11, true: 20} {
		out := newBuffer()
		s := screen.New(out, screen.Options{Options: story.Options{Verbose: verbose}})
		feed(t, s, journal.Entry{Type: "check", Phase: journal.Record, Step: at(1, "check"), Payload: history.Checked{Findings: []check.Finding{f}}})
		s.Close()
		if got := strings.Count(out.String(), "line\n"); got != want {
			t.Errorf("verbose %v: %d lines, want %d:\n%s", verbose, got, want, out.String())
		}
		if strings.Contains(out.String(), "lines omitted: hone show -v]") == verbose {
			t.Errorf("verbose %v: the omitted lines are reported wrongly:\n%s", verbose, out.String())
		}
	}
}

// Of many findings a screen shows twelve, and counts the others.
func TestManyFindings(t *testing.T) {
	var found []check.Finding
	for range 30 {
		found = append(found, check.Finding{Source: "checker", Text: "a\nb"})
	}
	found = append(found, check.Finding{Source: "checker", Text: "… and 70 more findings", More: 70})
	for _, c := range []struct {
		options screen.Options
		lines   int
		has     string
	}{
		{screen.Options{}, 26, "    … and 88 more findings: hone show -v\n"},
		{screen.Options{Options: story.Options{Whole: true}}, 62, "    - checker: … and 70 more findings\n"},
	} {
		var out bytes.Buffer
		s := screen.New(&out, c.options)
		s.Show(history.Event{Event: journal.Event{Step: &journal.Identity{Round: 1, Name: "check"}}, Payload: history.Checked{Findings: found}})
		s.Close()
		_, shown, _ := strings.Cut(out.String(), "the check reports 100 findings")
		if n := strings.Count(shown, "\n"); n != c.lines || !strings.Contains(shown, c.has) {
			t.Errorf("%d lines:\n%s", n, shown)
		}
	}
}

// Of many files that were changed outside a run the screen names a few.
func TestManyFilesOutside(t *testing.T) {
	var out bytes.Buffer
	s := screen.New(&out, screen.Options{})
	s.Show(history.Event{Payload: history.Outside{Paths: strings.Fields(strings.Repeat("a ", 1000))}})
	s.Close()
	if n := strings.Count(out.String(), "\n"); n != 13 || !strings.HasSuffix(out.String(), "\nhone: … and 988 more files: hone show -v\n") {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

func TestRefusedContentsAreShown(t *testing.T) {
	out := newBuffer()
	s := screen.New(out, screen.Options{Options: story.Options{Get: func(object string) ([]byte, error) { return []byte("of " + object + "\n\x1b[2J\n"), nil }}})
	feed(t, s, journal.Entry{Type: "change", Phase: journal.Record, Step: at(1, "change"),
		Payload: history.Changed{Verdict: workspace.Verdict{Path: "../x", Ruling: workspace.Deny, Reason: "why"}, Attempted: "abc"}})
	s.Close()
	want := "  ! ../x is refused: why\n    its contents would have been:\n    | of abc\n    | \\x1b[2J\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestMuchOutput: of the output of a check, however much it is, the first lines
// are shown, and the next check is shown from its start.
func TestMuchOutput(t *testing.T) {
	out := newBuffer()
	s := screen.New(out, screen.Options{})
	for range 2 {
		feed(t, s, journal.Entry{Type: "check", Phase: journal.Begin, Step: at(1, "check")})
		for i := range 5000 {
			if _, err := fmt.Fprintf(s, "line %d %s\n", i, strings.Repeat("x", 10_000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Close()
	got := out.String()
	for text, times := range map[string]int{"  … 4980 more lines: hone show last --full\n": 2, "  | line ": 40, "line 0 ": 2, "line 19 ": 2, "line 20 ": 0} {
		if n := strings.Count(got, text); n != times {
			t.Errorf("%q is shown %d times, want %d", text, n, times)
		}
	}
	if len(got) > 40*2100 {
		t.Errorf("%d bytes are shown", len(got))
	}
}

func TestCount(t *testing.T) {
	if a, b := render.Count(1, "round"), render.Count(2, "round"); a != "1 round" || b != "2 rounds" {
		t.Errorf("%s, %s", a, b)
	}
}
