package hone_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/workspace"
)

// TestDecision is the table of ruling G12: what follows from the findings of a
// round and of the check, and from a declined edit.
func TestDecision(t *testing.T) {
	asked := []workspace.Edit{edit("asked", "new")}
	broken := check.Finding{Source: "checker", Text: "it crashed", Broken: true}
	for _, tt := range []struct {
		name     string
		edits    []workspace.Edit
		findings []check.Finding
		check    [][]check.Finding // what it says, each time; nil: there is none
		rounds   int
		kind     hone.Kind
		want     []string // texts of the end's findings
		took     int      // rounds
		checked  int
	}{
		{name: "no check and nothing blocking is done", rounds: 3, findings: []check.Finding{advice("a")},
			kind: hone.KindDone, want: []string{"a"}, took: 1},
		{name: "a clean check is done", rounds: 3, check: [][]check.Finding{nil},
			kind: hone.KindDone, want: []string{}, took: 1, checked: 1},
		{name: "a clean check and a pending question is blocked", rounds: 3, edits: asked, check: [][]check.Finding{nil},
			kind: hone.KindBlocked, want: []string{}, took: 1, checked: 1},
		{name: "advice of the check is no obstacle", rounds: 3, check: [][]check.Finding{{advice("c")}},
			kind: hone.KindDone, want: []string{"c"}, took: 1, checked: 1},
		{name: "the check is asked after each round", rounds: 3, check: [][]check.Finding{{wrong("c1")}, nil},
			kind: hone.KindDone, want: []string{}, took: 2, checked: 2},
		{name: "a blocking finding leaves the check out", rounds: 2, findings: []check.Finding{wrong("b")}, check: [][]check.Finding{nil},
			kind: hone.KindRounds, want: []string{"b"}, took: 2},
		{name: "used up rounds are not done", rounds: 2, check: [][]check.Finding{{wrong("c1")}, {wrong("c2")}},
			kind: hone.KindRounds, want: []string{"c2"}, took: 2, checked: 2},
		{name: "used up rounds with a pending question are blocked", rounds: 2, edits: asked, check: [][]check.Finding{{wrong("c")}},
			kind: hone.KindBlocked, want: []string{"c"}, took: 2, checked: 2},
		{name: "no check and a pending question is blocked at once", rounds: 3, edits: asked,
			kind: hone.KindBlocked, want: []string{}, took: 1},
		{name: "no round means one", rounds: 0, findings: []check.Finding{wrong("b")},
			kind: hone.KindRounds, want: []string{"b"}, took: 1},
		{name: "a broken check is never success", rounds: 1, check: [][]check.Finding{{broken}},
			kind: hone.KindFailed, want: []string{"it crashed"}, took: 1, checked: 1},
		{name: "a check that is broken twice ends the run", rounds: 5, check: [][]check.Finding{{broken}},
			kind: hone.KindFailed, want: []string{"it crashed"}, took: 2, checked: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checked := 0
			end := process{round: applies(tt.edits, tt.findings...), set: func(r *hone.Run) {
				r.Limits.Rounds = tt.rounds
				r.Rules.Approve = []string{"asked"}
				if tt.check != nil {
					r.Check = checks(&checked, tt.check...)
				}
			}}.end(t, t.TempDir())
			wantEnd(t, end, tt.kind)
			if diff := cmp.Diff(tt.want, texts(end.Findings)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if end.Rounds != tt.took || checked != tt.checked {
				t.Errorf("%d rounds and %d checks, want %d and %d", end.Rounds, checked, tt.took, tt.checked)
			}
			if end.Why == "" || end.Kind != hone.KindDone && end.Next.IsZero() {
				t.Errorf("a stop says why and what to do: %+v", end)
			}
		})
	}
}

