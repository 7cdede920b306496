package hone_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/model"
	"hone/tool"
	"hone/workspace"
)

// writing is a loop that writes one content after another into the file a. An
// empty one means that the reply was unreadable.
func writing(prior *[][]check.Finding, contents ...string) hone.Round {
	return func(ctx context.Context, r *hone.Run, given []check.Finding) ([]check.Finding, error) {
		*prior = append(*prior, given)
		content := contents[r.Round()-1]
		if content == "" {
			return []check.Finding{{Source: check.SourceReply, Text: "it could not be read"}}, nil
		}
		_, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", content)}}, nil)
		return nil, err
	}
}

// complains is a check whose finding has the contents of the file, and
// something that always changes.
func complains(dir string) check.Func {
	n := 0
	return func(context.Context) ([]check.Finding, error) {
		n++
		return []check.Finding{wrong(fmt.Sprintf("%s is wrong (0.%ds) at 2026-01-02T03:04:%02dZ", crashtest.ReadFile(dir, "a"), n, n))}, nil
	}
}

func sames(t testing.TB, dir string) []int {
	var got []int
	for _, s := range of[hone.State](t, events(t, dir), "round", "") {
		same := 0
		if s.Same != nil {
			same = *s.Same
		}
		got = append(got, same)
	}
	return got
}

func TestCircles(t *testing.T) {
	for name, c := range map[string]struct {
		writes   []string
		same     []int
		told     []int // rounds that are told
		patience int
		rounds   int
	}{
		"two states by turns":   {writes: []string{"A", "B", "A", "B", "A"}, same: []int{0, 0, 1, 2, 1}, told: []int{4}, rounds: 5},
		"two circles":           {writes: []string{"A", "B", "A", "C", "B"}, same: []int{0, 0, 1, 0, 2}, told: []int{4}, rounds: 5},
		"patience":              {writes: []string{"A", "B", "A", "B", "A"}, same: []int{0, 0, 1, 2}, told: []int{4}, patience: 2, rounds: 4},
		"progress":              {writes: []string{"A", "B", "C", "D", "E"}, same: []int{0, 0, 0, 0, 0}, rounds: 5},
		"nothing is readable":   {writes: []string{"A", "", "", "B", ""}, same: []int{0, 0, 0, 0, 0}, patience: 1, rounds: 5},
		"nothing is changed":    {writes: []string{"A", "A", "B", "B", "B"}, same: []int{0, 1, 0, 3}, told: []int{3}, patience: 2, rounds: 4},
		"unreadable in between": {writes: []string{"A", "B", "", "A", "B"}, same: []int{0, 0, 0, 1, 2}, told: []int{5}, rounds: 5},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"a": "zero"})
			var prior [][]check.Finding
			p := process{round: writing(&prior, c.writes...), set: func(r *hone.Run) {
				r.Limits = hone.Limits{Rounds: 5, Patience: c.patience}
				r.Check = complains(dir)
			}}
			end := p.end(t, dir)
			want := hone.KindRounds
			if c.rounds < 5 {
				want = hone.KindStuck
			}
			wantEnd(t, end, want)
			if diff := cmp.Diff(c.same, sames(t, dir)); diff != "" {
				t.Errorf("rounds that came back (-want +got):\n%s", diff)
			}
			var told []int
			for i, findings := range prior {
				for _, f := range findings {
					if f.Source == "progress" {
						told = append(told, i+1)
					}
				}
			}
			if diff := cmp.Diff(c.told, told); diff != "" {
				t.Errorf("rounds that were told (-want +got):\n%s", diff)
			}
			p.replays(t, dir)
		})
	}
}

// A stuck run continues if it is given more patience.
func TestMorePatience(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "zero"})
	var prior [][]check.Finding
	p := process{round: writing(&prior, "A", "B", "A", "B", "A", "B"), set: func(r *hone.Run) {
		r.Limits = hone.Limits{Rounds: 6, Patience: 1}
		r.Check = complains(dir)
	}}
	wantEnd(t, p.end(t, dir), hone.KindStuck)
	wantEnd(t, p.end(t, dir), hone.KindStuck)
	if len(prior) != 3 {
		t.Errorf("%d rounds without more patience", len(prior))
	}
	set := p.set
	p.set = func(r *hone.Run) { set(r); r.Limits.Patience = 2 }
	end := p.end(t, dir)
	wantEnd(t, end, hone.KindStuck)
	if end.Rounds != 4 {
		t.Errorf("%+v", end)
	}
}

