package screen_test

import (
	"fmt"
	"hone/story"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/crashtest/waittest"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

// size returns a function for a terminal of a fixed size.
func size(columns, rows int) func() (int, int) {
	return func() (int, int) { return columns, rows }
}

// live returns what a terminal, by default of 120 columns, shows after entries, while the
// run goes on. Every time of the clock is 0s.
func live(t *testing.T, o screen.Options, entries ...journal.Entry) string {
	t.Helper()
	if o.Size == nil {
		o.Size = size(120, 24)
	}
	columns, _ := o.Size()
	out := newBuffer()
	s := screen.New(out, o)
	defer s.Close()
	feed(t, s, entries...)
	return clocks.ReplaceAllString(terminal(out.String(), columns), "0s")
}

var clocks = regexp.MustCompile(`\b[0-9]+(\.[0-9])?s\b`)

func askedModel(round int) journal.Entry {
	return journal.Entry{Type: "ask", Phase: journal.Begin, Step: at(round, "editor"), Payload: history.Asked{Role: "editor", Model: "gemini/gemini-2.5-pro", Bytes: 400}}
}

func edited(round int, path, before, after string) journal.Entry {
	return journal.Entry{Type: "change", Phase: journal.Record, Step: at(round, "change"), Payload: history.Changed{
		Verdict: workspace.Verdict{Path: path, Ruling: workspace.Allow, Before: image(before), After: image(after)}}}
}

func deleted(round int, path, before string) journal.Entry {
	return journal.Entry{Type: "change", Phase: journal.Record, Step: at(round, "change"), Payload: history.Changed{
		Verdict: workspace.Verdict{Path: path, Ruling: workspace.Allow, Before: image(before)}, Delete: true}}
}

// image returns the image of a file whose digest is its contents.
func image(content string) workspace.Image {
	return workspace.Image{Mode: 0o644, Digest: content, Size: int64(len(content))}
}

func objects(digest string) ([]byte, error) { return []byte(digest), nil }

func decided(round int, st hone.State) journal.Entry {
	st.Round = round
	return journal.Entry{Type: "round", Payload: st}
}

const output = "The check command failed: exit status 1.\n\n    go vet ./...\n\nIts output:\n\n    # demo\n    ./main.go:25:3: undefined: json\n    vet failed\n"

// TestRoundsFold: a finished round is one line, and its details are gone.
func TestRoundsFold(t *testing.T) {
	failed := []check.Finding{{Source: "check", Text: output}, {Source: "check", File: "b.go", Text: "another"}}
	cost := 0.0123
	entries := []journal.Entry{
		askedModel(1), edited(1, "main.go", "one\n", "two\nthree\n"),
		{Type: "commit", Payload: history.Commit{Tokens: 434, Usage: &model.Usage{Input: 400, Output: 34}, Basis: "provider"}},
		{Type: "commit", Payload: history.Commit{Tokens: 139_000, Basis: "assumed in full"}}, // unconfirmed
		{Type: "usage", Payload: history.Usage{Tokens: 2434, Cost: &cost, Known: model.Usage{Input: 2000, Output: 434}}},
		decided(1, hone.State{Decision: hone.AnotherRound, Findings: failed, Checked: failed}),
		askedModel(2), edited(2, "a", "x\n", "y\n"), deleted(2, "b", "x\n"), edited(2, "same", "x\n", "y\n"), edited(2, "same", "y\n", "x\n"),
	}
	o := screen.Options{Options: story.Options{Rounds: 8, Get: objects}, Tokens: 5_000_000}
	want := `✗ round 1  main.go +2 −1                  ./main.go:25:3: undefined: json (+1)                               0s   434
  round 2/8  2 files +1 −2
    changed a +1 −1
    deleted b −1
    changed same +1 −1
    changed same +1 −1
⠋ gemini-2.5-pro, editor  0s
  0s · 2.4k of 5M tokens · $0.0123
`
	if diff := cmp.Diff(want, live(t, o, entries...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	for name, tt := range map[string]struct {
		st   hone.State
		want string
	}{
		"done":   {hone.State{Decision: hone.Done, Why: "the check passes"}, "✓ round 2  2 files +1 −2 "},
		"reply":  {hone.State{Decision: hone.AnotherRound, Findings: []check.Finding{{Source: "reply", Text: "not JSON"}}}, "! round 2  2 files +1 −2 "},
		"circle": {hone.State{Decision: hone.AnotherRound, Findings: failed, Checked: failed, Same: new(1)}, "  ↻ nothing changed: ./main"},
		"return": {hone.State{Decision: hone.AnotherRound, Findings: failed, Checked: failed, Same: new(0)}, "  ↻ as before the first round: ./main"},
	} {
		if got := live(t, o, append(entries[:len(entries):len(entries)], decided(2, tt.st))...); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q is not shown:\n%s", name, tt.want, got)
		}
	}
	if got := live(t, o, append(entries[:len(entries):len(entries)], journal.Entry{Type: "end", Payload: hone.End{}})...); !strings.Contains(got, "\n- round 2  2 files +1 −2 ") || !strings.Contains(got, "  not finished  ") {
		t.Errorf("the round that was cut off is not shown:\n%s", got)
	}
}

// TestFailedBuild: the output of a failed build stands above its folded round, whole or
// its end.
func TestFailedBuild(t *testing.T) {
	show := func(o screen.Options, output string, st hone.State) string {
		st.Findings = []check.Finding{{Source: check.SourceBuild, Text: "STDOUT:\n" + output + "\n\nSTDERR:\n\x1b[31mld: error 5\n\n\nbuild.sh: exit status 1\n"}}
		st.Checked = st.Findings
		return live(t, o, askedModel(1), decided(1, st))
	}
	o := screen.Options{Size: size(80, 24)}
	want := `  | one
  | \x1b[31mld: error 5
  | build.sh: exit status 1
✗ round 1                       \x1b[31mld: error 5                  0s     0
`
	got, _, _ := strings.Cut(show(o, "one", hone.State{Decision: hone.AnotherRound}), "  round 1/1\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("short (-want +got):\n%s", diff)
	}
	long := strings.Repeat("line\n", 30)
	if got := show(o, long, hone.State{Decision: hone.AnotherRound}); !strings.HasPrefix(got, "  … 12 lines before: hone show --round 1\n  | line\n") || strings.Count(got, "  | ") != 20 {
		t.Errorf("long:\n%s", got)
	}
}

// TestLinesWrapAtWords: a line that is too wide for a terminal goes on indented, and plain
// output does not.
func TestLinesWrapAtWords(t *testing.T) {
	const text = "hone: commands run behind hidden (hidden, Landlock ABI 7)"
	for width, want := range map[int]string{
		40: "hone: commands run behind hidden\n  (hidden, Landlock ABI 7)\n",
		80: text + "\n",
		0:  text + "\n",
	} {
		o := screen.Options{}
		if width > 0 {
			o.Size = size(width, 24)
		}
		out := newBuffer()
		s := screen.New(out, o)
		s.Say(text)
		s.Close()
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", width, diff)
		}
	}
}

// TestCommandAndTime: a long command does not hide how long it has been running.
func TestCommandAndTime(t *testing.T) {
	o := screen.Options{Options: story.Options{Check: "go vet ./... && go test ./... -run TestEverything"}, Size: size(40, 24)}
	got := live(t, o, journal.Entry{Type: "check", Phase: journal.Begin, Step: at(1, "check"), Payload: history.CheckBegun{}})
	if !strings.Contains(got, "⠋ checking  go vet ./... && go tes…  0s\n") {
		t.Errorf("the time is not shown:\n%s", got)
	}
}

// TestMeasuring: a run with a number as its judge shows the best so far, also while it measures.
func TestMeasuring(t *testing.T) {
	score := &history.Score{Name: "ms", Lower: true, First: 812, Best: 690, Noise: 0.012, Tried: 11, Gains: 4, Kept: true}
	got := live(t, screen.Options{Size: size(80, 24)}, decided(1, hone.State{Decision: hone.AnotherRound, Score: score}), askedModel(2),
		journal.Entry{Type: "step", Phase: journal.Begin, Step: at(2, history.StepMeasure)})
	if want := "  best ms 812 → 690 (−15 % ± 1.2 %), 4 kept of 11\n⠋ measuring  0s\n"; !strings.Contains(got, want) {
		t.Errorf("%s\nlacks:\n%s", got, want)
	}
}

// TestRoundsAlign: the figures of rounds end in one column, whatever their verdicts are.
// One that is too long for its round's line has the next line.
func TestRoundsAlign(t *testing.T) {
	finding := func(text string) []check.Finding { return []check.Finding{{Source: "check", Text: text}} }
	short, long := finding("undefined: json"), finding("Format(40) is XXXX, and in Roman numerals it is written XL, a smaller symbol before a larger one")
	entries := []journal.Entry{
		askedModel(1), edited(1, "roman.go", "one\n", "two\n"), decided(1, hone.State{Decision: hone.AnotherRound, Findings: short, Checked: short}),
		askedModel(2), edited(2, "roman.go", "two\n", "one\n"), decided(2, hone.State{Decision: hone.AnotherRound, Findings: long, Checked: long}),
	}
	for columns, want := range map[int]string{
		40: `✗ round 1  roman.go +1 −1    0s     0
    undefined: json
✗ round 2  roman.go +1 −1    0s     0
    Format(40) is XXXX, and in Roman n…
`,
		80: `✗ round 1  roman.go +1 −1       undefined: json                      0s     0
✗ round 2  roman.go +1 −1                                            0s     0
    Format(40) is XXXX, and in Roman numerals it is written XL, a smaller symb…
`,
		200: `✗ round 1  roman.go +1 −1                 undefined: json                                                    0s     0
✗ round 2  roman.go +1 −1                                                                                    0s     0
    Format(40) is XXXX, and in Roman numerals it is written XL, a smaller symbol before a larger one
`,
	} {
		got, _, _ := strings.Cut(live(t, screen.Options{Options: story.Options{Get: objects}, Size: size(columns, 24)}, entries...), "  round 2/2\n")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", columns, diff)
		}
	}
}

