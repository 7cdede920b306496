package hone_test

import (
	"context"
	"os"
	"path/filepath"
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

// userChanges is an answer during which the user changes files. Each text of changes
// is the new contents of a file, and an empty one removes it.
func userChanges(dir string, changes map[string]string, then answer) answer {
	return func(ctx context.Context, req model.Request) (model.Reply, error) {
		for name, content := range changes {
			if content == "" {
				crashtest.Must(0, os.Remove(filepath.Join(dir, name)))
			} else {
				crashtest.WriteFile(dir, name, content)
			}
		}
		return then(ctx, req)
	}
}

// writes is a command that writes a file.
func writes(ctx context.Context, r *hone.Run, dir, name, content string) error {
	type done struct{}
	do := func(context.Context) (done, error) {
		crashtest.WriteFile(dir, name, content)
		return done{}, nil
	}
	_, err := hone.Once(ctx, r, "write "+name, nil, do, func(ctx context.Context, _ []string) (done, error) { return do(ctx) })
	return err
}

// Ruling G16: what the user changes while a model answers is recorded as the user's,
// told to the model and not undone; what a command changes afterwards is the run's.
func TestUsersChangesDuringACall(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0", "b": "0", "gone": "0", "built": "0"})
	m := speaker(userChanges(dir, map[string]string{"b": "mine", "new": "mine", "gone": ""}, says("1")), says("2"))
	var priors [][]string
	p := process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		var files []string
		for _, f := range prior {
			if f.Source == "outside" {
				files = append(files, f.File)
			}
		}
		priors = append(priors, files)
		reply, err := r.Ask(ctx, editor(m), user("go"))
		if err != nil {
			return nil, err
		}
		if err := writes(ctx, r, dir, "built", reply.Text()); err != nil {
			return nil, err
		}
		_, err = r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", reply.Text())}}, nil)
		return []check.Finding{wrong("not yet")}, err
	}, set: func(r *hone.Run) { r.Limits.Rounds = 2 }}
	wantEnd(t, p.end(t, dir), hone.KindRounds)
	recorded := of[history.Outside](t, events(t, dir), history.TypeOutside, "")
	if len(recorded) != 1 || cmp.Diff([]string{"b", "gone", "new"}, recorded[0].Paths) != "" {
		t.Errorf("recorded %+v", recorded)
	}
	if diff := cmp.Diff([][]string{nil, {"b", "gone", "new"}}, priors); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	p.replays(t, dir)

	home := must(journal.FindHome(dir))
	defer home.Close()
	past := history.Read(must(home.Read(must(home.FindRun("last")))))
	for name, get := range map[string]func() ([]workspace.Delta, error){
		"all":     func() ([]workspace.Delta, error) { return past.AllChanges(home.Get) },
		"round 1": func() ([]workspace.Delta, error) { return past.Changes(1, home.Get) },
	} {
		var paths []string
		for _, d := range must(get()) {
			paths = append(paths, d.Path)
		}
		if diff := cmp.Diff([]string{"a", "built"}, paths); diff != "" {
			t.Errorf("%s: the run's changes (-want +got):\n%s", name, diff)
		}
	}
	v, _, err := undo(t, dir, 0, false)
	if diff := cmp.Diff([]string{"b", "gone", "new"}, v.Outside); diff != "" || err != nil {
		t.Errorf("not undone (-want +got), error %v:\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "0", "b": "mine", "built": "0", "new": "mine"}, crashtest.Tree(t, dir)); diff != "" {
		t.Errorf("the tree after the undo (-want +got):\n%s", diff)
	}
}

// What the user changes while a command runs that cannot change the file is the user's.
func TestUsersChangesDuringACommand(t *testing.T) {
	for name, reach := range map[string]func(string) bool{
		"walls":    func(path string) bool { return strings.HasPrefix(path, "src/") },
		"no walls": nil,
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashtest.Workspace(t, map[string]string{"notes": "0", "src/a": "0"})
			p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
				r.Reach = reach
				crashtest.Must(0, writes(ctx, r, dir, "src/a", "1"))
				type done struct{}
				do := func(context.Context) (done, error) {
					crashtest.WriteFile(dir, "src/a", "2")
					crashtest.WriteFile(dir, "notes", "mine")
					return done{}, nil
				}
				_, err := hone.Once(ctx, r, "build", nil, do, func(ctx context.Context, _ []string) (done, error) { return do(ctx) })
				return nil, err
			}}
			wantEnd(t, p.end(t, dir), hone.KindDone)
			p.replays(t, dir)
			want := map[string]string{"notes": "mine", "src/a": "0"}
			if reach == nil {
				want["notes"] = "0"
			}
			if _, _, err := undo(t, dir, 0, false); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, crashtest.Tree(t, dir)); diff != "" {
				t.Errorf("the tree after the undo (-want +got):\n%s", diff)
			}
		})
	}
}

