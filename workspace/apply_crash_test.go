package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/workspace/internal/treetest"
	"hone/workspace/treepath"
)

// errBroken is the error that tests inject.
var errBroken = errors.New("broken")

// An error at any step before directories are removed leaves the tree
// unchanged, and the same call then succeeds.
func TestApplyRollsBack(t *testing.T) {
	treetest.InMemory(t)
	first, second := states()
	for fail := 0; ; fail++ {
		tree, s, one, two := twoStates(t)
		list := changesBetween(one, two)
		calls, at := 0, ""
		tree.fault = func(step string) error {
			if calls++; calls-1 == fail {
				at = step
				return errBroken
			}
			return nil
		}
		_, err := tree.Apply(t.Context(), list, s.open)
		if at == "" {
			if err != nil || fail < 40 {
				t.Fatalf("after %d steps: %v", fail, err)
			}
			return
		}
		if !errors.Is(err, errBroken) {
			t.Fatalf("step %s: %v", at, err)
		}
		tree.fault = nil
		if !strings.HasPrefix(at, "sync") && !strings.HasPrefix(at, "sweep") {
			checkRestored(t, tree, one, first)
		}
		if _, err := tree.Apply(t.Context(), list, s.open); err != nil {
			t.Fatalf("again after step %s: %v", at, err)
		}
		checkRestored(t, tree, two, second)
		if t.Failed() {
			t.Fatalf("step %s", at)
		}
	}
}

func back(list []Delta) (reverse []Delta) {
	for _, d := range list {
		reverse = append(reverse, d.Back())
	}
	return reverse
}

// crash calls Apply and dies at one step, without any clean-up. It returns
// the step, empty if there was no such step.
func crash(tree *Tree, list []Delta, s objects, die func(step string, calls int) bool) (at string) {
	calls := 0
	tree.fault = func(step string) error {
		calls++
		if die(step, calls-1) {
			at = step
			panic(errBroken)
		}
		return nil
	}
	defer func() {
		tree.fault = nil
		if p := recover(); p != nil && p != any(errBroken) {
			panic(p)
		}
	}()
	_, _ = tree.Apply(context.Background(), list, s.open)
	return ""
}

// After a crash at any step the same call completes the work, and the opposite
// call reverts it, whatever state each path is in.
func TestApplyAfterCrashAtAnyStep(t *testing.T) {
	treetest.InMemory(t)
	first, second := states()
	for fail := 0; ; fail++ {
		tree, s, one, two := twoStates(t)
		list := changesBetween(one, two)
		at := crash(tree, list, s, func(_ string, calls int) bool { return calls == fail })
		if at == "" {
			if fail < 40 {
				t.Fatalf("only %d steps", fail)
			}
			return
		}
		if _, err := tree.Apply(t.Context(), list, s.open); err != nil {
			t.Fatalf("again after a crash at %s: %v", at, err)
		}
		checkRestored(t, tree, two, second)
		list = back(list)
		crash(tree, list, s, func(_ string, calls int) bool { return calls == fail })
		if _, err := tree.Apply(t.Context(), list, s.open); err != nil {
			t.Fatalf("back after a crash at %s: %v", at, err)
		}
		checkRestored(t, tree, one, first)
		if t.Failed() {
			t.Fatalf("crash at %s", at)
		}
	}
}

// After a crash during a roll-back the same call completes the work.
func TestApplyAfterCrashInRollBack(t *testing.T) {
	treetest.InMemory(t)
	_, second := states()
	for fail := 0; ; fail++ {
		tree, s, one, two := twoStates(t)
		list := changesBetween(one, two)
		restores, at := 0, ""
		func() {
			defer func() {
				if p := recover(); p != nil && p != any(errBroken) {
					panic(p)
				}
			}()
			tree.fault = func(step string) error {
				if step == "placed" {
					return errBroken
				}
				if strings.HasPrefix(step, "restore ") {
					if restores++; restores-1 == fail {
						at = step
						panic(errBroken)
					}
				}
				return nil
			}
			_, _ = tree.Apply(context.Background(), list, s.open)
		}()
		tree.fault = nil
		if at == "" {
			if fail < 20 {
				t.Fatalf("only %d paths were rolled back", fail)
			}
			return
		}
		if _, err := tree.Apply(t.Context(), list, s.open); err != nil {
			t.Fatalf("after a crash at %s: %v", at, err)
		}
		checkRestored(t, tree, two, second)
		if t.Failed() {
			t.Fatalf("crash at %s", at)
		}
	}
}

