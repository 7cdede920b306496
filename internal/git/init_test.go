package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func initialize(t testing.TB, g *Git, dir string, exclude ...string) *Repo {
	t.Helper()
	r, err := g.Init(context.Background(), dir, exclude...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// newDir returns a new directory without symbolic links in its path.
func newDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A repository further up does not count, and the user's template adds no hooks
// or other files.
func TestInit(t *testing.T) {
	g := isolatedGit(t)
	template := t.TempDir()
	write(t, template, "hooks/post-commit", "x", "stray", "x")
	git(t, "", "config", "--global", "init.templateDir", template)
	git(t, "", "config", "--global", "init.defaultBranch", "trunk")
	git(t, "", "config", "--global", "core.preferSymlinkRefs", "true")
	outer := repository(t, "f", "1")
	dir := filepath.Join(outer, "src")
	write(t, dir, "a", "1")
	r := initialize(t, g, dir, "/results/", "*.tmp")
	if r.root != dir || strings.TrimSpace(git(t, dir, "rev-parse", "--show-toplevel")) != dir {
		t.Errorf("the top is %s, want %s", r.root, dir)
	}
	if head := git(t, dir, "symbolic-ref", "HEAD"); head != "refs/heads/main\n" {
		t.Errorf("HEAD is %q", head)
	}
	for _, name := range []string{"hooks", "stray"} {
		if _, err := os.Lstat(filepath.Join(dir, ".git", name)); err == nil {
			t.Errorf(".git/%s came from a template", name)
		}
	}
	if got := read(t, filepath.Join(dir, ".git", "info", "exclude")); got != "/results/\n*.tmp\n" {
		t.Errorf("info/exclude is %q", got)
	}
	if id, message, err := r.Head(context.Background()); id != "" || message != "" || err != nil {
		t.Errorf("Head() = %q, %q, %v", id, message, err)
	}
}

func TestInitOfWhatIsThere(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "f", "1")
	exclude := filepath.Join(dir, ".git", "info", "exclude")
	write(t, dir, ".git/info/exclude", "# mine\n/a\r\n/b")
	config := read(t, filepath.Join(dir, ".git", "config"))
	initialize(t, g, dir)
	if got := read(t, exclude); got != "# mine\n/a\r\n/b" {
		t.Errorf("without patterns, info/exclude is %q", got)
	}
	for range 2 {
		initialize(t, g, dir, "/a", "/c", "/b", "/c")
		if got := read(t, exclude); got != "# mine\n/a\r\n/b\n/c\n" {
			t.Errorf("info/exclude is %q", got)
		}
	}
	if read(t, filepath.Join(dir, ".git", "config")) != config || git(t, dir, "log", "--format=%s") != "first\n" {
		t.Error("the existing repository changed")
	}
}

func TestInitCompletes(t *testing.T) {
	g := isolatedGit(t)
	for name, prepare := range map[string]func(dir string) error{
		"an empty .git": func(dir string) error { return os.Mkdir(filepath.Join(dir, ".git"), 0o755) },
		"no objects":    func(dir string) error { return os.RemoveAll(filepath.Join(dir, ".git", "objects")) },
		"no HEAD":       func(dir string) error { return os.Remove(filepath.Join(dir, ".git", "HEAD")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			if name != "an empty .git" {
				git(t, dir, "init", "-q")
			}
			if err := prepare(dir); err != nil {
				t.Fatal(err)
			}
			r := initialize(t, g, dir)
			write(t, dir, "f", "1")
			if made, err := r.Commit(context.Background(), Commit{Subject: "s"}); err != nil || !made.Made {
				t.Errorf("Commit() = %v, %v", made, err)
			}
		})
	}
}

func TestInitRefuses(t *testing.T) {
	g := isolatedGit(t)
	file := filepath.Join(t.TempDir(), "file")
	write(t, filepath.Dir(file), "file", "x")
	for _, dir := range []string{"", ".", "relative", file, filepath.Join(file, "below"), filepath.Join(t.TempDir(), "none")} {
		if _, err := g.Init(context.Background(), dir); err == nil {
			t.Errorf("Init(%q) made a repository", dir)
		}
	}
	dir := newDir(t)
	if _, err := g.Init(context.Background(), dir, "a\nb"); err == nil || !strings.Contains(err.Error(), `"a\nb"`) {
		t.Errorf("a pattern of two lines: %v", err)
	}
}

// unsafeDirs make a git directory lead elsewhere. Each gets a safe
// repository, and another one to lead to.
var unsafeDirs = map[string]func(t *testing.T, dotGit, other string){
	"a link to a directory": func(t *testing.T, dotGit, other string) { replace(t, dotGit, filepath.Join(other, ".git")) },
	"a dangling link":       func(t *testing.T, dotGit, other string) { replace(t, dotGit, filepath.Join(other, "none")) },
	"a pointer": func(t *testing.T, dotGit, other string) {
		if err := os.RemoveAll(dotGit); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Dir(dotGit), ".git", "gitdir: "+filepath.Join(other, ".git")+"\n")
	},
	"linked objects": func(t *testing.T, dotGit, other string) {
		replace(t, filepath.Join(dotGit, "objects"), filepath.Join(other, ".git", "objects"))
	},
	"linked branches": func(t *testing.T, dotGit, other string) {
		replace(t, filepath.Join(dotGit, "refs", "heads"), filepath.Join(other, ".git", "refs", "heads"))
	},
	"a linked index": func(t *testing.T, dotGit, other string) {
		replace(t, filepath.Join(dotGit, "index"), filepath.Join(other, "f"))
	},
	"a linked log": func(t *testing.T, dotGit, other string) {
		replace(t, filepath.Join(dotGit, "logs", "HEAD"), filepath.Join(other, "f"))
	},
	"a linked list": func(t *testing.T, dotGit, other string) {
		replace(t, filepath.Join(dotGit, "info"), other)
	},
	"a linked room for the index": func(t *testing.T, dotGit, other string) {
		replace(t, filepath.Join(dotGit, "hone-index"), other)
	},
	"a common directory": func(t *testing.T, dotGit, other string) {
		write(t, dotGit, "commondir", filepath.Join(other, ".git")+"\n")
	},
	"borrowed objects": func(t *testing.T, dotGit, other string) {
		write(t, dotGit, "objects/info/alternates", filepath.Join(other, ".git", "objects")+"\n")
	},
}