// Until the check runs again, its last findings are added to those of the
// round.
func TestCarriedOver(t *testing.T) {
	var told [][]string
	round := func(_ context.Context, _ *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		told = append(told, texts(prior))
		if len(told) == 2 {
			return []check.Finding{wrong("unreadable")}, nil
		}
		return nil, nil
	}
	checked := 0
	end := process{round: round, set: func(r *hone.Run) {
		r.Check = checks(&checked, []check.Finding{wrong("c1")}, nil)
	}}.end(t, t.TempDir())
	wantEnd(t, end, hone.KindDone)
	if diff := cmp.Diff([][]string{{}, {"c1"}, {"unreadable", "c1"}}, told); diff != "" {
		t.Errorf("what each round was told (-want +got):\n%s", diff)
	}
	if checked != 2 || len(end.Findings) != 0 {
		t.Errorf("%d checks and findings %v, want 2 and none", checked, end.Findings)
	}
}

// Resuming a finished run returns its end again, records nothing and asks no
// question.
func TestFinishedRunIsLeftAlone(t *testing.T) {
	for _, tt := range []struct {
		name  string
		check []check.Finding
	}{{"done", nil}, {"rounds", []check.Finding{wrong("c")}}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			m, checked := speaker(says("1"), says("2"), says("3")), 0
			h := &person{answer: yes}
			p := process{round: asks(editor(m), "?"), set: func(r *hone.Run) {
				r.Human = h
				r.Check = checks(&checked, tt.check)
			}}
			first := p.end(t, dir)
			before, asked, calls := len(events(t, dir)), checked, m.calls()
			again := p.end(t, dir)
			if diff := cmp.Diff(first, again); diff != "" {
				t.Errorf("the end of a resumed run (-first +again):\n%s", diff)
			}
			if n := len(events(t, dir)); n != before {
				t.Errorf("%d events were appended to a finished run", n-before)
			}
			if m.calls() != calls || checked != asked || len(h.asked) != 0 {
				t.Error("somebody was asked again")
			}
		})
	}
}

func TestRaisedRoundsGoOn(t *testing.T) {
	dir := t.TempDir()
	rounds, checked := 2, 0
	p := process{round: finds(), set: func(r *hone.Run) {
		r.Limits.Rounds = rounds
		r.Check = checks(&checked, []check.Finding{wrong("c")}, []check.Finding{wrong("c")}, nil)
	}}
	wantEnd(t, p.end(t, dir), hone.KindRounds)
	rounds = 4
	end := p.end(t, dir)
	wantEnd(t, end, hone.KindDone)
	if end.Rounds != 3 {
		t.Errorf("done in round %d, want 3", end.Rounds)
	}
}

// If only a declined edit kept a run without a check from being done, a further
// round has nothing to do.
func TestRaisedRoundsDoNotReopenAnEnd(t *testing.T) {
	dir := t.TempDir()
	played := 0
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		played++
		return applies([]workspace.Edit{edit("asked", "new")})(ctx, r, nil)
	}, set: func(r *hone.Run) { r.Rules.Approve = []string{"asked"} }}
	wantEnd(t, p.end(t, dir), hone.KindBlocked)
	wantEnd(t, p.end(t, dir), hone.KindBlocked)
	p.set = func(r *hone.Run) { r.Human = &person{answer: no} }
	wantEnd(t, p.end(t, dir), hone.KindBlocked)
	if played != 1 {
		t.Errorf("%d rounds were played, want 1", played)
	}
}

// A resumed run does not repeat a recorded check unless the tree has changed.
func TestCheckCountsForItsTree(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change string
		want   int
	}{{"same tree", "", 1}, {"other tree", "other", 2}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"a": "one"})
			checked := 0
			p := process{round: finds(), set: func(r *hone.Run) { r.Check = checks(&checked, nil) }}
			if !p.killedAt(t, dir, on("before", "round", "")) {
				t.Fatal("the run was not killed")
			}
			if tt.change != "" {
				crashtest.WriteFile(dir, "a", tt.change)
			}
			wantEnd(t, p.end(t, dir), hone.KindDone)
			if checked != tt.want {
				t.Errorf("the check ran %d times, want %d", checked, tt.want)
			}
		})
	}
}

