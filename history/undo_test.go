package history_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/workspace"
)

// busy is a loop whose rounds edit a file and run a command that does
// everything that can be done to files.
func busy(dir string) hone.Round {
	return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		n := r.Round()
		mark := string(rune('0' + n))
		if _, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{edit("edited", mark), edit("made"+mark, mark)}}, nil); err != nil {
			return nil, err
		}
		_, err := hone.Once(ctx, r, "work", nil, func(context.Context) (seen, error) {
			crashtest.WriteFile(dir, "sub/deep/written", mark)
			crashtest.WriteFile(dir, "edited", mark+" and by a command")
			if n == 1 {
				crashtest.Must(0, os.Remove(filepath.Join(dir, "gone")))
				crashtest.Must(0, os.Remove(filepath.Join(dir, "link")))
				crashtest.Must(0, os.Symlink("b", filepath.Join(dir, "link")))
				crashtest.Must(0, os.Chmod(filepath.Join(dir, "mode"), 0o755))
				crashtest.Must(0, os.RemoveAll(filepath.Join(dir, "folder")))
				crashtest.WriteFile(dir, "folder", "a file now")
			}
			return seen{"done"}, nil
		}, func(context.Context, []string) (seen, error) { return seen{"cut off"}, nil })
		return []check.Finding{wrong("never right")}, err
	}
}

func busyTree(t testing.TB) string {
	dir := crashtest.Workspace(t, map[string]string{"edited": "0", "gone": "here", "mode": "m", "folder/one": "1", "folder/two": "2", "untouched": "u"})
	crashtest.Must(0, os.Symlink("a", filepath.Join(dir, "link")))
	return dir
}

func TestUndo(t *testing.T) {
	dir := busyTree(t)
	trees := []map[string]string{crashtest.Tree(t, dir)}
	process{round: func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		findings, err := busy(dir)(ctx, r, prior)
		trees = append(trees, crashtest.Tree(t, dir))
		return findings, err
	}}.end(t, dir)
	for _, round := range []int{0, 2, 1, 3, 0} {
		if _, _, err := crashtest.Undo(dir, round, false); err != nil {
			t.Fatalf("to round %d: %v", round, err)
		}
		if diff := cmp.Diff(trees[round], crashtest.Tree(t, dir)); diff != "" {
			t.Errorf("to round %d (-then +undone):\n%s", round, diff)
		}
	}
	v, _, err := crashtest.Undo(dir, 0, false)
	if err != nil || len(v.Restorable) > 0 {
		t.Errorf("there was something left to undo: %v, %v", v.Restorable, err)
	}
	if _, _, err := crashtest.Undo(dir, 7, false); err == nil || !strings.Contains(err.Error(), "no tree of round 7") {
		t.Errorf("round 7: %v", err)
	}
}

// What was changed since is overwritten only by force, and then a copy is kept.
func TestUndoRefusesWhatWasChangedSince(t *testing.T) {
	dir := busyTree(t)
	process{round: busy(dir)}.end(t, dir)
	crashtest.WriteFile(dir, "edited", "mine")
	crashtest.WriteFile(dir, "untouched", "mine too")
	crashtest.WriteFile(dir, "made1", "")
	before := crashtest.Tree(t, dir)
	v, _, err := crashtest.Undo(dir, 0, false)
	if err == nil || len(v.Conflicts) != 2 || v.Conflicts[0].Path != "edited" || v.Conflicts[1].Path != "made1" {
		t.Fatalf("%+v, %v", v, err)
	}
	if diff := cmp.Diff(before, crashtest.Tree(t, dir)); diff != "" {
		t.Errorf("something was changed:\n%s", diff)
	}
	_, kept, err := crashtest.Undo(dir, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(crashtest.Must(os.ReadFile(kept["edited"]))); got != "mine" {
		t.Errorf("%q was kept of what was overwritten", got)
	}
	if crashtest.ReadFile(dir, "edited") != "0" || crashtest.ReadFile(dir, "made1") != "no file" || crashtest.ReadFile(dir, "untouched") != "mine too" {
		t.Errorf("%v", crashtest.Tree(t, dir))
	}
}

// What others changed while the run was stopped is not restored.
func TestUndoLeavesOthersAlone(t *testing.T) {
	dir := busyTree(t)
	ctx, cancel := context.WithCancel(context.Background())
	stops := func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		if r.Round() == 2 && r.Past().Facts().Resumes == 0 {
			cancel()
			return nil, ctx.Err()
		}
		return busy(dir)(ctx, r, prior)
	}
	process{ctx: ctx, round: stops}.end(t, dir)
	crashtest.WriteFile(dir, "untouched", "theirs")
	crashtest.WriteFile(dir, "theirs", "new")
	crashtest.WriteFile(dir, "edited", "by both")
	process{round: stops}.end(t, dir)
	v, _, err := crashtest.Undo(dir, 0, false)
	if diff := cmp.Diff([]string{"theirs", "untouched"}, v.Outside); diff != "" || err == nil {
		t.Errorf("theirs (-want +got), error %v:\n%s", err, diff)
	}
	if len(v.Conflicts) != 1 || v.Conflicts[0].Path != "edited" {
		t.Errorf("conflicts %+v", v.Conflicts)
	}
	if _, _, err := crashtest.Undo(dir, 2, false); err != nil { // that is after their change
		t.Error(err)
	}
	if crashtest.ReadFile(dir, "edited") != "2 and by a command" || crashtest.ReadFile(dir, "untouched") != "theirs" {
		t.Errorf("%v", crashtest.Tree(t, dir))
	}
}

// Wherever an undo is killed, the next one completes it.
func TestUndoIsDoneAgain(t *testing.T) {
	dir := busyTree(t)
	want := crashtest.Tree(t, dir)
	process{round: busy(dir)}.end(t, dir)
	for _, p := range []string{"gone", "sub/deep/written"} { // half done
		if p == "gone" {
			crashtest.WriteFile(dir, p, "here")
		} else {
			crashtest.Must(0, os.Remove(filepath.Join(dir, p)))
		}
	}
	if _, _, err := crashtest.Undo(dir, 0, false); err != nil {
		t.Fatal(err)
	}
	got := crashtest.Tree(t, dir)
	delete(got, "sub/deep/")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-before +undone):\n%s", diff)
	}
}
