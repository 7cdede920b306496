package attempts

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"hone"
	"hone/group"
	"hone/journal"
)

// tree returns a directory with a file, a read-only directory and a home.
func tree(t *testing.T) string {
	t.Helper()
	top := filepath.Join(t.TempDir(), "project")
	err := errors.Join(os.MkdirAll(filepath.Join(top, "closed"), 0o755), os.MkdirAll(filepath.Join(top, journal.HomeName), 0o700),
		os.WriteFile(filepath.Join(top, "closed", "a"), []byte("a"), 0o600), os.Chmod(filepath.Join(top, "closed"), 0o500))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(top, "closed"), 0o700) })
	return top
}

// The copies have everything but the home, are for the user only, replace what an earlier
// process left, and can be removed.
func TestCopies(t *testing.T) {
	top := tree(t)
	p := place{top: top, rel: ".", root: filepath.Join(t.TempDir(), "run")}
	if err := os.MkdirAll(filepath.Join(p.copy(1), "half"), 0o700); err != nil {
		t.Fatal(err)
	}
	if skipped, err := p.make(t.Context(), top, nil, 2, 0); err != nil || len(skipped) > 0 {
		t.Fatal(skipped, err)
	}
	for n := 1; n <= 2; n++ {
		entries, err := os.ReadDir(p.dir(n))
		if err != nil || len(entries) != 1 || entries[0].Name() != "closed" {
			t.Errorf("copy %d: %v, %v", n, entries, err)
		}
		if b, err := os.ReadFile(filepath.Join(p.dir(n), "closed", "a")); err != nil || string(b) != "a" {
			t.Errorf("copy %d: %q, %v", n, b, err)
		}
	}
	if info, err := os.Stat(p.root); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if err := group.Remove(p.root); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.root); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}

// If the disk would become too full there are no copies at all.
func TestCopiesLeaveSpace(t *testing.T) {
	top := tree(t)
	if _, ok := journal.FreeSpace(top); !ok {
		t.Skip("the system does not tell how much space is free")
	}
	p := place{top: top, rel: ".", root: filepath.Join(t.TempDir(), "run")}
	_, err := p.make(t.Context(), top, nil, 2, 1<<62)
	stop, ok := errors.AsType[*hone.Stop](err)
	if !ok || stop.Kind != hone.KindFailed {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.root); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}
