package eval

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// put writes files below a directory.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Old copies of an evaluation are swept, and recent ones of another are not.
func TestSweep(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("LocalAppData", t.TempDir())
	var dirs []string
	for _, record := range []string{"/old", "/young"} {
		dir, unlock, err := Open(record)
		if err != nil {
			t.Fatal(err)
		}
		put(t, dir, map[string]string{"tries/a-1-x/project/a.txt": "a"})
		if _, _, err := Open(record); err == nil {
			t.Error("two evaluations share a record")
		}
		unlock()
		dirs = append(dirs, dir)
	}
	long := time.Now().Add(-2 * maxAge)
	if err := os.Chtimes(dirs[0], long, long); err != nil {
		t.Fatal(err)
	}
	_, unlock, err := Open("/new")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := os.Lstat(dirs[0]); err == nil {
		t.Error("the old copies are left")
	}
	if _, err := os.Lstat(filepath.Join(dirs[1], "tries", "a-1-x", "project", "a.txt")); err != nil {
		t.Error(err)
	}
}
