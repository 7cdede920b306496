package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/workspace/internal/nofollow"
	"hone/workspace/internal/treetest"
	"hone/workspace/treepath"
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

func TestApplyMakesRoom(t *testing.T) {
	files, ch, after := roomChange()
	tree := newTree(t, files, Options{})
	verdicts := allowedVerdicts(t, tree, ch)
	for range 2 {
		if err := tree.Apply(t.Context(), ch, verdicts); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(after, treetest.Contents(t, tree.Dir())); diff != "" {
			t.Fatal(diff)
		}
	}
	// What a crash left after the deletions is rolled forward.
	tree = newTree(t, map[string]string{"folder/two/": "", "keep": "kept"}, Options{})
	if err := tree.Apply(t.Context(), ch, verdicts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
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

func TestApply(t *testing.T) {
	files, ch, after := mixedChange()
	tree := newTree(t, files, Options{})
	treetest.Chmod(t, tree.Dir(), "d/b", 0o710)
	verdicts := allowedVerdicts(t, tree, ch)
	for range 2 { // the second time nothing is left to do
		if err := tree.Apply(t.Context(), ch, verdicts); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(after, treetest.Contents(t, tree.Dir())); diff != "" {
			t.Fatal(diff)
		}
	}
	for path, mode := range map[string]uint32{"a": 0o644, "d/b": 0o710, "d/c": 0o755, "n/two": 0o644} {
		if _, image, err := tree.Read(path); err != nil || image.Mode != mode {
			t.Errorf("%s has mode %o, want %o (%v)", path, image.Mode, mode, err)
		}
	}
}

func TestApplyOnlyAllowed(t *testing.T) {
	files, ch, _ := mixedChange()
	tree := newTree(t, files, Options{})
	verdicts := allowedVerdicts(t, tree, ch)
	for i, r := range []Ruling{Ask, Drop, Deny, Declined, Ask, Allow, Deny} {
		verdicts[i].Ruling = r
	}
	if err := tree.Apply(t.Context(), ch, verdicts); err != nil {
		t.Fatal(err)
	}
	delete(files, "e/x")
	files["d/"], files["e/"] = "", ""
	if diff := cmp.Diff(files, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

func TestApplyConflicts(t *testing.T) {
	files, ch, _ := mixedChange()
	tree := newTree(t, files, Options{})
	verdicts := allowedVerdicts(t, tree, ch)
	treetest.Put(t, tree.Dir(), "d/gone", "somebody's")
	treetest.Put(t, tree.Dir(), "n/two", "somebody's")
	treetest.Put(t, tree.Dir(), "a", "new a") // already as wanted: no conflict
	before := treetest.Contents(t, tree.Dir())
	err := tree.Apply(t.Context(), ch, verdicts)
	var conflict *ConflictError
	if !errors.As(err, &conflict) || !cmp.Equal(conflict.Paths, []string{"d/gone", "n/two"}) {
		t.Errorf("Apply = %v", err)
	}
	if diff := cmp.Diff(before, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

func TestApplyRefusesForeignVerdicts(t *testing.T) {
	files, ch, _ := mixedChange()
	tree := newTree(t, files, Options{})
	verdicts := allowedVerdicts(t, tree, ch)
	before := treetest.Contents(t, tree.Dir())
	other := Change{Edits: append([]Edit(nil), ch.Edits...)}
	other.Edits[1] = write("d/b", "something else")
	protected := Change{Edits: []Edit{write(".hone/x", "x")}}
	for name, err := range map[string]error{
		"fewer":     tree.Apply(t.Context(), ch, verdicts[1:]),
		"contents":  tree.Apply(t.Context(), other, verdicts),
		"protected": tree.Apply(t.Context(), protected, []Verdict{{Path: ".hone/x", Ruling: Allow, After: imageOf([]byte("x"), 0o644)}}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if diff := cmp.Diff(before, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

func TestApplyBreaksHardLinks(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "old"}, Options{})
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Link(filepath.Join(tree.Dir(), "a"), outside); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	ch := Change{Edits: []Edit{write("a", "new")}}
	if err := tree.Apply(t.Context(), ch, allowedVerdicts(t, tree, ch)); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(outside); string(got) != "old" {
		t.Errorf("the other name contains %q", got)
	}
}

func TestApplyKeepsModeOfNow(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "old"}, Options{})
	ch := Change{Edits: []Edit{write("a", "new")}}
	verdicts := allowedVerdicts(t, tree, ch)
	treetest.Chmod(t, tree.Dir(), "a", 0o600)
	if err := tree.Apply(t.Context(), ch, verdicts); err != nil {
		t.Fatal(err)
	}
	if _, image, _ := tree.Read("a"); image.Mode != 0o600 {
		t.Errorf("mode %o", image.Mode)
	}
}

func TestApplyCanceled(t *testing.T) {
	files, ch, _ := mixedChange()
	tree := newTree(t, files, Options{})
	verdicts := allowedVerdicts(t, tree, ch)
	before := treetest.Contents(t, tree.Dir())
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	tree.fault = func(string) error {
		if calls++; calls == 3 {
			cancel()
		}
		return nil
	}
	if err := tree.Apply(ctx, ch, verdicts); !errors.Is(err, context.Canceled) {
		t.Errorf("Apply = %v", err)
	}
	if diff := cmp.Diff(before, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

// An error at any step before the sync leaves the tree unchanged.
func TestApplyRollsBack(t *testing.T) {
	testRollBack(t, mixedChange)
	testRollBack(t, roomChange)
}

func testRollBack(t *testing.T, change func() (map[string]string, Change, map[string]string)) {
	broken := errors.New("broken")
	for fail := 0; ; fail++ {
		files, ch, after := change()
		tree := newTree(t, files, Options{})
		verdicts := allowedVerdicts(t, tree, ch)
		before := treetest.Contents(t, tree.Dir())
		calls, at := 0, ""
		tree.fault = func(step string) error {
			calls++
			if calls-1 == fail {
				at = step
				return broken
			}
			return nil
		}
		err := tree.Apply(t.Context(), ch, verdicts)
		if at == "" {
			if err != nil || fail < 12 {
				t.Fatalf("after %d steps: %v", fail, err)
			}
			return
		}
		if !errors.Is(err, broken) {
			t.Fatalf("step %s: %v", at, err)
		}
		want := before
		if len(at) > 4 && at[:4] == "sync" {
			want = after
		}
		if diff := cmp.Diff(want, treetest.Contents(t, tree.Dir())); diff != "" {
			t.Fatalf("step %s:\n%s", at, diff)
		}
		tree.fault = nil
		if err := tree.Apply(t.Context(), ch, verdicts); err != nil {
			t.Fatalf("again after step %s: %v", at, err)
		}
		if diff := cmp.Diff(after, treetest.Contents(t, tree.Dir())); diff != "" {
			t.Fatalf("again after step %s:\n%s", at, diff)
		}
	}
}

// A failed roll-back names the files, and Apply continues from there.
func TestApplyPartial(t *testing.T) {
	files, ch, after := mixedChange()
	tree := newTree(t, files, Options{})
	verdicts := allowedVerdicts(t, tree, ch)
	broken, stuck := errors.New("broken"), errors.New("stuck")
	tree.fault = func(step string) error {
		switch step {
		case "place n/e/w":
			return broken
		case "restore d/b":
			return stuck
		}
		return nil
	}
	err := tree.Apply(t.Context(), ch, verdicts)
	var partial *PartialError
	if !errors.As(err, &partial) || !errors.Is(err, broken) || !errors.Is(partial.Why, stuck) || !cmp.Equal(partial.Paths, []string{"d/b"}) {
		t.Fatalf("Apply = %v", err)
	}
	want := map[string]string{"a": "old a", "d/": "", "d/b": "new b", "d/gone": "old", "keep": "kept", "e/": "", "e/x": "x"}
	if diff := cmp.Diff(want, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
	tree.fault = nil
	if err := tree.Apply(t.Context(), ch, verdicts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

// Apply does not overwrite a file that another process changes, neither when it
// places files nor when it rolls back.
func TestApplyConcurrentChange(t *testing.T) {
	for _, at := range []string{"write a", "staged", "place d/gone", "place n/e/w"} {
		t.Run(at, func(t *testing.T) {
			files, ch, _ := mixedChange()
			tree := newTree(t, files, Options{})
			verdicts := allowedVerdicts(t, tree, ch)
			tree.fault = func(step string) error {
				if step == at {
					treetest.Put(t, tree.Dir(), "d/c", "somebody's")
				}
				return nil
			}
			err := tree.Apply(t.Context(), ch, verdicts)
			var conflict *ConflictError
			if !errors.As(err, &conflict) || !cmp.Equal(conflict.Paths, []string{"d/c"}) {
				t.Fatalf("Apply = %v", err)
			}
			want := map[string]string{
				"a": "old a", "d/": "", "d/b": "old b", "d/c": "somebody's", "d/gone": "old", "keep": "kept", "e/": "", "e/x": "x",
			}
			if diff := cmp.Diff(want, treetest.Contents(t, tree.Dir())); diff != "" {
				t.Error(diff)
			}
		})
	}
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
		verdicts := allowedVerdicts(t, tree, ch)
		file := filepath.Join(tree.Dir(), "d", "c")
		if err := errors.Join(os.RemoveAll(file), replace(file)); err != nil {
			t.Fatal(err)
		}
		var conflict *ConflictError
		if err := tree.Apply(t.Context(), ch, verdicts); !errors.As(err, &conflict) || !slices.Contains(conflict.Paths, "d/c") {
			t.Errorf("%s: %v", name, err)
		}
		if got, _, err := tree.Read("a"); string(got) != files["a"] {
			t.Errorf("%s: a is %q, %v", name, got, err)
		}
	}
}

func TestApplyRemovesLeftovers(t *testing.T) {
	files, ch, after := mixedChange()
	tree := newTree(t, files, Options{})
	verdicts := allowedVerdicts(t, tree, ch)
	for i, v := range verdicts {
		if i < 3 {
			name := treepath.Join(treepath.Parent(v.Path), nofollow.TempName(v.Path, v.After.Digest))
			treetest.Put(t, tree.Dir(), name, fmt.Sprint("left over ", i))
		}
	}
	if err := tree.Apply(t.Context(), ch, verdicts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, treetest.Contents(t, tree.Dir())); diff != "" {
		t.Error(diff)
	}
}

// Apply does not write through a directory that was replaced by a link to its
// new place in the tree.
func TestApplyThroughSwappedDirectory(t *testing.T) {
	for _, at := range []string{"write d/b", "staged"} {
		files, ch, _ := mixedChange()
		tree := newTree(t, files, Options{})
		verdicts := allowedVerdicts(t, tree, ch)
		dir := tree.Dir()
		tree.fault = func(step string) error {
			if step != at {
				return nil
			}
			return errors.Join(os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "moved")), os.Symlink("moved", filepath.Join(dir, "d")))
		}
		var conflict *ConflictError
		if err := tree.Apply(t.Context(), ch, verdicts); !errors.As(err, &conflict) || !cmp.Equal(conflict.Paths, []string{"d/b", "d/gone", "d/c"}) {
			t.Errorf("swapped at %s: %v", at, err)
		}
		want := map[string]string{
			"a": "old a", "d": "->moved", "moved/": "", "moved/b": "old b", "moved/gone": "old", "keep": "kept", "e/": "", "e/x": "x",
		}
		if diff := cmp.Diff(want, treetest.Contents(t, dir)); diff != "" {
			t.Errorf("swapped at %s:\n%s", at, diff)
		}
	}
}