// TestVerdictOfARound: the line of a round quotes the line of a finding that says most.
func TestVerdictOfARound(t *testing.T) {
	for text, want := range map[string]string{
		output: "./main.go:25:3: undefined: json",
		"STDOUT:\ncompiling\nSTDERR:\nld: ERROR 5\nbuild.sh: exit status 1\n":                                         "ld: ERROR 5",
		"STDOUT:\none\nSTDERR:\ntwo\nbuild.sh: exit status 1\n":                                                       "build.sh: exit status 1",
		"The check command failed: exit status 1.\n\n    x\n\nIts output: (empty)\n":                                  "The check command failed: exit status 1.",
		"Its output:\n--- FAIL: TestFour (0.00s)\n    roman_test.go:7: 4 is IIII, want IV\nFAIL\nFAIL\troman\t0.001s": "roman_test.go:7: 4 is IIII, want IV",
		"Its output:\n--- FAIL: TestFour (0.00s)\npanic: no IV\nFAIL\troman\t0.001s":                                  "panic: no IV",
		"Its output:\ntest four ... FAILED\nfailures:\n\nassertion `left == right` failed":                            "assertion `left == right` failed",
		"Its output:\n=== FAILURES ===\n___ test_four ___\nE   assert 'IIII' == 'IV'":                                 "E   assert 'IIII' == 'IV'",
		"Its output:\nok\nFAIL\troman [setup]\nexit status 1":                                                         "FAIL roman [setup]",
		"The title must become x\nerror in line 2":                                                                    "The title must become x",
	} {
		failed := []check.Finding{{Source: "check", Text: text}}
		got := live(t, screen.Options{}, askedModel(1), decided(1, hone.State{Decision: hone.AnotherRound, Findings: failed, Checked: failed}))
		if !strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(got, "✗ round 1"), " "), want+"  ") {
			t.Errorf("%q is not shown for %q:\n%s", want, text, got)
		}
	}
}