func TestTimeLimit(t *testing.T) {
	dir := t.TempDir()
	played := 0
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		played++
		<-ctx.Done()
		return nil, ctx.Err()
	}, set: func(r *hone.Run) { r.Limits.Time = 30 * time.Millisecond }}
	end := p.end(t, dir)
	wantEnd(t, end, hone.KindBudget)
	if end.Next.IsZero() {
		t.Error("there is no hint how to go on")
	}
	// The time is used up over all processes.
	wantEnd(t, p.end(t, dir), hone.KindBudget)
	if played > 1 {
		t.Error("a process worked on a run whose time was used up")
	}
	p.set, p.round = nil, finds()
	wantEnd(t, p.end(t, dir), hone.KindDone)
}

// The time between two processes does not count.
func TestActiveTime(t *testing.T) {
	dir := t.TempDir()
	stop := errors.New("not now")
	p := process{round: func(context.Context, *hone.Run, []check.Finding) ([]check.Finding, error) { return nil, stop }}
	wantEnd(t, p.end(t, dir), hone.KindFailed)
	all := events(t, dir)
	last := all[len(all)-1]
	const idle = 300 * time.Millisecond
	time.Sleep(idle)
	p.round = finds()
	wantEnd(t, p.end(t, dir), hone.KindDone)
	next := events(t, dir)[len(all)]
	active := time.Duration(next.Active-last.Active) * time.Millisecond
	if passed := next.Time.Sub(last.Time); active > passed-idle+10*time.Millisecond {
		t.Errorf("of %v between two processes, %v of them idle, %v count as active", passed, idle, active)
	}
}

// An interrupted run ends as interrupted, and can be resumed.
func TestCancel(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	p := process{ctx: ctx, round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		cancel()
		_, err := hone.Step(ctx, r, "look", nil, func(ctx context.Context) (seen, error) { return seen{}, ctx.Err() })
		return nil, err
	}}
	wantEnd(t, p.end(t, dir), hone.KindInterrupted)
	p = process{round: finds()}
	wantEnd(t, p.end(t, dir), hone.KindDone)
}

func TestErrorOfALoopIsTheEnvironments(t *testing.T) {
	dir := t.TempDir()
	broken := process{round: func(context.Context, *hone.Run, []check.Finding) ([]check.Finding, error) {
		return nil, errors.New("no such program")
	}}
	end := broken.end(t, dir)
	wantEnd(t, end, hone.KindFailed)
	if end.Why != "no such program" {
		t.Errorf("why: %q", end.Why)
	}
	if n := len(of[hone.State](t, events(t, dir), "round", "")); n != 0 {
		t.Errorf("a round that failed is on record %d times", n)
	}
	wantEnd(t, process{round: finds()}.end(t, dir), hone.KindDone)
}

// The decision of a round records the state of the tree.
func TestRoundNamesTheTree(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "zero"})
	process{round: applies([]workspace.Edit{edit("a", "one")})}.end(t, dir)
	s := of[hone.State](t, events(t, dir), "round", "")[0]
	m := manifestOf(t, dir, s.Manifest)
	if len(m) != 1 || m[0].Digest != workspace.Digest([]byte("one")) || m.Digest() != s.Tree {
		t.Errorf("the round's manifest is %+v with digest %s, and its tree %s", m, m.Digest(), s.Tree)
	}
}

// What only the user can resolve keeps a run going while there are rounds, and
// then ends it as blocked (ruling S5).
func TestBlockerEndsBlocked(t *testing.T) {
	dir, rounds := t.TempDir(), 0
	p := process{round: func(context.Context, *hone.Run, []check.Finding) ([]check.Finding, error) {
		rounds++
		return []check.Finding{{Source: "review", Text: "pending"}, {Source: "blocker", Text: "no database\n", Blocker: true}}, nil
	}, set: func(r *hone.Run) { r.Limits = hone.Limits{Rounds: 2} }}
	end := p.end(t, dir)
	wantEnd(t, end, hone.KindBlocked)
	if rounds != 2 || end.Why != "no database" {
		t.Errorf("%d rounds, because %q", rounds, end.Why)
	}
}
