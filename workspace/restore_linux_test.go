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
)

// nobody is an unprivileged user.
const nobody = 65534

// runAsNobody copies a tree, or restores paths of it to nothing or to a file,
// as an unprivileged user, and prints the outcome.
func runAsNobody(what, dir string, args []string) error {
	tree, err := Open(dir, Options{})
	if err == nil {
		err = dropRights()
	}
	if err != nil {
		return err
	}
	if what == "copy" {
		skipped, err := tree.Copy(context.Background(), args[0])
		fmt.Printf("%q %v", skipped, err)
		return nil
	}
	s := store{}
	var list []Restoration
	for _, arg := range args {
		path, content, wanted := strings.Cut(arg, "=")
		one := Restoration{Path: path, From: []Entry{{}, s.entry("1"), {Kind: Regular, Size: 1}}}
		if wanted {
			one.Want = s.entry(content)
		}
		list = append(list, one)
	}
	changed, err := tree.Restore(context.Background(), list, s.open)
	fmt.Printf("%q %v", changed, err)
	return nil
}

// chownAll gives everything below a directory to the unprivileged user.
func chownAll(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	})
	// The parent directories must be accessible too.
	for up := filepath.Dir(dir); err == nil && strings.HasPrefix(up, os.TempDir()+"/"); up = filepath.Dir(up) {
		err = os.Chmod(up, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
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
			tree := newTree(t, map[string]string{"a": "1", "shut/x": "1", "closed/x": "1"}, Options{})
			chownAll(t, tree.Dir())
			mode := map[string]fs.FileMode{"closed": 0, "unreadable": 0, "read-only": 0o444}[c.name]
			if mode == 0 && c.path != "a" && c.path != "closed" {
				mode = 0o555
			}
			if c.name == "read-only" {
				// Its mode is not as expected, so From must allow it.
				mode = 0o644
				chmod(t, tree, "shut/x", 0)
			}
			chmod(t, tree, c.path, mode)
			defer chmod(t, tree, c.path, 0o755)
			out, err := startAs(t, "nobody", append([]string{"restore", tree.Dir()}, strings.Fields(c.args)...)...).Output()
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
			checkNoLeftovers(t, tree.Dir())
		})
	}
}

// Copy skips and names devices and files that it cannot read.
func TestCopySkips(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", "closed": "2", "shut/x": "3", "d/x": "4"}, Options{})
	if err := unix.Mkfifo(filepath.Join(tree.Dir(), "d", "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	dst := t.TempDir()
	chownAll(t, tree.Dir())
	chownAll(t, dst)
	chmod(t, tree, "closed", 0)
	chmod(t, tree, "shut", 0)
	defer chmod(t, tree, "shut", 0o700)
	out, err := startAs(t, "nobody", "copy", tree.Dir(), dst).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`["closed" "d/fifo" "shut"] <nil>`, string(out)); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(filepath.Join(dst, "shut"))
	if err != nil || info.Mode().Perm() != 0 {
		t.Errorf("shut: %v, %v", info, err)
	}
	if err := os.Chmod(filepath.Join(dst, "shut"), 0o700); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "d/": "", "d/x": "4", "shut/": ""}, contents(t, dst)); diff != "" {
		t.Error(diff)
	}
}

// A FIFO is a conflict, whatever is wanted, and is never opened.
func TestRestoreDevices(t *testing.T) {
	s := store{}
	want := s.entry("want")
	for name, list := range map[string][]Restoration{
		"replaced": {{Path: "d/fifo", Want: want}},
		"removed":  {{Path: "d/fifo"}},
		"in a way": {{Path: "d", Want: want}, {Path: "d/x"}},
		"above":    {{Path: "d/fifo", From: []Entry{{}}}, {Path: "d/fifo/x", Want: want}},
	} {
		tree := newTree(t, map[string]string{"d/x": "want"}, Options{})
		if err := unix.Mkfifo(filepath.Join(tree.Dir(), "d", "fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := tree.Restore(t.Context(), list, s.open)
		var conflict *ConflictError
		if !errors.As(err, &conflict) || len(conflict.Paths) != 1 || conflict.Paths[0] != list[0].Path {
			t.Errorf("%s: %v", name, err)
		}
		if m := manifest(t, tree, nil); len(m) != 2 {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// On a full disk Restore changes nothing and leaves nothing behind.
func TestRestoreOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	put(t, dir, "a", "old")
	tree, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	s := store{}
	list := []Restoration{
		{Path: "a", Want: s.entry("new"), From: []Entry{s.entry("old")}},
		{Path: "n/b", Want: s.entry(strings.Repeat("x", 600<<10))}, {Path: "n/c", Want: s.entry(strings.Repeat("y", 600<<10))},
	}
	if _, err := tree.Restore(t.Context(), list, s.open); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("Restore = %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "old"}, contents(t, dir)); diff != "" {
		t.Error(diff)
	}
	if _, err := tree.Restore(t.Context(), list[:2], s.open); err != nil {
		t.Errorf("a list that fits: %v", err)
	}
}

// The attack on Apply, on Restore: while paths of every kind come and go in
// d/e, the test swaps it for links that lead elsewhere, and for a FIFO.
func TestRestoreUnderAttack(t *testing.T) {
	inMemory(t)
	outside := t.TempDir()
	tree := newTree(t, map[string]string{
		"d/.git/config": "x", "d/e/x": "x", "d/git": "->.git", "d/out": "->" + outside, "d/near": "->neighbour", "d/neighbour/x": "secret",
	}, Options{})
	dir := filepath.Join(tree.Dir(), "d")
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	swapper := startAs(t, "swapper", filepath.Join(dir, "e"), filepath.Join(dir, "git"), filepath.Join(dir, "out"), filepath.Join(dir, "near"), filepath.Join(dir, "fifo"))
	if err := swapper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		swapper.Process.Kill()
		swapper.Wait()
	})
	s := store{}
	s.entry("x")
	length := 4 * time.Second
	if testing.Short() {
		length = 1 * time.Second
	}
	count := map[bool]int{}
	for end, i := time.Now().Add(length), 0; time.Now().Before(end); i++ {
		content := s.entry(fmt.Sprint(i))
		_, err := tree.Restore(t.Context(), []Restoration{
			{Path: "d/e/x", Want: content}, {Path: fmt.Sprintf("d/e/n%d/f", i), Want: content},
			{Path: fmt.Sprintf("d/e/n%d/f", i-1)}, {Path: "d/e/link", Want: Entry{Kind: Symlink, Target: fmt.Sprint(i)}},
		}, s.open)
		count[err == nil]++
	}
	t.Log(count)
	if count[true] == 0 || count[false] == 0 {
		t.Errorf("the attack tried nothing: %v", count)
	}
	swapper.Process.Kill()
	swapper.Wait()
	if found := contents(t, outside); len(found) > 0 {
		t.Errorf("written outside: %v", found)
	}
	if diff := cmp.Diff(map[string]string{"config": "x"}, contents(t, filepath.Join(dir, ".git"))); diff != "" {
		t.Errorf("written into .git:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"x": "secret"}, contents(t, filepath.Join(dir, "neighbour"))); diff != "" {
		t.Errorf("written through a link that stays inside:\n%s", diff)
	}
	checkNoLeftovers(t, tree.Dir())
}
