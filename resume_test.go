package hone_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/workspace"
)

func asStop(err error, stop **hone.Stop) bool { return errors.As(err, stop) }

// Outside changes are recorded, reported to exactly one round as advice, and
// never undone.
func TestOutsideChanges(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"kept": "1", "changed": "1", "removed": "1", "reverted": "1", "ours": "1"})
	var told [][]check.Finding
	fail := true
	p := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		told = append(told, prior)
		_, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("reverted", "2"), edit("ours", "2")}}, nil)
		if err == nil && fail {
			err = errors.New("not now")
		}
		return nil, err
	}, set: func(r *hone.Run) {
		n := 0
		r.Check = checks(&n, []check.Finding{wrong("c")}, []check.Finding{wrong("c")}, nil)
	}}
	wantEnd(t, p.end(t, dir), hone.KindFailed)
	crashtest.WriteFile(dir, "changed", "theirs")
	crashtest.WriteFile(dir, "added", "theirs")
	crashtest.WriteFile(dir, "reverted", "1")
	must(0, removeFile(dir, "removed"))
	fail = false
	wantEnd(t, p.end(t, dir), hone.KindDone)

	want := []string{"added", "changed", "removed", "reverted"}
	if diff := cmp.Diff([][]string{want}, outside(t, dir)); diff != "" {
		t.Errorf("changes on record (-want +got):\n%s", diff)
	}
	var rounds []int
	for i, prior := range told {
		var files []string
		for _, f := range prior {
			if f.Source != "outside" {
				continue
			}
			files = append(files, f.File)
			if !f.Advisory {
				t.Errorf("a change from outside blocks: %+v", f)
			}
		}
		if files != nil {
			rounds = append(rounds, i)
			if diff := cmp.Diff(want, files); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		}
	}
	// The round that was interrupted goes on as it began; the next is told.
	if diff := cmp.Diff([]int{2}, rounds); diff != "" || len(told) != 4 {
		t.Errorf("of %d calls of the round, these were told: %v", len(told), rounds)
	}
	if crashtest.ReadFile(dir, "changed") != "theirs" || crashtest.ReadFile(dir, "added") != "theirs" || crashtest.ReadFile(dir, "removed") != "no file" || crashtest.ReadFile(dir, "ours") != "2" {
		t.Error("a change from outside was undone")
	}
}

// A run that was killed before its first manifest, or that changed the files
// itself, has no outside changes.
func TestNothingIsOutside(t *testing.T) {
	for _, place := range []struct {
		name string
		kill func(string, journal.Type, journal.Phase) bool
	}{
		{"before the first look", on("before", "step", journal.Begin)},
		{"in the first look", on("before", "step", journal.Record)},
		{"before the apply", on("after", "apply", journal.Begin)},
		{"after the apply", on("after", "apply", journal.Record)},
		{"before the round's end", on("before", "round", "")},
	} {
		t.Run(place.name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"a": "old", "gone": "soon"})
			p := process{round: applies([]workspace.Edit{edit("a", "new"), edit("new", "new"), {Path: "gone", Delete: true}})}
			if !p.killedAt(t, dir, place.kill) {
				t.Fatal("the run was not killed")
			}
			wantEnd(t, p.end(t, dir), hone.KindDone)
			if o := of[history.Outside](t, events(t, dir), "outside", ""); len(o) != 0 {
				t.Errorf("told as changed by others: %+v", o)
			}
		})
	}
}

// What others put into an empty tree is theirs.
func TestEmptyTreeIsATree(t *testing.T) {
	dir := t.TempDir()
	if !(process{round: finds()}).killedAt(t, dir, on("before", "round", "")) {
		t.Fatal("the run was not killed")
	}
	crashtest.WriteFile(dir, "new", "theirs")
	wantEnd(t, process{round: finds()}.end(t, dir), hone.KindDone)
	if diff := cmp.Diff([][]string{{"new"}}, outside(t, dir)); diff != "" {
		t.Errorf("changes on record (-want +got):\n%s", diff)
	}
}

