package restore

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

	"hone/internal/disktest"
	"hone/internal/waittest"
	"hone/workspace"
	"hone/workspace/internal/treetest"
)

func TestMain(m *testing.M) {
	os.Exit(treetest.Main(m, map[string]func(args []string) error{
		"swapper": treetest.Swap,
		"nobody":  func(args []string) error { return restoreAsNobody(args[0], args[1:]) },
	}))
}

// restoreAsNobody restores paths of a tree as an unprivileged user and prints
// the outcome. An argument is a path to remove, or path=contents.
func restoreAsNobody(dir string, args []string) error {
	tree, err := workspace.Open(dir, workspace.Options{})
	if err == nil {
		err = treetest.DropRights()
	}
	if err != nil {
		return err
	}
	s := objects{}
	var list []Target
	for _, arg := range args {
		path, content, wanted := strings.Cut(arg, "=")
		one := Target{Path: path, From: []workspace.Entry{{}, s.entry("1"), {Kind: workspace.Regular, Size: 1}}}
		if wanted {
			one.Want = s.entry(content)
		}
		list = append(list, one)
	}
	changed, err := Paths(context.Background(), tree, list, s.open)
	fmt.Printf("%q %v", changed, err)
	return nil
}

// An unwritable directory is an error that names it, and nothing changes. An
// unreadable file may be replaced if the list allows it.
func TestRestorePermissions(t *testing.T) {
	for _, c := range []struct{ name, path, args, out string }{
		{"removal", "shut", "a shut/x", `[] restore: write to directory shut: permission denied`},
		{"writing", "shut", "a=2 shut/x=2", `[] restore: write to directory shut: permission denied`},
		{"making", "shut", "a=2 shut/n/e/w=2", `[] restore: write to directory shut: permission denied`},
		{"root", ".", "a=2", `[] restore: write to directory ROOT: permission denied`},
		{"closed", "closed", "a=2 closed/x=2", `[] restore: directory closed: permission denied`},
		{"read-only", "a", "a=2 shut/x=2", `["a" "shut/x"] <nil>`},
		{"unreadable", "a", "a=2 shut/x", `["a" "shut/x"] <nil>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := newTree(t, map[string]string{"a": "1", "shut/x": "1", "closed/x": "1"})
			treetest.ChownAll(t, tree.Dir())
			mode := map[string]fs.FileMode{"closed": 0, "unreadable": 0, "read-only": 0o444}[c.name]
			if mode == 0 && c.path != "a" && c.path != "closed" {
				mode = 0o555
			}
			if c.name == "read-only" {
				// Its mode is not as expected, so From must allow it.
				mode = 0o644
				treetest.Chmod(t, tree.Dir(), "shut/x", 0)
			}
			treetest.Chmod(t, tree.Dir(), c.path, mode)
			defer treetest.Chmod(t, tree.Dir(), c.path, 0o755)
			out, err := treetest.Command(t, "nobody", append([]string{tree.Dir()}, strings.Fields(c.args)...)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.ReplaceAll(c.out, "ROOT", tree.Dir()), string(out)); diff != "" {
				t.Error(diff)
			}
			content, err := os.ReadFile(filepath.Join(tree.Dir(), "a"))
			if want := map[bool]string{true: "1", false: "2"}[c.out[:2] == "[]"]; err != nil || string(content) != want {
				t.Errorf("a contains %q, %v", content, err)
			}
			treetest.NoTemps(t, tree.Dir())
		})
	}
}

// A FIFO is a conflict, whatever is wanted, and is never opened.
func TestRestoreDevices(t *testing.T) {
	s := objects{}
	want := s.entry("want")
	for name, list := range map[string][]Target{
		"replaced": {{Path: "d/fifo", Want: want}},
		"removed":  {{Path: "d/fifo"}},
		"in a way": {{Path: "d", Want: want}, {Path: "d/x"}},
		"above":    {{Path: "d/fifo", From: []workspace.Entry{{}}}, {Path: "d/fifo/x", Want: want}},
	} {
		tree := newTree(t, map[string]string{"d/x": "want"})
		if err := unix.Mkfifo(filepath.Join(tree.Dir(), "d", "fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := tree.Restore(t.Context(), list, s.open)
		var conflict *workspace.ConflictError
		if !errors.As(err, &conflict) || len(conflict.Paths) != 1 || conflict.Paths[0] != list[0].Path {
			t.Errorf("%s: %v", name, err)
		}
		if m := manifest(t, tree.Tree); len(m) != 2 {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// On a full disk Paths changes nothing and leaves nothing behind.
func TestRestoreOnFullDisk(t *testing.T) {
	dir := disktest.Small(t, "1m")
	treetest.Put(t, dir, "a", "old")
	tree := openTree(t, dir, workspace.Options{})
	s := objects{}
	list := []Target{
		{Path: "a", Want: s.entry("new"), From: []workspace.Entry{s.entry("old")}},
		{Path: "n/b", Want: s.entry(strings.Repeat("x", 600<<10))}, {Path: "n/c", Want: s.entry(strings.Repeat("y", 600<<10))},
	}
	if _, err := tree.Restore(t.Context(), list, s.open); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("Restore = %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "old"}, treetest.Contents(t, dir)); diff != "" {
		t.Error(diff)
	}
	if _, err := tree.Restore(t.Context(), list[:2], s.open); err != nil {
		t.Errorf("a list that fits: %v", err)
	}
}

// While Paths creates and removes paths of every kind in d/e, another process
// swaps d/e.
func TestRestoreUnderAttack(t *testing.T) {
	treetest.InMemory(t)
	tree := newTree(t, nil)
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
		_, err := tree.Restore(t.Context(), []Target{
			{Path: "d/e/x", Want: content}, {Path: fmt.Sprintf("d/e/n%d/f", i), Want: content},
			{Path: fmt.Sprintf("d/e/n%d/f", i-1)}, {Path: "d/e/link", Want: workspace.Entry{Kind: workspace.Symlink, Target: fmt.Sprint(i)}},
		}, s.open)
		count[err == nil]++
	}
	if t.Log(count); !tried() {
		t.Error("the attack tried nothing")
	}
	attack.Stop(t)
}