// TestReplyArrives: the live lines count what arrives of a reply.
func TestReplyArrives(t *testing.T) {
	o := screen.Options{Size: size(80, 24)}
	out := newBuffer()
	s := screen.New(out, o)
	defer s.Close()
	shown := func(want string) {
		t.Helper()
		late := time.After(waittest.Limit)
		for !strings.Contains(clocks.ReplaceAllString(terminal(out.String(), 80), "0s"), want) {
			select {
			case <-out.writes:
			case <-late:
				t.Fatalf("%q is not shown:\n%s", want, terminal(out.String(), 80))
			}
		}
	}
	feed(t, s, askedModel(1))
	shown("gemini-2.5-pro, editor")
	s.Received(20_000)
	shown("s · ↓ 19 KB\n")
	s.Text(strings.Repeat("x", 4800))
	shown("s · ↓ ~1.2k tokens\n")
	feed(t, s, journal.Entry{Type: "retry", Payload: history.Retried{Attempt: 0, Limit: 6, Error: "rate limited (HTTP 429)", Wait: 3_600_000}})
	shown("⏸ try 2/6 in 60:00 · rate limited (HTTP 429)\n")
	if strings.Contains(out.String(), "trying again") {
		t.Error("the reason is shown twice")
	}
	feed(t, s, journal.Entry{Type: "retry", Payload: history.Retried{Attempt: 1, Limit: 6, Error: "rate limited (HTTP 429)", Wait: 0}})
	shown("gemini-2.5-pro, editor  0s · try 3/6\n")
	s.Stopping()
	shown("stopping…, ^C again ends now\n")
	if strings.Contains(out.String(), "xxxx") {
		t.Error("the text itself is shown")
	}
}