// A loop's own steps may have the names of the engine's steps.
func TestStepsMayHaveAnyNameAndFields(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "1"})
	type strange struct {
		Manifest int    `json:"manifest"`
		Verdicts string `json:"verdicts"`
	}
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		for _, name := range []string{"open", "review", "check", "apply"} {
			look := func(context.Context) (strange, error) { return strange{1, "x"}, nil }
			if _, err := hone.Step(ctx, r, name, nil, look); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}, set: func(r *hone.Run) {
		n := 0
		r.Check = checks(&n, nil)
	}}
	if !p.killedAt(t, dir, on("before", "round", "")) {
		t.Fatal("the run was not killed")
	}
	wantEnd(t, p.end(t, dir), hone.KindDone)
}

// A resume records the limits that apply from then on.
func TestResumeIsOnRecord(t *testing.T) {
	dir := t.TempDir()
	if !(process{round: finds()}).killedAt(t, dir, on("before", "round", "")) {
		t.Fatal("the run was not killed")
	}
	limits := hone.Limits{Rounds: 7, Tokens: 1000}
	process{round: finds(), set: func(r *hone.Run) { r.Limits = limits }}.end(t, dir)
	if diff := cmp.Diff([]hone.Limits{limits}, of[hone.Limits](t, events(t, dir), "resume", "")); diff != "" {
		t.Errorf("limits on record (-want +got):\n%s", diff)
	}
}

// Wherever a process that could ask no user dies, the next one asks its user,
// in the round or before it continues, and approved edits are made and count.
func TestKillsWithNobodyThere(t *testing.T) {
	for point := 0; ; point++ {
		dir := crashtest.Workspace(t, map[string]string{"asked": "old"})
		p := process{round: applies([]workspace.Edit{edit("asked", "new"), edit("plain", "new")}), set: approve(nil, "asked")}
		n, where := point, ""
		dead := p.killedAt(t, dir, func(when string, typ journal.Type, phase journal.Phase) bool {
			n--
			where = when + " " + string(typ) + " " + string(phase)
			return n < 0
		})
		h := &person{answer: yes}
		p.set = approve(h, "asked")
		end := p.end(t, dir)
		if end.Kind != hone.KindDone || crashtest.ReadFile(dir, "asked") != "new" || crashtest.ReadFile(dir, "plain") != "new" || len(h.asked) != 1 {
			t.Errorf("after a kill %s (point %d): %+v, the files are %q and %q, asked %d times",
				where, point, end, crashtest.ReadFile(dir, "asked"), crashtest.ReadFile(dir, "plain"), len(h.asked))
		}
		if !dead {
			if point < 10 {
				t.Errorf("there were only %d points", point)
			}
			return
		}
	}
}

// Next may be called again after an error, in the same process.
func TestNextMayBeCalledAgain(t *testing.T) {
	dir := t.TempDir()
	r, done, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	h := &person{answer: later}
	r.Human = h
	r.Rules.Approve = []string{"asked"}
	m := speaker(says("new"))
	round := func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		reply, err := r.Ask(ctx, editor(m), user("?"))
		if err != nil {
			return nil, err
		}
		_, err = r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("asked", reply.Text())}}, nil)
		return nil, err
	}
	var stop *hone.Stop
	for range 2 {
		s, err := r.Next(t.Context(), round)
		if !asStop(err, &stop) || stop.Kind != hone.KindBlocked || s.Decision == hone.Done {
			t.Fatalf("state %+v, error %v; want that the question is open", s, err)
		}
	}
	h.answer = yes
	for range 2 { // the second finds the run done
		s, err := r.Next(t.Context(), round)
		if err != nil || s.Decision != hone.Done || s.Round != 1 || crashtest.ReadFile(dir, "asked") != "new" {
			t.Fatalf("state %+v, error %v", s, err)
		}
	}
	if m.calls() != 1 || len(h.asked) != 3 {
		t.Errorf("%d calls and %d questions, want 1 and 3", m.calls(), len(h.asked))
	}
}