// replace puts a symbolic link in place of whatever exists.
func replace(t *testing.T, at, target string) {
	t.Helper()
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, at); err != nil {
		t.Fatal(err)
	}
}

// listing returns every file below a directory with its contents.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b.WriteString(path + "\n" + read(t, path) + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestUnsoundIsRefused(t *testing.T) {
	for name, prepare := range unsafeDirs {
		t.Run(name, func(t *testing.T) {
			g := isolatedGit(t)
			dir, other := repository(t, "f", "1"), repository(t, "f", "other")
			r := open(t, g, dir)
			prepare(t, filepath.Join(dir, ".git"), other)
			before := listing(t, other)
			write(t, dir, "f", "2")
			ctx := context.Background()
			if _, err := g.Init(ctx, dir, "/x"); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), dir) {
				t.Errorf("Init() = %v", err)
			}
			if made, err := r.Commit(ctx, Commit{Subject: "s"}); !errors.Is(err, ErrUnsafe) || made.Made {
				t.Errorf("Commit() = %v, %v", made, err)
			}
			if _, _, err := r.Head(ctx); !errors.Is(err, ErrUnsafe) {
				t.Errorf("Head() = %v", err)
			}
			if _, _, err := r.FindCommit(ctx, "first"); !errors.Is(err, ErrUnsafe) {
				t.Errorf("Find() = %v", err)
			}
			if listing(t, other) != before {
				t.Error("the other repository changed")
			}
		})
	}
}

// Links among the hooks are common, and hooks never run.
func TestLinkedHooksAreSound(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "hook", "#!/bin/sh\nexit 1\n")
	replace(t, filepath.Join(dir, ".git", "hooks", "pre-commit"), filepath.Join(dir, "hook"))
	if made, err := open(t, g, dir).Commit(context.Background(), Commit{Subject: "s"}); err != nil || !made.Made {
		t.Errorf("Commit() = %v, %v", made, err)
	}
}
