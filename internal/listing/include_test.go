package listing

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/workspace"
)

// personal keeps the user's git configuration out of a test.
func personal(t testing.TB) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "a")
		t.Setenv("GIT_"+who+"_EMAIL", "a@example.com")
	}
}

// gitAt runs git in a directory.
func gitAt(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
}

// planted returns a new directory with these files, each of which contains its
// name.
func planted(t testing.TB, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	addTo(t, dir, names...)
	return dir
}

func addTo(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// ignoring is a repository that ignores many files, with a repository in it,
// and another one in an ignored directory.
func ignoring(t testing.TB) string {
	t.Helper()
	personal(t)
	dir := planted(t, "a.go", ".env", ".env.local", "top.db", "data/a.db", "data/deep/b.db", "Data2/x.db",
		"out/bin", "out/sub/lib", "out/vendor/dep.go", "out/vendor/dep.db",
		"nested/n.go", "nested/n.db", "nested/data/m.db", "nested/data/x.db", "odd/[x].db")
	for _, repo := range []string{"", "nested", "out/vendor"} {
		at := filepath.Join(dir, filepath.FromSlash(repo))
		if err := os.WriteFile(filepath.Join(at, ".gitignore"), []byte("*.db\n.env*\n/out/\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		gitAt(t, at, "init", "-q")
	}
	return dir
}

func TestInclude(t *testing.T) {
	root := ignoring(t)
	for _, c := range []struct {
		globs []string
		want  []string // the ignored files of a manifest
	}{
		{nil, nil},
		{[]string{".env.local"}, []string{".env.local"}},
		{[]string{".env*"}, []string{".env", ".env.local"}},
		{[]string{"*.db"}, []string{"top.db"}},
		{[]string{"**/*.db"}, []string{"Data2/x.db", "data/a.db", "data/deep/b.db", "nested/data/m.db", "nested/data/x.db", "nested/n.db",
			"odd/[x].db", "out/vendor/dep.db", "top.db"}},
		{[]string{"data"}, []string{"data/a.db", "data/deep/b.db"}},
		{[]string{"DATA/*.DB"}, []string{"data/a.db"}},
		{[]string{"data*/"}, []string{"Data2/x.db", "data/a.db", "data/deep/b.db"}},
		{[]string{"./nested/data"}, []string{"nested/data/m.db", "nested/data/x.db"}},
		{[]string{"*/*/m.db", "*/n.db"}, []string{"nested/data/m.db", "nested/n.db"}},
		{[]string{"{nested/data,odd}/*.db"}, []string{"nested/data/m.db", "nested/data/x.db", "odd/[x].db"}},
		{[]string{`odd/\[x\].db`}, []string{"odd/[x].db"}},
		{[]string{"out/sub", "out/vendor/*.go"}, []string{"out/sub/lib", "out/vendor/dep.go"}},
		{[]string{"out/"}, []string{"out/bin", "out/sub/lib", "out/vendor/.gitignore", "out/vendor/dep.db", "out/vendor/dep.go"}},
		{[]string{"a.go", "nested/n.go", "gone/*", "gone", "a.go/x*", "nested"}, []string{"nested/data/m.db", "nested/data/x.db", "nested/n.db"}},
	} {
		t.Run(fmt.Sprint(c.globs), func(t *testing.T) {
			list, err := Of(root, root, c.globs...)
			if err != nil {
				t.Fatal(err)
			}
			checkIncluded(t, root, list, c.want)
		})
	}
}

// checkIncluded compares a tree's manifest with that of the tree without
// included files.
func checkIncluded(t *testing.T, root string, list workspace.Lister, want []string) {
	t.Helper()
	plain, err := Of(root, root)
	if err != nil {
		t.Fatal(err)
	}
	names := pathsOf(t, root, list, func(e workspace.Entry) bool { return e.Ignored })
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("ignored files: %s", diff)
	}
	all := func(workspace.Entry) bool { return true }
	usual := append(pathsOf(t, root, plain, all), want...)
	slices.Sort(usual)
	if diff := cmp.Diff(usual, pathsOf(t, root, list, all)); diff != "" {
		t.Errorf("all files: %s", diff)
	}
}

// pathsOf returns the paths of some entries of a tree's manifest.
func pathsOf(t *testing.T, root string, list workspace.Lister, some func(workspace.Entry) bool) (paths []string) {
	t.Helper()
	tree, err := workspace.Open(root, workspace.Options{List: list})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	m, err := tree.Manifest(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range m {
		if some(e) {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// If the workspace is a directory of a repository, its globs are relative to
// the workspace.
func TestIncludeBelowTop(t *testing.T) {
	personal(t)
	top := planted(t, "data/a.db", "sub/data/b.db", "sub/c.db", "sub2/data/d.db")
	gitAt(t, top, "init", "-q")
	if err := os.WriteFile(filepath.Join(top, ".gitignore"), []byte("*.db\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(top, "sub")
	list, err := Of(root, root, "data", "*/a.db")
	if err != nil {
		t.Fatal(err)
	}
	l, err := list(context.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	want := workspace.Listing{Paths: []string{"data/b.db"}, Untracked: map[string]bool{"data/b.db": true}, Ignored: map[string]bool{"data/b.db": true}}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Error(diff)
	}
}

// Only directories in which a glob can match are entered.
func TestIncludeEntersLittle(t *testing.T) {
	for _, c := range []struct {
		glob, dir string
		want      bool
	}{
		{".env*", "node_modules", false},
		{"data/*.db", "data", true},
		{"data/*.db", "DATA", true},
		{"data/*.db", "data/sub", false},
		{"data/*/*.db", "data/sub", true},
		{"data/*/*.db", "node_modules", false},
		{"**/*.db", "node_modules", true},
		{"data/**", "data/sub", true},
		{"data/**", "node_modules", false},
		{"data/{a,b}/*.db", "node_modules", false},
		{"{data,x}/a.db", "x", true},
		{"data", "data/sub", true},
		{"data/sub", "data/other", false},
		{"data*", "data/sub", false},
		{"data*/", "data2/sub", true},
		{"./data/", "data", true},
		{".", "data", true},
	} {
		if got := mayMatchIn(c.glob, c.dir); got != c.want {
			t.Errorf("%q in %q: %v", c.glob, c.dir, got)
		}
	}
}

// A directory that its repository ignores is listed once it is a repository itself.
func TestOwnRepositoryLater(t *testing.T) {
	personal(t)
	top := planted(t, "src/main.go")
	gitAt(t, top, "init", "-q")
	if err := os.WriteFile(filepath.Join(top, ".gitignore"), []byte("src/\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(top, "src")
	list, err := Of(root, root)
	if err != nil {
		t.Fatal(err)
	}
	if l, err := list(context.Background(), root); err != nil || len(l.Paths) != 0 {
		t.Fatalf("ignored, it has %q, %v", l.Paths, err)
	}
	gitAt(t, root, "init", "-q")
	if l, err := list(context.Background(), root); err != nil || !slices.Equal(l.Paths, []string{"main.go"}) {
		t.Errorf("as a repository, it has %q, %v", l.Paths, err)
	}
}
