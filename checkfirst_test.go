package hone_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

// looksFirst is a run whose rounds write their number into the file a, and
// whose check wants it to be 2. It counts the checks, and keeps the findings
// that the rounds start with.
type looksFirst struct {
	first  hone.CheckFirst
	proof  *hone.Proof
	broken bool // the check cannot run

	checks int
	priors [][]string
}

func (l *looksFirst) process(dir string) process {
	return process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		l.priors = append(l.priors, texts(prior))
		_, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", fmt.Sprint(r.Round()))}}, nil)
		return nil, err
	}, set: func(r *hone.Run) {
		r.Trust.CheckFirst, r.Trust.Proof, r.Trust.Copied = l.first, l.proof, passesCopied
		r.Check = func(context.Context) ([]check.Finding, error) {
			l.checks++
			switch a := crashtest.ReadFile(dir, "a"); {
			case l.broken:
				return []check.Finding{{Source: "check", Text: "no such program", Broken: true}}, nil
			case a != "2":
				return []check.Finding{wrong("a is " + a)}, nil
			}
			return []check.Finding{advice("well done")}, nil
		}
	}}
}

// passesCopied is a check that passes in every copy.
func passesCopied(context.Context, string) ([]check.Finding, error) { return nil, nil }

func TestCheckFirst(t *testing.T) {
	proof := func(strict bool) *hone.Proof {
		return &hone.Proof{Strict: strict}
	}
	const proves = "the check already passed before the first round, so its passing proves nothing"
	for name, c := range map[string]struct {
		looksFirst
		before string // what a holds
		end    hone.Kind
		priors [][]string
		checks int
		notes  []string
	}{
		"blind":         {before: "0", end: hone.KindDone, priors: [][]string{{}, {"a is 1"}}, checks: 2},
		"blind, proved": {looksFirst: looksFirst{proof: proof(false)}, before: "0", end: hone.KindDone, priors: [][]string{{}, {"a is 1"}}, checks: 3},
		"informed":      {looksFirst: looksFirst{first: hone.Informed}, before: "0", end: hone.KindDone, priors: [][]string{{"a is 0"}, {"a is 1"}}, checks: 3},
		"informed, passes": {looksFirst: looksFirst{first: hone.Informed}, before: "2", end: hone.KindDone, priors: [][]string{{"well done"}, {"a is 1"}}, checks: 3,
			notes: []string{"the check passed before the first round, and nothing was changed: nothing shows that the work is done"}},
		"informed, proved":                 {looksFirst: looksFirst{first: hone.Informed, proof: proof(true)}, before: "0", end: hone.KindDone, priors: [][]string{{"a is 0"}, {"a is 1"}}, checks: 3},
		"informed, proved, passes":         {looksFirst: looksFirst{first: hone.Informed, proof: proof(false)}, before: "2", end: hone.KindDone, priors: [][]string{{"well done"}, {"a is 1"}}, checks: 3, notes: []string{proves}},
		"informed, proved, passes, strict": {looksFirst: looksFirst{first: hone.Informed, proof: proof(true)}, before: "2", end: hone.KindUsage, checks: 1},
		"unless clean":                     {looksFirst: looksFirst{first: hone.UnlessClean}, before: "0", end: hone.KindDone, priors: [][]string{{"a is 0"}, {"a is 1"}}, checks: 3},
		"unless clean, passes":             {looksFirst: looksFirst{first: hone.UnlessClean}, before: "2", end: hone.KindDone, checks: 1},
		"unless clean, proved, passes":     {looksFirst: looksFirst{first: hone.UnlessClean, proof: proof(true)}, before: "2", end: hone.KindDone, checks: 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"a": c.before})
			p := c.process(dir)
			end := p.end(t, dir)
			wantEnd(t, end, c.end)
			if diff := cmp.Diff(c.priors, c.looksFirst.priors); diff != "" {
				t.Errorf("what the rounds were given (-want +got):\n%s", diff)
			}
			if end.Rounds != len(c.priors) || c.looksFirst.checks != c.checks {
				t.Errorf("%d rounds and %d checks, want %d and %d", end.Rounds, c.looksFirst.checks, len(c.priors), c.checks)
			}
			if diff := cmp.Diff(c.notes, end.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			p.replays(t, dir)
		})
	}
}

// If the check passes first, the end says so and has the check's advice, and
// later changes of the tree do not alter it.
func TestCheckFirstPasses(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "2"})
	l := looksFirst{first: hone.UnlessClean}
	p := l.process(dir)
	end := p.end(t, dir)
	if end.Why != "the check already passes" || !slices.Equal(texts(end.Findings), []string{"well done"}) || !end.Next.IsZero() {
		t.Errorf("%+v", end)
	}
	before := len(events(t, dir))
	crashtest.WriteFile(dir, "a", "3")
	if again := p.end(t, dir); again.Kind != hone.KindDone || len(events(t, dir)) != before || l.checks != 1 {
		t.Errorf("%+v after %d checks", again, l.checks)
	}
}

