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
)

// allowedVerdicts reviews a change and fails unless every verdict is Allow.
func allowedVerdicts(t testing.TB, tree *Tree, ch Change) []Verdict {
	t.Helper()
	verdicts, err := tree.Review(ch, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		if v.Ruling != Allow {
			t.Fatalf("verdict %s", outcome(v))
		}
	}
	return verdicts
}

// edits returns the edits of a reviewed change, and everything that they need stored.
func edits(t testing.TB, tree *Tree, ch Change) ([]Delta, objects) {
	t.Helper()
	s := objects{}
	var list []Delta
	for i, v := range allowedVerdicts(t, tree, ch) {
		list = append(list, v.Delta())
		s.entry(string(ch.Edits[i].Content))
		if old, _, err := tree.Read(v.Path); err == nil {
			s.entry(string(old))
		}
	}
	return list, s
}

// mixedChange returns a tree, a change with every kind of edit, and the
// expected result.
func mixedChange() (files map[string]string, ch Change, after map[string]string) {
	files = map[string]string{"a": "old a", "d/b": "old b", "d/gone": "old", "keep": "kept", "e/x": "x"}
	ch = Change{Edits: []Edit{
		write("a", "new a"), write("d/b", "new b"), {Path: "d/gone", Delete: true},
		write("n/e/w", "new"), write("n/two", ""), {Path: "e/x", Delete: true}, write("d/c", "#!/bin/sh\n"),
	}}
	after = map[string]string{
		"a": "new a", "d/": "", "d/b": "new b", "d/c": "#!/bin/sh\n", "e/": "", "keep": "kept",
		"n/": "", "n/e/": "", "n/e/w": "new", "n/two": "",
	}
	return files, ch, after
}

// roomChange is mixedChange for files in the place of directories, and the reverse.
func roomChange() (files map[string]string, ch Change, after map[string]string) {
	files = map[string]string{"file": "f", "folder/one": "1", "folder/two/three": "3", "keep": "kept"}
	ch = Change{Edits: []Edit{
		write("file/main", "m"), write("keep", "changed"), {Path: "file", Delete: true}, write("file/deep/er", "d"),
		{Path: "folder/one", Delete: true}, write("folder", "now a file"), {Path: "folder/two/three", Delete: true},
	}}
	after = map[string]string{"file/": "", "file/main": "m", "file/deep/": "", "file/deep/er": "d", "folder": "now a file", "keep": "changed"}
	return files, ch, after
}

// Edits keep the permission bits that files have by now, and the directories that they empty.
func TestApplyEdits(t *testing.T) {
	for _, change := range []func() (map[string]string, Change, map[string]string){mixedChange, roomChange} {
		files, ch, after := change()
		tree := newTree(t, files, Options{})
		list, s := edits(t, tree, ch)
		if files["a"] != "" {
			treetest.Chmod(t, tree.Dir(), "d/b", 0o710)
		}
		for range 2 { // the second time nothing is left to do
			if _, err := tree.Apply(t.Context(), list, s.open); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(after, treetest.Contents(t, tree.Dir())); diff != "" {
				t.Fatal(diff)
			}
		}
		if files["a"] == "" {
			continue
		}
		for path, mode := range map[string]uint32{"a": 0o644, "d/b": 0o710, "d/c": 0o755, "n/two": 0o644} {
			if _, image, err := tree.Read(path); err != nil || image.Mode != mode {
				t.Errorf("%s has mode %o, want %o (%v)", path, image.Mode, mode, err)
			}
		}
	}
}

// Deletions make room only if they are sure to be made, and if nothing else is in the way.
func TestReviewOfRoom(t *testing.T) {
	tree := newTree(t, map[string]string{"file": "f", "folder/one": "1", "folder/other": "2", "empty/": ""}, Options{})
	gone := func(path string) Edit { return Edit{Path: path, Delete: true} }
	for _, c := range []struct {
		edits []Edit
		rules Rules
		last  Ruling
	}{
		{[]Edit{gone("file"), write("file/x", "")}, Rules{}, Allow},
		{[]Edit{write("file/x", "")}, Rules{}, Deny},
		{[]Edit{gone("file"), write("file/x", "")}, Rules{Immutable: []string{"file"}}, Deny},
		{[]Edit{gone("file"), write("file/x", "")}, Rules{Approve: []string{"file"}}, Deny},
		{[]Edit{write("file", "new"), write("file/x", "")}, Rules{}, Deny},
		{[]Edit{gone("folder/one"), write("folder", "")}, Rules{}, Deny},
		{[]Edit{gone("folder/one"), gone("folder/other"), write("folder", "")}, Rules{}, Allow},
		{[]Edit{gone("folder/one"), write("folder/new", ""), gone("folder/other"), write("folder", "")}, Rules{}, Deny},
		{[]Edit{write("empty", "")}, Rules{}, Deny},
	} {
		verdicts, err := tree.Review(Change{Edits: c.edits}, c.rules)
		if err != nil {
			t.Fatal(err)
		}
		if last := verdicts[len(verdicts)-1]; last.Ruling != c.last {
			t.Errorf("%v: %s", c.edits, outcome(last))
		}
	}
}