func TestFlaky(t *testing.T) {
	always, sometimes := check.Finding{Source: "test", File: "a", Text: "always (0.1s)"}, check.Finding{Source: "test", File: "b", Text: "sometimes"}
	again := always
	again.Text = "always (0.2s)"
	dir := crashtest.Workspace(t, nil)
	var prior [][]check.Finding
	asked := 0
	p := process{round: writing(&prior, "1", "2", "3"), set: func(r *hone.Run) {
		r.Trust.Flaky = 2
		r.Check = checks(&asked, []check.Finding{always, sometimes}, []check.Finding{again}, []check.Finding{always, sometimes},
			[]check.Finding{sometimes}, nil)
	}}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	got := of[history.Checked](t, events(t, dir), "check", "record")
	if len(got) != 2 || asked != 5 {
		t.Fatalf("%d checks on record, %d were run", len(got), asked)
	}
	if diff := cmp.Diff([]string{"always (0.1s)"}, texts(got[0].Findings)); diff != "" {
		t.Error(diff)
	}
	for _, c := range got {
		if diff := cmp.Diff([]string{"sometimes"}, texts(c.Flaky)); diff != "" {
			t.Error(diff)
		}
	}
	for _, f := range prior[1] {
		if f.Text == "sometimes" {
			t.Error("the model is told of what comes and goes")
		}
	}
}

// protects is a run whose tests are protected.
func protects(r *hone.Run) { r.Trust.Protect = []string{"tests/**", "*_test.go"} }

func TestProtectedFilesNeedApproval(t *testing.T) {
	for name, approved := range map[string]bool{"declined": false, "approved": true} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"tests/old": "1", "a_test.go": "1", "a.go": "1"})
			who := &person{answer: no}
			if approved {
				who.answer = yes
			}
			p := process{round: applies([]workspace.Edit{edit("tests/old", "2"), {Path: "a_test.go", Delete: true}, edit("tests/new", "2"), edit("a.go", "2")}),
				set: func(r *hone.Run) { protects(r); r.Human = who; r.Limits.Rounds = 1 }}
			p.end(t, dir)
			if diff := cmp.Diff([]string{"a_test.go", "tests/new", "tests/old"}, who.paths()); diff != "" {
				t.Errorf("asked about (-want +got):\n%s", diff)
			}
			want := map[bool][3]string{true: {"2", "no file", "2"}, false: {"1", "1", "no file"}}[approved]
			if got := [3]string{crashtest.ReadFile(dir, "tests/old"), crashtest.ReadFile(dir, "a_test.go"), crashtest.ReadFile(dir, "tests/new")}; got != want || crashtest.ReadFile(dir, "a.go") != "2" {
				t.Errorf("%v", got)
			}
			p.replays(t, dir)
		})
	}
}

// Whatever a command changes in protected files is restored. Approved edits
// stay.
func TestProtectedFilesArePutBack(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"tests/a": "1", "tests/b": "1", "tests/c": "1", "tests/d": "1", "x": "1"})
	var told [][]check.Finding
	attack := func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		told = append(told, prior)
		if _, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("tests/d", "approved")}}, nil); err != nil {
			return nil, err
		}
		_, err := hone.Once(ctx, r, "attack", nil, func(context.Context) (seen, error) {
			crashtest.WriteFile(dir, "tests/a", "2")
			must(0, os.Remove(filepath.Join(dir, "tests/b")))
			must(0, os.Remove(filepath.Join(dir, "tests/c")))
			must(0, os.Symlink("../x", filepath.Join(dir, "tests/c")))
			crashtest.WriteFile(dir, "tests/d", "mine")
			crashtest.WriteFile(dir, "tests/e", "new")
			crashtest.WriteFile(dir, "x", "2")
			return seen{"done"}, nil
		}, nil)
		return []check.Finding{wrong("not yet")}, err
	}
	p := process{round: attack, set: func(r *hone.Run) { protects(r); r.Human = hone.Always{}; r.Limits.Rounds = 2 }}
	p.end(t, dir)
	for path, want := range map[string]string{"tests/a": "1", "tests/b": "1", "tests/c": "1", "tests/d": "approved", "tests/e": "no file", "x": "2"} {
		if got := crashtest.ReadFile(dir, path); got != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
	var files []string
	for _, f := range told[1] {
		if f.Source == "protect" {
			files = append(files, f.File)
			if !f.Advisory {
				t.Error("what was put back keeps the loop going")
			}
		}
	}
	if diff := cmp.Diff([]string{"tests/a", "tests/b", "tests/c", "tests/d", "tests/e"}, files); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	p.replays(t, dir)
}

// The result of the call tells the model at once.
func TestToolIsToldWhatWasPutBack(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"tests/a": "1"})
	m := speaker(func(context.Context, model.Request) (model.Reply, error) {
		return model.Reply{Finish: model.Calls, Parts: []model.Part{{Call: &model.Call{ID: "1", Name: "bash", Args: "{}"}}}}, nil
	}, says("done"))
	role := editor(m)
	role.Tools = []tool.Tool{{Spec: model.Spec{Name: "bash"}, RunsCommands: true, Run: func(context.Context, tool.Input) (tool.Result, error) {
		crashtest.WriteFile(dir, "tests/a", "2")
		return tool.Result{Text: "ran"}, nil
	}}}
	process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		_, err := r.Talk(ctx, role, user("do it"))
		return nil, err
	}, set: protects}.end(t, dir)
	last := m.requests[1].Messages
	if got := last[len(last)-1].Parts[0].Result.Text; !strings.HasPrefix(got, "ran\n") || !strings.Contains(got, "was put back: tests/a (it is protected") {
		t.Errorf("the model was told %q", got)
	}
}

