package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"hone/internal/crashtest/waittest"
	"hone/workspace/internal/treetest"
)

// applyAsNobody changes paths of a tree as an unprivileged user and prints
// the outcome. An argument is a path to remove, or path=contents.
func applyAsNobody(dir string, args []string) error {
	tree, err := Open(dir, Options{})
	if err == nil {
		err = treetest.DropRights()
	}
	if err != nil {
		return err
	}
	s := objects{}
	var list []Delta
	for _, arg := range args {
		path, content, wanted := strings.Cut(arg, "=")
		m, err := tree.ManifestOf(context.Background(), []string{path}, nil)
		if err != nil {
			return err
		}
		now, _ := m.Entry(path)
		one := Delta{Path: path, Before: now}
		if wanted {
			one.After = s.entry(content)
		}
		list = append(list, one)
	}
	s.entry("1")
	changed, err := tree.Apply(context.Background(), list, s.open)
	fmt.Printf("%q %v", changed, err)
	return nil
}

// If a directory of somebody else may not be written to, nothing changes. Directories of the user are changed whatever their
// permission bits, and keep those. An unreadable file is replaced.
func TestApplyPermissions(t *testing.T) {
	for _, c := range []struct {
		name, path string
		mode       fs.FileMode
		owner      int
		args, out  string
	}{
		{"removal", "shut", 0o555, 0, "a shut/x", `[] apply: remove shut/x: permission denied`},
		{"writing", "shut", 0o555, 0, "a=2 shut/x=2", `[] apply: write shut/x: permission denied`},
		{"making", "shut", 0o555, 0, "a=2 shut/n/e/w=2", `[] apply: write shut/n/e/w: permission denied`},
		{"root", ".", 0o555, 0, "a=2", `[] apply: write a: permission denied`},
		{"closed", "shut", 0, 0, "a=2 shut/x=2", `[] apply: look for shut/x: permission denied`},
		{"own removal", "shut", 0o555, 65534, "a=2 shut/x", `["a" "shut/x"] <nil>`},
		{"own writing", "shut", 0o511, 65534, "a=2 shut/x=2 shut/n/e/w=2", `["a" "shut/n/e/w" "shut/x"] <nil>`},
		{"own root", ".", 0o555, 65534, "a=2 shut/x=2", `["a" "shut/x"] <nil>`},
		{"read-only", "shut/x", 0o444, 65534, "a=2 shut/x=2", `["a" "shut/x"] <nil>`},
		{"unreadable", "shut/x", 0, 65534, "a=2 shut/x", `["a" "shut/x"] <nil>`},
		{"unreadable of another", "shut/x", 0, 0, "a=2 shut/x", `["a" "shut/x"] <nil>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := newTree(t, map[string]string{"a": "1", "shut/x": "1", "shut/y": "1"}, Options{})
			treetest.ChownAll(t, tree.Dir())
			at := filepath.Join(tree.Dir(), c.path)
			if err := os.Chown(at, c.owner, c.owner); err != nil {
				t.Skipf("this needs root: %v", err)
			}
			treetest.Chmod(t, tree.Dir(), c.path, c.mode)
			out, err := treetest.Command(t, "nobody", append([]string{tree.Dir()}, strings.Fields(c.args)...)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.out, string(out)); diff != "" {
				t.Error(diff)
			}
			if info, err := os.Stat(at); err == nil && info.IsDir() && info.Mode().Perm() != c.mode {
				t.Errorf("%s has the mode %v afterwards", c.path, info.Mode())
			}
			content, err := os.ReadFile(filepath.Join(tree.Dir(), "a"))
			if want := map[bool]string{true: "1", false: "2"}[c.out[:2] == "[]"]; err != nil || string(content) != want {
				t.Errorf("a contains %q, %v", content, err)
			}
			treetest.NoTemps(t, tree.Dir())
		})
	}
}

// A review says that a file has another name, which keeps the old contents.
func TestReviewNamesHardLinks(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", "b": "1"}, Options{})
	if err := os.Link(filepath.Join(tree.Dir(), "a"), filepath.Join(t.TempDir(), "other")); err != nil {
		t.Skip(err)
	}
	vs, err := tree.Review(Change{Edits: []Edit{{Path: "a", Content: []byte("2")}, {Path: "b", Content: []byte("2")}, {Path: "c", Content: []byte("2")}}}, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vs {
		if v.Linked != (i == 0) {
			t.Errorf("%+v", v)
		}
	}
}

// A FIFO is a conflict, whatever is wanted, and is never opened.
func TestApplyDevices(t *testing.T) {
	s := objects{}
	want := s.entry("want")
	for name, list := range map[string][]Delta{
		"replaced": {{Path: "d/fifo", After: want}},
		"removed":  {{Path: "d/fifo"}},
		"in a way": {{Path: "d", After: want}, {Path: "d/x", Before: want}},
		"above":    {{Path: "d/fifo"}, {Path: "d/fifo/x", After: want}},
	} {
		tree := newTree(t, map[string]string{"d/x": "want"}, Options{})
		if err := unix.Mkfifo(filepath.Join(tree.Dir(), "d", "fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := tree.Apply(t.Context(), list, s.open)
		var conflict *ConflictError
		if !errors.As(err, &conflict) || len(conflict.Paths) != 1 || conflict.Paths[0] != list[0].Path {
			t.Errorf("%s: %v", name, err)
		}
		if m := manifest(t, tree, nil); len(m) != 2 {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// What is known to be a FIFO gives way.
func TestApplyReplacesKnownDevices(t *testing.T) {
	s := objects{}
	want := s.entry("want")
	tree := newTree(t, map[string]string{"a": "1"}, Options{})
	for _, name := range []string{"replaced", "removed"} {
		if err := unix.Mkfifo(filepath.Join(tree.Dir(), name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed, err := tree.Apply(t.Context(), []Delta{{Path: "replaced", Before: Entry{Kind: Other}, After: want}, {Path: "removed", Before: Entry{Kind: Other}}}, s.open)
	if err != nil || len(changed) != 2 {
		t.Errorf("%q, %v", changed, err)
	}
	m := manifest(t, tree, nil)
	if e, _ := m.Entry("replaced"); len(m) != 2 || e.Digest != want.Digest {
		t.Errorf("%+v", m)
	}
}

// While Apply creates and removes paths of every kind in d/e, another process
// swaps d/e.
func TestApplyAllKindsUnderAttack(t *testing.T) {
	treetest.InMemory(t)
	tree := newTree(t, nil, Options{})
	attack := treetest.StartAttack(t, tree.Dir())
	s := objects{}
	s.entry("x")
	length := 4 * time.Second
	if testing.Short() {
		length = 1 * time.Second
	}
	count := map[bool]int{}
	tried := func() bool { return count[true] > 0 && count[false] > 0 }
	began := time.Now()
	for i := 0; time.Since(began) < length || !tried() && time.Since(began) < waittest.Limit; i++ {
		content := s.entry(fmt.Sprint(i))
		list := []Delta{
			{Path: "d/e/x", After: content}, {Path: fmt.Sprintf("d/e/n%d/f", i), After: content},
			{Path: fmt.Sprintf("d/e/n%d/f", i-1)}, {Path: "d/e/link", After: Entry{Kind: Symlink, Target: fmt.Sprint(i)}},
		}
		for i := range list {
			if m, err := tree.ManifestOf(t.Context(), []string{list[i].Path}, nil); err == nil {
				list[i].Before, _ = m.Entry(list[i].Path)
			}
		}
		_, err := tree.Apply(t.Context(), list, s.open)
		count[err == nil]++
	}
	if t.Log(count); !tried() {
		t.Error("the attack tried nothing")
	}
	attack.Stop(t)
}
