package listing

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
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