// TestReplyArrivesOnANarrowTerminal: what arrives is shown rather than whose turn it is.
func TestReplyArrivesOnANarrowTerminal(t *testing.T) {
	out := newBuffer()
	s := screen.New(out, screen.Options{Size: size(40, 15)})
	defer s.Close()
	feed(t, s, askedModel(1))
	s.Text(strings.Repeat("x", 4800))
	for !strings.Contains(clocks.ReplaceAllString(terminal(out.String(), 40), "0s"), " gemini-2.5-pro  0s · ↓ ~1.2k tokens\n") {
		<-out.writes
	}
}

// TestOutputIsFolded: of a check's output only the last line is shown, while it runs.
func TestOutputIsFolded(t *testing.T) {
	out := newBuffer()
	s := screen.New(out, screen.Options{Size: size(80, 24)})
	feed(t, s, journal.Entry{Type: "check", Phase: journal.Begin, Step: at(1, "check")})
	for i := range 3000 {
		_, _ = fmt.Fprintf(s, "line %d\n\n", i)
	}
	for !strings.Contains(terminal(out.String(), 80), "\n  | line 2999\n") {
		<-out.writes
	}
	_, _ = fmt.Fprintln(s, strings.Repeat("x", 100)+"end")
	for want := "\n  | " + strings.Repeat("x", 49) + "…" + strings.Repeat("x", 22) + "end"; !strings.Contains(terminal(out.String(), 80), want+"\n"); {
		<-out.writes
	}
	s.Close()
	if got := terminal(out.String(), 80); strings.Contains(got, "line") {
		t.Errorf("the output is not folded:\n%s", got)
	}
}

// TestAskingCheck: while a check may ask the user nothing is redrawn, and its output
// stays.
func TestAskingCheck(t *testing.T) {
	out := newBuffer()
	s := screen.New(out, screen.Options{Options: story.Options{Asking: true}, Size: size(80, 24)})
	defer s.Close()
	feed(t, s, askedModel(1), journal.Entry{Type: "check", Phase: journal.Begin, Step: at(1, "check")})
	_, _ = s.Write([]byte("Is it right?\n"))
	if got := terminal(out.String(), 80); got != "  | Is it right?\n" {
		t.Errorf("got %q", got)
	}
}

// TestResize: live lines are erased, also if the terminal became narrower and wrapped
// them, and wide characters are not.
func TestResize(t *testing.T) {
	term := &vt{columns: 80, rows: make([]vtRow, 1)}
	var columns, seen atomic.Int64
	columns.Store(80)
	s := screen.New(term, screen.Options{Options: story.Options{Rounds: 1}, Size: func() (int, int) {
		if c := int(columns.Load()); c != term.columns {
			if strings.Contains(term.String(), "\n  round 1/1  …") {
				seen.Add(1)
			}
			term.resize(c)
		}
		return term.columns, 24
	}})
	s.Say("before")
	feed(t, s, edited(1, strings.Repeat("長い名前", 15), "", "x\n"), askedModel(1))
	for _, c := range []int64{30, 20, 33, 9, 80} {
		columns.Store(c)
		s.Say("after")
	}
	s.Close()
	if diff := cmp.Diff("before"+strings.Repeat("\nafter", 5)+"\n", term.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if seen.Load() < 4 {
		t.Errorf("the live lines were there before %d of 5 changes of the width", seen.Load())
	}
}

// TestNotOnATerminal: without a size there are no live lines, and no controls.
func TestNotOnATerminal(t *testing.T) {
	if got := shown(t, screen.Options{Options: story.Options{Rounds: 1}}, askedModel(1)); got != "round 1 of 1\n  asking gemini/gemini-2.5-pro: 400 bytes, about 100 tokens\n" {
		t.Errorf("got %q", got)
	}
}