// If the check cannot run first, an Informed run says so and continues. An
// UnlessClean run stops until the check is fixed.
func TestCheckFirstCannotRun(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0"})
	l := looksFirst{first: hone.Informed, broken: true}
	p := l.process(dir)
	if end := p.end(t, dir); end.Kind != hone.KindFailed || end.Rounds != 1 || !slices.Equal(l.priors[0], []string{"no such program"}) {
		t.Errorf("%+v, given %q", end, l.priors)
	}
	notices := of[history.Notice](t, events(t, dir), "notice", "")
	if len(notices) != 1 || notices[0].Text != "the check could not run before the first round" {
		t.Errorf("notices %+v", notices)
	}
	p.replays(t, dir)

	dir = crashtest.Workspace(t, map[string]string{"a": "0"})
	l = looksFirst{first: hone.UnlessClean, broken: true}
	p = l.process(dir)
	for range 2 {
		end := p.end(t, dir)
		wantEnd(t, end, hone.KindFailed)
		if end.Why != "the check could not run\nno such program" || end.Next.First != "install or fix what the check runs" || end.Rounds != 0 || len(l.priors) > 0 {
			t.Errorf("%+v", end)
		}
		p.replays(t, dir)
	}
	l.broken = false
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if diff := cmp.Diff([][]string{{"a is 0"}, {"a is 1"}}, l.priors); diff != "" {
		t.Errorf("what the rounds were given (-want +got):\n%s", diff)
	}
	p.replays(t, dir)
}

// What the user changes between the check and the first round is reported
// together with the check's findings. The check does not run again.
func TestChangeAfterCheckFirst(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0", "b": "0"})
	l := looksFirst{first: hone.Informed}
	p := l.process(dir)
	if !p.killedAt(t, dir, on("after", "round", "")) {
		t.Fatal("the run was not killed")
	}
	crashtest.WriteFile(dir, "b", "mine")
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if l.checks != 3 || len(l.priors[0]) != 2 || l.priors[0][0] != "a is 0" || !strings.Contains(l.priors[0][1], "the user changed this file") {
		t.Errorf("%d checks, given %q", l.checks, l.priors)
	}
	p.replays(t, dir)
}

// Undoing to before the run also reverts what its first check changed.
func TestUndoBeforeCheckFirst(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0", "checked": "no"})
	l := looksFirst{first: hone.Informed}
	p := l.process(dir)
	set := p.set
	p.set = func(r *hone.Run) {
		set(r)
		inner := r.Check
		r.Check = func(ctx context.Context) ([]check.Finding, error) {
			crashtest.WriteFile(dir, "checked", "yes")
			return inner(ctx)
		}
	}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if _, _, err := undo(t, dir, 0, false); err != nil || crashtest.ReadFile(dir, "checked") != "no" || crashtest.ReadFile(dir, "a") != "0" {
		t.Errorf("%v; checked is %q, a is %q", err, crashtest.ReadFile(dir, "checked"), crashtest.ReadFile(dir, "a"))
	}
}

// A run that was undone resumes with the findings of its first check.
func TestResumeBeforeTheFirstRound(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0"})
	l := looksFirst{first: hone.Informed}
	p := l.process(dir)
	set := p.set
	p.set = func(r *hone.Run) { set(r); r.Limits.Rounds = 1 }
	wantEnd(t, p.end(t, dir), hone.KindRounds)
	if _, _, err := undo(t, dir, 0, false); err != nil {
		t.Fatal(err)
	}
	p.set = set
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if len(l.priors) != 2 || len(l.priors[1]) != 2 || l.priors[1][0] != "a is 0" {
		t.Errorf("the rounds were given %q", l.priors)
	}
	p.replays(t, dir)
}

// Wherever the run is killed, the first check is recorded once, and the first
// round gets the same findings.
func TestCrashOfTheFirstCheck(t *testing.T) {
	for name, c := range map[string]struct {
		first  hone.CheckFirst
		before string
		proof  *hone.Proof
	}{
		"informed":             {first: hone.Informed, before: "zero"},
		"informed, proved":     {first: hone.Informed, before: "two", proof: &hone.Proof{}},
		"unless clean":         {first: hone.UnlessClean, before: "zero"},
		"unless clean, passes": {first: hone.UnlessClean, before: "two"},
	} {
		t.Run(name, func(t *testing.T) {
			crashtest.Scene{
				Replies: []model.Reply{text("one"), text("two")},
				Setup:   func(_ testing.TB, dir string) { crashtest.WriteFile(dir, "a", c.before) },
				Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
					p := process{round: everyKind(dir, m), observe: o, set: func(r *hone.Run) {
						r.Human = hone.Always{}
						r.Trust.CheckFirst, r.Trust.Proof, r.Trust.Copied = c.first, c.proof, passesCopied
						r.Check = func(context.Context) ([]check.Finding, error) {
							crashtest.WriteFile(dir, "checked", "made by the check")
							if crashtest.ReadFile(dir, "a") == "two" {
								return []check.Finding{advice("well done")}, nil
							}
							return []check.Finding{wrong("a must be two")}, nil
						}
					}}
					end := p.end(t, dir)
					if end.Kind != hone.KindDone || c.first == hone.UnlessClean && c.before == "two" && end.Rounds > 0 {
						t.Errorf("the run ended %+v", end)
					}
					return end
				},
			}.Run(t)
		})
	}
}
