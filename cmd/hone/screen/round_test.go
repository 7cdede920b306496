package screen_test

import (
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"github.com/google/go-cmp/cmp"

	"hone/check"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/journal"
	"hone/model"
	"hone/story"
	"hone/workspace"
)

// inRound returns an event of a round, at so many milliseconds of active time.
func inRound(round int, active int64, payload any) history.Event {
	return history.Event{Event: journal.Event{Step: &journal.Identity{Round: round, Name: "x"}, Active: active}, Payload: payload}
}

func notice(active int64, payload any) history.Event {
	return history.Event{Event: journal.Event{Active: active}, Payload: payload}
}

// edit returns the change of a file whose digests are its contents.
func edit(path, before, after string) history.Changed {
	return history.Changed{Verdict: workspace.Verdict{Path: path, Ruling: workspace.Allow,
		Before: workspace.Image{Digest: before}, After: workspace.Image{Digest: after}}}
}

func contents(digest string) ([]byte, error) { return []byte(digest), nil }

func charged(tokens int64, reported bool) history.Commit {
	c := history.Commit{Tokens: tokens, Cost: new(float64)}
	if *c.Cost = float64(tokens) / 1000; reported {
		c.Usage = &model.Usage{Input: tokens}
	}
	return c
}

// interrupted are the events of a run of three story. The second was interrupted and
// resumed, and the third is not finished.
func interrupted() []history.Event {
	failed := []check.Finding{{Source: "check", File: "a.go", Text: "undefined: x"}}
	return []history.Event{
		inRound(0, 0, history.CheckBegun{}), inRound(0, 500, history.Checked{Findings: failed}), notice(500, history.State{Decision: history.AnotherRound, Findings: failed, Checked: failed}),
		inRound(1, 1000, edit("a.go", "", "1\n2\n")), notice(1000, charged(1200, true)), inRound(1, 1000, edit("log", "", "x\n")),
		notice(14_000, history.State{Round: 1, Decision: history.AnotherRound, Findings: failed, Checked: failed}),
		inRound(2, 14_000, edit("a.go", "1\n2\n", "1\n3\n")), notice(15_000, history.Reserve{Cost: new(float64)}), notice(15_000, charged(9000, false)), notice(15_000, history.End{Kind: history.KindInterrupted}),
		notice(15_000, history.Resumed{}), inRound(2, 15_000, edit("a.go", "1\n3\n", "1\n2\n4\n")), inRound(2, 15_000, edit("b.go", "x\n", "")), notice(15_000, history.Reserve{Cost: new(float64)}), notice(15_000, charged(800, true)),
		notice(17_500, history.State{Round: 2, Decision: history.AnotherRound, Findings: []check.Finding{{Source: "reply", Text: "not JSON\x1b[2J"}}, Same: new(1)}),
		inRound(3, 18_000, edit("a.go", "1\n2\n4\n", "1\n")), inRound(3, 19_000, edit("a.go", "1\n", "1\n2\n4\n")),
	}
}

func linesOf(all []story.Round, columns, last int) string {
	var lines []string
	for _, r := range all {
		lines = append(lines, screen.RoundLines(r, false, columns, last)...)
	}
	return strings.Join(lines, "\n")
}

// TestOf: a resumed round is one round, tokens that no provider reported do not count,
// and the loop's own files are left out.
func TestOf(t *testing.T) {
	all := story.RoundsOf(interrupted(), contents, func(path string) bool { return path == "log" }, false)
	want := `✗ start                                   a.go: undefined: x                                                 0.5s     0
✗ round 1  a.go +2                        a.go: undefined: x                                                  13s  1.2k
! round 2  2 files +1 −1                  ↻ nothing changed: not JSON\x1b[2J                                 3.5s   800
- round 3                                 not finished                                                       1.0s     0`
	if diff := cmp.Diff(want, linesOf(all, 0, 3)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := all[2]; r.Unconfirmed != 9000 || r.Cost == nil || *r.Cost != 9.8 || all[0].Cost != nil || all[3].Cost != nil {
		t.Errorf("round 2 used %d unconfirmed tokens, and cost %v", r.Unconfirmed, r.Cost)
	}
	if diff := cmp.Diff([]story.Change{{Path: "a.go", Before: "1\n2\n", After: "1\n2\n4\n", Added: 1}, {Path: "b.go", Before: "x\n", Removed: 1}}, all[2].Changes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLinesFit: a line is never wider than the terminal, and a narrow one has two.
// The verdict of a failed assertion of Python is the error, not the line of the source.
func TestVerdictOfPython(t *testing.T) {
	for want, output := range map[string]string{
		"AssertionError: -1 != 3": "F\n======\nFAIL: test_add (test_calc.T)\n------\nTraceback (most recent call last):\n  File \"test_calc.py\", line 5, in test_add\n    self.assertEqual(add(1, 2), 3)\n    ~~~~^^^\nAssertionError: -1 != 3\n",
		"E       assert -1 == 3":  "=== FAILURES ===\n___ test_add ___\n\n    def test_add():\n>       assert add(1, 2) == 3\nE       assert -1 == 3\nE        +  where -1 = add(1, 2)\n\ntest_calc.py:5: AssertionError\n",
	} {
		found := []check.Finding{{Source: "check", Text: "The check command failed: exit status 1.\n\n    pytest\n\nIts output:\n\n" + output}}
		all := story.RoundsOf([]history.Event{inRound(1, 0, history.Checked{Findings: found}), notice(0, history.State{Round: 1, Findings: found, Checked: found})}, contents, nil, false)
		if got := all[0].Verdict; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLinesFit(t *testing.T) {
	all := story.RoundsOf(interrupted(), contents, nil, false)
	all[1].Verdict = strings.Repeat("長い ", 100)
	all[1].Number = 12
	for _, columns := range []int{14, 30, 40, 63, 64, 80, 120} {
		got := linesOf(all, columns, 12)
		for line := range strings.Lines(got) {
			if n := displaywidth.String(strings.TrimSuffix(line, "\n")); n >= columns && columns >= 40 {
				t.Errorf("%d columns: %q has %d", columns, line, n)
			}
		}
		if n := strings.Count(got, "\n") + 1; columns < 64 && n != 2*len(all) || n > 2*len(all) {
			t.Errorf("%d columns: %d lines", columns, n)
		}
	}
	if got := linesOf(all[:2], 40, 12); !strings.Contains(got, "✗ round 12  2 files +3  ") || !strings.HasSuffix(got, "\n    "+strings.Repeat("長い ", 6)+"長い…") {
		t.Errorf("on 40 columns:\n%s", got)
	}
}