// What the user changed and then approved to be overwritten is not undone silently.
func TestUndoOfAnOverwrittenChange(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0"})
	m := speaker(userChanges(dir, map[string]string{"a": "mine"}, says("1")))
	h := &person{answer: yes}
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		if _, err := r.Ask(ctx, editor(m), user("go")); err != nil {
			return nil, err
		}
		seen := func(string) (string, bool) { return workspace.Digest([]byte("0")), true }
		_, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", "1")}}, seen)
		return nil, err
	}, set: func(r *hone.Run) { r.Human = h }}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	if len(h.asked) != 1 || crashtest.ReadFile(dir, "a") != "1" {
		t.Errorf("asked %+v, a is %q", h.asked, crashtest.ReadFile(dir, "a"))
	}
	v, _, err := undo(t, dir, 0, false)
	if err == nil || len(v.Conflicts) != 1 || !strings.Contains(v.Conflicts[0].Why, "also changed outside the run") {
		t.Errorf("conflicts %+v, %v", v.Conflicts, err)
	}
}

// A protected file that the user changes stays as the user left it.
func TestUsersChangeOfAProtectedFile(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0", "tests/one": "0", "tests/two": "0"})
	m := speaker(userChanges(dir, map[string]string{"tests/one": "mine"}, says("1")))
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		if _, err := r.Ask(ctx, editor(m), user("go")); err != nil {
			return nil, err
		}
		return nil, writes(ctx, r, dir, "tests/two", "by the command")
	}, set: protects}
	p.end(t, dir)
	if one, two := crashtest.ReadFile(dir, "tests/one"), crashtest.ReadFile(dir, "tests/two"); one != "mine" || two != "0" {
		t.Errorf("the files are %q and %q", one, two)
	}
	p.replays(t, dir)
}

// The best round is restored without what the user changed since, and not at all if the
// run changed the same file.
func TestBestRoundAndUsersChanges(t *testing.T) {
	for _, file := range []string{"mine", "a"} {
		dir := crashtest.Workspace(t, map[string]string{"a": "0"})
		m := speaker(says("1"), says("2"), userChanges(dir, map[string]string{file: "by the user"}, says("3")))
		found := map[string][]check.Finding{"1": {wrong("x")}, "2": {wrong("x")}, "3": {wrong("x"), wrong("z")}}
		p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
			reply, err := r.Ask(ctx, editor(m), user("go"))
			if err == nil {
				err = writes(ctx, r, dir, "a", reply.Text())
			}
			return nil, err
		}, set: func(r *hone.Run) {
			r.Trust.KeepBest = true
			r.Check = func(context.Context) ([]check.Finding, error) { return found[crashtest.ReadFile(dir, "a")], nil }
		}}
		end := p.end(t, dir)
		wantEnd(t, end, hone.KindRounds)
		notices := of[history.Notice](t, events(t, dir), history.TypeNotice, "")
		switch a := crashtest.ReadFile(dir, "a"); file {
		case "mine":
			if a != "2" || !end.Restored || crashtest.ReadFile(dir, "mine") != "by the user" {
				t.Errorf("a is %q, mine %q, %+v", a, crashtest.ReadFile(dir, "mine"), end)
			}
		case "a":
			if a != "3" || end.Restored || len(notices) != 1 || !strings.Contains(notices[0].Text, "were not restored: a: it was also changed outside the run") {
				t.Errorf("a is %q, %+v, notices %+v", a, end, notices)
			}
		}
		p.replays(t, dir)
	}
}

// While a server of the loop is up, it may change files.
func TestChangesWhileAServerIsUp(t *testing.T) {
	dir := crashtest.Workspace(t, map[string]string{"a": "0"})
	m := speaker(userChanges(dir, map[string]string{"data": "1"}, says("1")), userChanges(dir, map[string]string{"a": "mine"}, says("2")))
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		serves := func(what string) error {
			_, err := hone.Step(ctx, r, "serve", what, func(context.Context) (string, error) {
				return what, r.Served(history.Served{What: what, URL: "http://x"})
			})
			return err
		}
		if r.Round() == 1 {
			if err := serves(history.Up); err != nil {
				return nil, err
			}
		}
		if _, err := r.Ask(ctx, editor(m), user("go")); err != nil {
			return nil, err
		}
		if r.Round() == 1 {
			return []check.Finding{wrong("not yet")}, serves(history.Down)
		}
		return nil, nil
	}}
	wantEnd(t, p.end(t, dir), hone.KindDone)
	recorded := of[history.Outside](t, events(t, dir), history.TypeOutside, "")
	if len(recorded) != 1 || cmp.Diff([]string{"a"}, recorded[0].Paths) != "" {
		t.Errorf("recorded %+v", recorded)
	}
	p.replays(t, dir)
}

