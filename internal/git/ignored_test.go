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

func TestListIgnored(t *testing.T) {
	g := isolatedGit(t)
	r := open(t, g, ignoredRepository(t))
	ctx := context.Background()
	for name, c := range map[string]struct{ paths, want []string }{
		"everything": {[]string{"."}, []string{"Out/a", "Out/deep/b.db", "Out/deep/inner/", "logs/1.log", "logs/deep/2.log",
			"mixed/3.log", "odd\n[a]\xff.db", "src/b.log"}},
		"folders":                       {[]string{"logs", "mixed"}, []string{"logs/1.log", "logs/deep/2.log", "mixed/3.log"}},
		"the case of letters":           {[]string{"OUT/a"}, []string{"Out/a"}},
		"a path of glob characters":     {[]string{"odd\n[A]\xff.db", "o*"}, []string{"odd\n[a]\xff.db"}},
		"what git does not ignore":      {[]string{"src/new", "src/forced.log", "src/main.go", "none"}, nil},
		"nothing":                       {nil, nil},
		"the same twice, and inside it": {[]string{"logs", "logs", "logs/deep"}, []string{"logs/1.log", "logs/deep/2.log"}},
	} {
		got, err := r.IgnoredFiles(ctx, c.paths...)
		if err != nil || !cmp.Equal(c.want, got, cmpEmpty) {
			t.Errorf("%s: ListIgnored(%q) = %q, %v; want %q", name, c.paths, got, err, c.want)
		}
	}
	for _, p := range []string{"../x", "/etc", "a/../../b"} {
		if _, err := r.IgnoredFiles(ctx, p); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("ListIgnored(%q) = %v", p, err)
		}
		if _, err := r.IgnoredPaths(ctx, p); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("IgnoredPaths(%q) = %v", p, err)
		}
	}
}
