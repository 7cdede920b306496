package walldir

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"hone/sandbox"
)

// Each process has its own directory. Directories of other processes are
// removed when those have ended, and not before.
func TestWallDir(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("walls are Linux's")
	}
	cache, root := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	first, err := New(root, "x")
	if err != nil {
		t.Fatal(err)
	}
	second, err := New(root, "x")
	if err != nil {
		t.Fatal(err)
	}
	if first.Path == second.Path || first.Aside == second.Aside {
		t.Errorf("two have the same: %+v %+v", first, second)
	}
	if info, err := os.Stat(first.Path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	dir := func(name string) string { return filepath.Join(cache, "hone", name) }
	dead, young, neverLocked := dir(runPrefix+"dead"), dir(newPrefix+"young"), dir(newPrefix+"dead")
	for _, at := range []string{dead, young, neverLocked, dir("mine")} {
		module := filepath.Join(at, "home", "go", "pkg", "mod")
		if err := errors.Join(os.MkdirAll(module, 0o755), os.Chmod(module, 0o500)); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * maxUnlockedAge)
	for _, at := range []string{neverLocked, first.Path, dir("mine")} {
		if err := os.Chtimes(at, old, old); err != nil {
			t.Fatal(err)
		}
	}
	second.Remove()
	if _, err := Recover(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	third, err := New(root, "x")
	if err != nil {
		t.Fatal(err)
	}
	if third.Aside != second.Aside {
		t.Errorf("what the second put aside is not found: %s, %s", second.Aside, third.Aside)
	}
	for dir, want := range map[string]bool{dead: false, neverLocked: false, second.Path: false,
		young: true, dir("mine"): true, first.Path: true, third.Path: true, first.Aside: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v", dir, err)
		}
	}
	first.Remove()
	third.Remove()
}

// What outlives a process lies in the state folder, or in the cache if that cannot be
// used. It is never in the tree.
func TestPlaceOfGuards(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("walls are Linux's")
	}
	cache, state, root := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	for home, where := range map[string]string{state: state, os.DevNull: cache} {
		t.Setenv("XDG_STATE_HOME", home)
		dir, err := New(root, "x")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{dir.Aside, dir.Records} {
			if !sandbox.Within(where, path) {
				t.Errorf("%s is not in %s", path, where)
			}
		}
		dir.Remove()
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(root, "state"))
	if _, err := New(root, "x"); err == nil || !strings.Contains(err.Error(), "must not contain each other") {
		t.Errorf("a state folder in the tree: %v", err)
	}
}
