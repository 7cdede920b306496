package hone_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/workspace"
)

// undo restores the last run's files, like the command. It checks each line of the
// journal against the schema.
func undo(t testing.TB, dir string, round int, force bool) (*history.Reversal, map[string]string, error) {
	t.Helper()
	v, kept, err := crashtest.Undo(dir, round, force)
	holdAgainstSchema(t, events(t, dir))
	return v, kept, err
}

// A run resumes from the round that it was restored to, with its findings.
func TestGoOnFromAnEarlierRound(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0"})
	found := map[string][]check.Finding{"1": {wrong("x")}, "2": {wrong("x"), wrong("y")}, "3": {wrong("z"), wrong("y"), wrong("x")}}
	var prior []check.Finding
	p := process{round: func(ctx context.Context, r *hone.Run, given []check.Finding) ([]check.Finding, error) {
		prior = given
		_, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", string(rune('0'+r.Round())))}}, nil)
		return nil, err
	}, set: func(r *hone.Run) {
		r.Check = func(context.Context) ([]check.Finding, error) { return found[crashtest.ReadFile(dir, "a")], nil }
	}}
	end := p.end(t, dir)
	wantEnd(t, end, hone.KindRounds)
	if end.Best != 1 || end.Restored || len(end.Notes) != 1 {
		t.Errorf("best round %d, notes %q", end.Best, end.Notes)
	}
	if _, _, err := undo(t, dir, 1, false); err != nil {
		t.Fatal(err)
	}
	set := p.set
	p.set = func(r *hone.Run) { set(r); r.Limits.Rounds = 4 }
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if len(prior) != 2 || prior[1].Source != "undo" || prior[0].Text != "x" && prior[1].Text != "x" {
		t.Errorf("the fourth round was told %+v", prior)
	}
	p.replays(t, dir)
}

// Of very many findings a few are recorded and given to the next round, but all count:
// for the best round, for the end, and for whether a state came back.
func TestManyFindings(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0"})
	number := map[string]int{"1": 1500, "2": 1400, "3": 1500}
	var prior []check.Finding
	p := process{round: func(ctx context.Context, r *hone.Run, given []check.Finding) ([]check.Finding, error) {
		prior = given
		text := string(rune('0' + r.Round()))
		if r.Round() == 4 {
			text = "2"
		}
		_, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", text)}}, nil)
		return nil, err
	}, set: func(r *hone.Run) {
		r.Limits.Rounds = 4
		r.Check = func(context.Context) (found []check.Finding, err error) {
			for i := range number[crashtest.ReadFile(dir, "a")] {
				found = append(found, wrong(fmt.Sprint(i)))
			}
			if crashtest.ReadFile(dir, "a") == "2" {
				rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
			}
			return found, nil
		}
	}}
	end := p.end(t, dir)
	wantEnd(t, end, hone.KindRounds)
	if !strings.Contains(end.Why, "1400 findings left") || end.Best != 0 || len(end.Findings) != check.MaxFindings+1 {
		t.Errorf("%q, best round %d, %d findings", end.Why, end.Best, len(end.Findings))
	}
	if len(prior) != check.MaxFindings+1 || check.Count(prior) != 1500 {
		t.Errorf("the last round was given %d findings, which stand for %d", len(prior), check.Count(prior))
	}
	if same := sames(t, dir); len(same) < 4 || same[3] != 2 {
		t.Errorf("rounds that came back: %v", same)
	}
	p.replays(t, dir)
}

func TestKeepBest(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0"})
	found := map[string][]check.Finding{"1": {wrong("x"), wrong("y")}, "2": {wrong("x")}, "3": {wrong("x"), wrong("z")}}
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		_, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", string(rune('0'+r.Round())))}}, nil)
		return nil, err
	}, set: func(r *hone.Run) {
		r.Trust.KeepBest = true
		r.Check = func(context.Context) ([]check.Finding, error) { return found[crashtest.ReadFile(dir, "a")], nil }
	}}
	end := p.end(t, dir)
	wantEnd(t, end, hone.KindRounds)
	if crashtest.ReadFile(dir, "a") != "2" || end.Best != 2 || !end.Restored || len(end.Notes) != 1 {
		t.Errorf("a is %q; best %d, notes %q", crashtest.ReadFile(dir, "a"), end.Best, end.Notes)
	}
	p.replays(t, dir)
	if again := p.end(t, dir); again.Best != 2 || crashtest.ReadFile(dir, "a") != "2" {
		t.Errorf("a finished run, resumed: %+v", again)
	}
}