// Wherever a process is killed after the user's change, the change is recorded once as
// the user's, and an undo leaves it.
func TestKillsAfterAUsersChange(t *testing.T) {
	for point := 0; ; point++ {
		dir := crashtest.Workspace(t, map[string]string{"a": "0", "b": "0"})
		first := true
		m := modelFunc(func(_ context.Context, req model.Request) (model.Reply, error) {
			if first {
				crashtest.WriteFile(dir, "b", "mine")
				first = false
			}
			return text("1"), nil
		})
		p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
			if _, err := r.Ask(ctx, editor(m), user("go")); err != nil {
				return nil, err
			}
			if _, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", "1")}}, nil); err != nil {
				return nil, err
			}
			return nil, writes(ctx, r, dir, "built", "1")
		}}
		n := point
		dead := p.killedAt(t, dir, func(string, journal.Type, journal.Phase) bool {
			n--
			return n < 0
		})
		wantEnd(t, p.end(t, dir), hone.KindDone)
		v, _, err := undo(t, dir, 0, false)
		if err != nil || cmp.Diff([]string{"b"}, v.Outside) != "" || crashtest.ReadFile(dir, "b") != "mine" || crashtest.ReadFile(dir, "a") != "0" {
			t.Errorf("after a kill at point %d: %v, not undone: %q, b is %q", point, err, v.Outside, crashtest.ReadFile(dir, "b"))
		}
		if !dead {
			if point < 10 {
				t.Errorf("there were only %d points", point)
			}
			return
		}
	}
}

// A change that was made in part is undone if the user has changed one of its files, and
// reviewed again.
func TestUsersChangeWithinAnApply(t *testing.T) {
	before := map[string]string{"a": "0", "b": "0", "c": "0", "gone": "0"}
	dir := crashtest.Workspace(t, before)
	seen := func(path string) (string, bool) { return workspace.Digest([]byte("0")), before[path] != "" }
	change := workspace.Change{Edits: []workspace.Edit{edit("a", "1"), edit("b", "1"), edit("c", "1"), edit("new", "1"), {Path: "gone", Delete: true}}}
	p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		_, err := r.Apply(ctx, change, seen)
		return nil, err
	}}
	p.killedAt(t, dir, on("after", history.TypeApply, journal.Begin))
	crashtest.WriteFile(dir, "a", "1") // in place
	crashtest.WriteFile(dir, "new", "1")
	crashtest.WriteFile(dir, "c", "mine")
	must(0, os.Remove(filepath.Join(dir, "gone")))
	var between map[string]string
	p.set = func(*hone.Run) { between = crashtest.Tree(t, dir) } // after the settling
	wantEnd(t, p.end(t, dir), hone.KindBlocked)
	if diff := cmp.Diff(map[string]string{"a": "0", "b": "0", "c": "mine", "gone": "0"}, between); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "1", "c": "mine", "new": "1"}, crashtest.Tree(t, dir)); diff != "" {
		t.Errorf("the tree (-want +got):\n%s", diff)
	}
	p.replays(t, dir)
	if v, _, err := undo(t, dir, 0, false); err != nil || cmp.Diff([]string{"c"}, v.Outside) != "" {
		t.Errorf("undo: %v, not undone %q", err, v.Outside)
	}
}

// Whenever the user takes the run's files away, as git stash -u does, the run goes on,
// and also after a kill at that moment.
func TestFilesVanishAtEveryPoint(t *testing.T) {
	for _, kill := range []bool{false, true} {
		for point := 0; ; point++ {
			dir := crashtest.Workspace(t, map[string]string{"a": "0"})
			p := process{round: func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
				n := string(rune('0' + r.Round()))
				_, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("a", n), edit("new", n)}}, nil)
				return []check.Finding{wrong("not yet")}, err
			}, set: func(r *hone.Run) { r.Limits.Rounds = 2 }}
			n := point
			stash := func() {
				if n--; n == -1 {
					crashtest.WriteFile(dir, "a", "0")
					_ = os.Remove(filepath.Join(dir, "new"))
				}
			}
			p.observe = journal.Observer{Before: func(journal.Entry) { stash() }, After: func(journal.Event) { stash() }}
			if kill {
				p.killedAt(t, dir, func(string, journal.Type, journal.Phase) bool {
					stash()
					return n < 0
				})
				n, p.observe = min(n, -1), journal.Observer{}
			}
			wantEnd(t, p.end(t, dir), hone.KindRounds)
			if done, _, err := p.replay(t, dir); err != nil || len(done.Unexplained) > 0 {
				t.Errorf("point %d, killed: %v: the replay: %v, not explained: %q", point, kill, err, done.Unexplained)
			}
			if n >= 0 {
				if point < 10 {
					t.Errorf("there were only %d points", point)
				}
				break
			}
			if kill && point > 30 {
				break
			}
		}
	}
}