// A check does not pass if it runs code that changes the check.
func TestCheckThatChangesItselfIsNotGreen(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"tests/a": "1"})
	n := 0
	p := process{round: finds(), set: func(r *hone.Run) {
		protects(r)
		r.Limits.Rounds = 2
		r.Check = func(context.Context) ([]check.Finding, error) {
			if n++; n == 1 {
				crashtest.WriteFile(dir, "tests/a", "always green")
			}
			return nil, nil
		}
	}}
	end := p.end(t, dir)
	if end.Rounds != 2 || end.Kind != hone.KindDone || crashtest.ReadFile(dir, "tests/a") != "1" {
		t.Errorf("%+v, tests/a %q", end, crashtest.ReadFile(dir, "tests/a"))
	}
	got := of[history.Checked](t, events(t, dir), "check", "record")
	if diff := cmp.Diff([]string{"tests/a"}, got[0].Restored); diff != "" || !check.Blocking(got[0].Findings) {
		t.Errorf("%+v", got[0])
	}
}

func TestProve(t *testing.T) {
	for name, c := range map[string]struct {
		before string // what a holds
		strict bool
		hidden bool // the check needs something that is not in the tree
		end    hone.Kind
		rounds int
		note   string
	}{
		"red, then green":         {before: "0", end: hone.KindDone, rounds: 2},
		"red, then green, strict": {before: "0", strict: true, end: hone.KindDone, rounds: 2},
		"green":                   {before: "2", end: hone.KindDone, rounds: 2, note: "already passed before the first round"},
		"green, strict":           {before: "2", strict: true, end: hone.KindUsage},
		"green in place alone":    {before: "0", hidden: true, end: hone.KindRounds, rounds: 3},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"a": c.before, ".hone-is-not-copied": ""})
			looked := func(dir string) ([]check.Finding, error) {
				if got := crashtest.ReadFile(dir, "a"); got == "2" || got == "3" {
					return nil, nil
				}
				return []check.Finding{wrong("in " + dir + ", a is not 2")}, nil
			}
			var copies []string
			asked := 0
			p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
				asked++
				_, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", string(rune('0'+r.Round())))}}, nil)
				return nil, err
			}, set: func(r *hone.Run) {
				r.Check = func(context.Context) ([]check.Finding, error) { return looked(dir) }
				r.Trust.Proof = &hone.Proof{Strict: c.strict}
				r.Trust.Copied = func(_ context.Context, in string) ([]check.Finding, error) {
					copies = append(copies, in)
					if _, err := os.Stat(filepath.Join(in, ".hone")); err == nil {
						t.Error("hone's own folder was copied")
					}
					if c.hidden {
						return []check.Finding{wrong("in " + in + " something is missing")}, nil
					}
					return looked(in)
				}
			}}
			end := p.end(t, dir)
			if end.Kind != c.end || c.rounds != end.Rounds && name != "green" {
				t.Errorf("%+v", end)
			}
			if !strings.Contains(strings.Join(end.Notes, "\n"), c.note) || c.note == "" && len(end.Notes) > 0 {
				t.Errorf("notes %q", end.Notes)
			}
			if c.end == hone.KindUsage && asked > 0 {
				t.Error("somebody was asked")
			}
			for _, in := range copies {
				if _, err := os.Stat(in); err == nil || in == dir || filepath.Base(in) != filepath.Base(dir) {
					t.Errorf("the copy is %s, and is still there: %v", in, err == nil)
				}
			}
			if c.hidden && !strings.Contains(end.Findings[0].Text, "in "+dir+" something is missing") {
				t.Errorf("%+v", end.Findings)
			}
			p.replays(t, dir)
		})
	}
}

// What was put back in a round is reported once, even if the round is decided again.
func TestPutBackIsToldOnce(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"tests/a": "1"})
	attack := func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		_, err := hone.Once(ctx, r, "attack", nil, func(context.Context) (seen, error) {
			crashtest.WriteFile(dir, "tests/a", "2")
			crashtest.WriteFile(dir, "x", fmt.Sprint(r.Round()))
			return seen{"done"}, nil
		}, nil)
		return nil, err
	}
	found := []check.Finding{{Source: "checker", Text: "no such program", Broken: true}}
	p := process{round: attack, set: func(r *hone.Run) {
		protects(r)
		r.Limits.Rounds = 2
		r.Check = func(context.Context) ([]check.Finding, error) { return found, nil }
	}}
	wantEnd(t, p.end(t, dir), hone.KindFailed)
	found = []check.Finding{wrong("not yet")}
	end := p.end(t, dir)
	told := slices.DeleteFunc(slices.Clone(end.Findings), func(f check.Finding) bool { return f.Source != "protect" })
	if len(told) != 1 {
		t.Errorf("told %d times: %+v", len(told), end.Findings)
	}
	p.replays(t, dir)
}
