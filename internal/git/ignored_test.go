package git

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ignoredRepository returns a repository with ignored files of every kind.
func ignoredRepository(t testing.TB) string {
	t.Helper()
	top := repository(t, ".gitignore", "*.log\n/Out/\n*.db\n", "src/main.go", "x", "src/forced.log", "x")
	git(t, top, "add", "-f", "src/forced.log")
	git(t, top, "commit", "-q", "-m", "forced")
	write(t, top, "Out/a", "x", "Out/deep/b.db", "x", "Out/deep/inner/f", "x", "src/new", "x", "src/b.log", "x",
		"logs/1.log", "x", "logs/deep/2.log", "x", "mixed/kept", "x", "mixed/3.log", "x", "odd\n[a]\xff.db", "x",
		"nested/f", "x", "nested/4.log", "x")
	git(t, filepath.Join(top, "nested"), "init", "-q")
	git(t, filepath.Join(top, "Out", "deep", "inner"), "init", "-q")
	return top
}

func TestIgnoredPaths(t *testing.T) {
	g := isolatedGit(t)
	r := open(t, g, ignoredRepository(t))
	for dir, want := range map[string][]string{
		"":     {"Out/", "logs/", "mixed/3.log", "odd\n[a]\xff.db", "src/b.log"},
		"src":  {"src/b.log"},
		"none": nil,
	} {
		got, err := r.IgnoredPaths(context.Background(), dir)
		if err != nil || !cmp.Equal(want, got, cmpEmpty) {
			t.Errorf("IgnoredPaths(%q) = %q, %v; want %q", dir, got, err, want)
		}
	}
}

// cmpEmpty makes a nil and an empty list equal.
var cmpEmpty = cmp.FilterValues(func(a, b []string) bool { return len(a)+len(b) == 0 }, cmp.Ignore())

func TestIgnoredPathsOutside(t *testing.T) {
	r := open(t, isolatedGit(t), ignoredRepository(t))
	for _, p := range []string{"../x", "/etc", "a/../../b"} {
		if _, err := r.IgnoredPaths(t.Context(), p); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("IgnoredPaths(%q) = %v", p, err)
		}
	}
}