// A failed roll-back names the paths, and Apply continues from there.
func TestApplyPartial(t *testing.T) {
	tree, s, one, two := twoStates(t)
	list := changesBetween(one, two)
	stuck := errors.New("stuck")
	tree.fault = func(step string) error {
		switch step {
		case "placed":
			return errBroken
		case "restore gone", "restore text":
			return stuck
		}
		return nil
	}
	_, err := tree.Apply(t.Context(), list, s.open)
	var partial *PartialError
	if !errors.As(err, &partial) || !errors.Is(err, errBroken) || !errors.Is(partial.Why, stuck) || !cmp.Equal(partial.Paths, []string{"gone", "text"}) {
		t.Fatalf("Apply = %v", err)
	}
	tree.fault = nil
	changed := manifest(t, tree, nil).Diff(one)
	if len(changed) != 2 || changed[0].Path != "gone" || changed[1].Path != "text" {
		t.Errorf("changed: %+v", changed)
	}
	if _, err := tree.Apply(t.Context(), list, s.open); err != nil {
		t.Fatal(err)
	}
	_, second := states()
	checkRestored(t, tree, two, second)
}

// Apply does not overwrite a file that another process changes.
func TestApplyConcurrentChange(t *testing.T) {
	for _, at := range []string{"write new", "staged", "remove gone", "clear dir-file", "place dir-link", "make n"} {
		tree, s, one, two := twoStates(t)
		tree.fault = func(step string) error {
			if step == at {
				treetest.Put(t, tree.Dir(), "text", "somebody's")
			}
			return nil
		}
		_, err := tree.Apply(t.Context(), changesBetween(one, two), s.open)
		var conflict *ConflictError
		if !errors.As(err, &conflict) || !cmp.Equal(conflict.Paths, []string{"text"}) {
			t.Errorf("%s: %v", at, err)
		}
		first, _ := states()
		first["text"] = "somebody's"
		want := slices.Clone(one)
		for i := range want {
			if want[i].Path == "text" {
				want[i].Digest, want[i].Size = Digest([]byte("somebody's")), 10
			}
		}
		checkRestored(t, tree, want, first)
	}
}

// If another process creates a file in an emptied directory, or in the place of
// a new one, the file stays and everything else is rolled back.
func TestApplyConcurrentCreation(t *testing.T) {
	for at, path := range map[string]string{"clear dir-file": "dir-file/mine", "place dir-link": "dir-link", "make n": "n", "make file-dir": "file-dir"} {
		tree, s, one, two := twoStates(t)
		tree.fault = func(step string) error {
			if step == at {
				treetest.Put(t, tree.Dir(), path, "somebody's")
			}
			return nil
		}
		_, err := tree.Apply(t.Context(), changesBetween(one, two), s.open)
		if err == nil {
			t.Errorf("%s: no error", at)
		}
		if got, _, err := tree.Read(path); string(got) != "somebody's" {
			t.Errorf("%s: %s contains %q, %v", at, path, got, err)
		}
		for _, d := range manifest(t, tree, nil).Diff(one) {
			if !treepath.Contains(path, d.Path) {
				t.Errorf("%s: %s was not rolled back", at, d.Path)
			}
		}
	}
}

// Apply does not write through a directory that was replaced by a link to its
// new place in the tree, to .git or to the outside.
func TestApplyThroughSwappedDirectory(t *testing.T) {
	for _, at := range []string{"write d/new", "staged", "place d/new", "remove d/gone"} {
		for _, to := range []string{"moved", ".git", "outside"} {
			files := map[string]string{"d/gone": "one", "d/x": "one", ".git/HEAD": "h"}
			tree, s := newTree(t, files, Options{}), objects{}
			one := s.storeAll(t, tree)
			list := []Delta{
				{Path: "d/gone", Before: one[0]}, {Path: "d/x", After: s.entry("two"), Before: one[1]},
				{Path: "d/new", After: s.entry("two")}, {Path: "d/e/new", After: s.entry("two")},
			}
			dir, target := tree.Dir(), to
			if to == "outside" {
				target = t.TempDir()
			}
			tree.fault = func(step string) error {
				if step != at {
					return nil
				}
				return errors.Join(os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "moved")), os.Symlink(target, filepath.Join(dir, "d")))
			}
			if _, err := tree.Apply(t.Context(), list, s.open); err == nil && at != "place d/new" && at != "remove d/gone" {
				t.Errorf("swapped at %s: no error", at)
			}
			if diff := cmp.Diff(map[string]string{"HEAD": "h"}, treetest.Contents(t, filepath.Join(dir, ".git"))); diff != "" {
				t.Errorf("swapped at %s for %s:\n%s", at, to, diff)
			}
			if to == "outside" && len(treetest.Contents(t, target)) > 0 {
				t.Errorf("swapped at %s: written outside", at)
			}
			if got, _ := os.Readlink(filepath.Join(dir, "d")); got != target {
				t.Errorf("swapped at %s: d is %q", at, got)
			}
		}
	}
}