func TestApplyBreaksHardLinks(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "old"}, Options{})
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Link(filepath.Join(tree.Dir(), "a"), outside); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	list, s := edits(t, tree, Change{Edits: []Edit{write("a", "new")}})
	if _, err := tree.Apply(t.Context(), list, s.open); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(outside); string(got) != "old" {
		t.Errorf("the other name contains %q", got)
	}
}

// An error at any step before the sync leaves the tree unchanged.
func TestApplyRollsBackEdits(t *testing.T) {
	for _, change := range []func() (map[string]string, Change, map[string]string){mixedChange, roomChange} {
		for fail, at := 0, " "; at != ""; fail++ {
			files, ch, after := change()
			tree := newTree(t, files, Options{})
			list, s := edits(t, tree, ch)
			before := treetest.Contents(t, tree.Dir())
			calls := 0
			at = ""
			tree.fault = func(step string) error {
				if calls++; calls-1 == fail {
					at = step
					return errBroken
				}
				return nil
			}
			_, err := tree.Apply(t.Context(), list, s.open)
			if at == "" && (err != nil || fail < 12) || at != "" && !errors.Is(err, errBroken) {
				t.Fatalf("step %d %s: %v", fail, at, err)
			}
			want := before
			if at == "" || strings.HasPrefix(at, "sync") {
				want = after
			}
			if diff := cmp.Diff(want, treetest.Contents(t, tree.Dir())); diff != "" {
				t.Fatalf("step %s:\n%s", at, diff)
			}
		}
	}
}

// A file that was changed before an interrupted Apply reached it is a conflict.
// Nothing temporary is left.
func TestApplyConflictAfterCrash(t *testing.T) {
	files, ch, _ := mixedChange()
	tree := newTree(t, files, Options{})
	list, s := edits(t, tree, ch)
	if crash(tree, list, s, func(step string, _ int) bool { return step == "place d/b" }) == "" {
		t.Fatal("no crash")
	}
	treetest.Put(t, tree.Dir(), "n/two", "somebody's")
	_, err := tree.Apply(t.Context(), list, s.open)
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok || !slices.Equal(conflict.Paths, []string{"n/two"}) {
		t.Fatalf("Apply = %v", err)
	}
	treetest.NoTemps(t, tree.Dir())
}

// A link, a directory or a pipe that replaced a file after the review was put there by another process, and stays.
func TestApplyToReplacedFile(t *testing.T) {
	for name, replace := range map[string]func(string) error{
		"link": func(at string) error { return os.Symlink("../a", at) },
		"directory": func(at string) error {
			return errors.Join(os.Mkdir(at, 0o755), os.WriteFile(filepath.Join(at, "x"), nil, 0o644))
		},
		"parent": func(at string) error {
			return errors.Join(os.RemoveAll(filepath.Dir(at)), os.Symlink("e", filepath.Dir(at)))
		},
	} {
		files, ch, _ := mixedChange()
		tree := newTree(t, files, Options{})
		list, s := edits(t, tree, ch)
		file := filepath.Join(tree.Dir(), "d", "c")
		if err := errors.Join(os.RemoveAll(file), replace(file)); err != nil {
			t.Fatal(err)
		}
		_, err := tree.Apply(t.Context(), list, s.open)
		if conflict, ok := errors.AsType[*ConflictError](err); !ok || !slices.Contains(conflict.Paths, "d/c") {
			t.Errorf("%s: %v", name, err)
		}
		if got, _, err := tree.Read("a"); string(got) != files["a"] {
			t.Errorf("%s: a is %q, %v", name, got, err)
		}
	}
}

// A directory that becomes a link while temporary files are written is a conflict.
func TestApplyEditsThroughSwappedDirectory(t *testing.T) {
	for _, at := range []string{"write d/b", "staged"} {
		files, ch, _ := mixedChange()
		tree := newTree(t, files, Options{})
		list, s := edits(t, tree, ch)
		dir := tree.Dir()
		tree.fault = func(step string) error {
			if step != at {
				return nil
			}
			return errors.Join(os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "moved")), os.Symlink("moved", filepath.Join(dir, "d")))
		}
		_, err := tree.Apply(context.Background(), list, s.open)
		if conflict, ok := errors.AsType[*ConflictError](err); !ok || !cmp.Equal(conflict.Paths, []string{"d/b", "d/c", "d/gone"}) {
			t.Errorf("swapped at %s: %v", at, err)
		}
		found := treetest.Contents(t, dir)
		if found["d"] != "->moved" || found["moved/b"] != "old b" || found["a"] != "old a" {
			t.Errorf("swapped at %s:\n%v", at, found)
		}
	}
}