// What cannot be recorded is not done.
func TestUnwritableJournalEndsTheRun(t *testing.T) {
	dir := t.TempDir()
	r, done, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	m := speaker(says("new"))
	end, err := r.Do(t.Context(), func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		must(0, r.Journal.Close())
		return asks(editor(m), "?")(ctx, r, prior)
	})
	var stop *hone.Stop
	if !asStop(err, &stop) || stop.Kind != hone.KindFailed || end.Kind != hone.KindFailed || end.Next.IsZero() {
		t.Errorf("end %+v, error %v", end, err)
	}
	if m.calls() != 0 {
		t.Error("a model was asked without a reserve")
	}
}

// outside returns the recorded outside changes.
func outside(t testing.TB, dir string) [][]string {
	var paths [][]string
	for _, o := range of[history.Outside](t, events(t, dir), "outside", "") {
		paths = append(paths, o.Paths)
	}
	return paths
}

// A call of Next that failed between an apply and its record is followed by another in the same process: what was made is not
// the user's, and is made whole once.
func TestNextCompletesAnApply(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "old", "b": "old"})
	var vs []workspace.Verdict
	round := func(ctx context.Context, r *hone.Run, _ []check.Finding) (_ []check.Finding, err error) {
		vs, err = r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", "new"), edit("b", "new")}}, nil)
		return nil, err
	}
	fails := func(r *hone.Run) {
		dead := false
		defer func() {
			if recover() != (killed{}) {
				t.Error("the apply was recorded")
			}
		}()
		r.Journal.Observe(journal.Observer{Before: func(n journal.Entry) {
			if n.Type == history.TypeApply && n.Phase == journal.Record && !dead {
				dead = true
				panic(killed{})
			}
		}})
		_, _ = r.Next(t.Context(), round)
	}
	wantEnd(t, process{round: round, set: fails}.end(t, dir), hone.KindDone)
	if len(vs) != 2 || vs[0].Ruling != workspace.Allow || vs[1].Ruling != workspace.Allow {
		t.Errorf("%+v", vs)
	}
	if diff := cmp.Diff(map[string]string{"a": "new", "b": "new"}, crashtest.Tree(t, dir)); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
	all := events(t, dir)
	if n := len(of[history.ApplyBegun](t, all, history.TypeApply, journal.Begin)); n != 1 {
		t.Errorf("%d applies", n)
	}
	if n := len(of[history.Outside](t, all, history.TypeOutside, "")); n > 0 {
		t.Error("what the run wrote counts as the user's")
	}
}

// A process that dies after it has found that the user changed a file leaves a begin without edits. The next one reviews again.
func TestKilledAsOutdated(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "old"})
	touched := false
	p := process{round: applies([]workspace.Edit{edit("a", "new")}), set: approve(&person{answer: func(q hone.Question) (hone.Answer, error) {
		if !touched {
			touched = true
			crashtest.WriteFile(dir, "a", "the user's")
		}
		return hone.Answer{Approved: true, By: "user"}, nil
	}}, "a")}
	if !p.killedAt(t, dir, on("after", history.TypeApply, journal.Begin)) {
		t.Fatal("the run was not killed")
	}
	if begun := of[history.ApplyBegun](t, events(t, dir), history.TypeApply, journal.Begin); len(begun) != 1 || len(begun[0].Outdated) != 1 {
		t.Fatalf("%+v", begun)
	}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	changes := of[history.Changed](t, events(t, dir), "change", journal.Record)
	if got := crashtest.ReadFile(dir, "a"); got != "new" || len(changes) != 1 || changes[0].Ruling != workspace.Allow {
		t.Errorf("the file is %q, after %+v", got, changes)
	}
}
