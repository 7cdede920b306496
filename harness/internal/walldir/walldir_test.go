package walldir

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

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
	if first.Path == second.Path || first.Repositories == second.Repositories {
		t.Errorf("two have the same: %+v %+v", first, second)
	}
	if info, err := os.Stat(first.Path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	dead, mine := filepath.Join(cache, "hone", runPrefix+"dead"), filepath.Join(cache, "hone", "mine")
	for _, at := range []string{dead, mine} {
		module := filepath.Join(at, "home", "go", "pkg", "mod")
		if err := errors.Join(os.MkdirAll(module, 0o755), os.Chmod(module, 0o500)); err != nil {
			t.Fatal(err)
		}
	}
	owed := filepath.Join(first.Aside, treePrefix(root)+"dead")
	if err := os.Mkdir(owed, 0o700); err != nil {
		t.Fatal(err)
	}
	second.Remove()
	if _, err := Recover(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	want := func(exist bool, dirs ...string) {
		t.Helper()
		for _, dir := range dirs {
			if _, err := os.Stat(dir); (err == nil) != exist {
				t.Errorf("%s: %v", dir, err)
			}
		}
	}
	want(false, dead, second.Path, second.Repositories)
	want(true, mine, first.Path, first.Repositories, owed)
	if _, err := Recover(root); err != nil {
		t.Fatal(err)
	}
	want(false, owed)
	want(true, first.Path, first.Repositories)
	first.Remove()
	want(false, first.Path, first.Repositories)
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
		for _, path := range []string{dir.Aside, dir.Repositories} {
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
