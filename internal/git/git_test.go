package git

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// isolatedGit isolates a test from the configuration of the user who runs it.
func isolatedGit(t testing.TB) *Git {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, name := range []string{"XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	g, err := Find("")
	if err != nil {
		t.Skip(err)
	}
	return g
}

// git runs plain git like a user, and fails the test if git fails.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// write writes files in a directory; names and contents alternate.
func write(t testing.TB, dir string, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		file := filepath.Join(dir, filepath.FromSlash(pairs[i]))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(pairs[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// repository returns a new repository with a commit of the given files on main.
func repository(t testing.TB, pairs ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "-q")
	git(t, dir, "symbolic-ref", "HEAD", "refs/heads/main")
	if len(pairs) > 0 {
		write(t, dir, pairs...)
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-q", "-m", "first")
	}
	return dir
}

func open(t testing.TB, g *Git, dir string) *Repo {
	t.Helper()
	r, err := g.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVersion(t *testing.T) {
	g := isolatedGit(t)
	v, err := g.Version(context.Background())
	if err != nil || v == "" || strings.Contains(v, "git") || !strings.Contains(git(t, "", "version"), v) {
		t.Errorf("Version() = %q, %v", v, err)
	}
}

func TestFindWithoutGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Find(""); !errors.Is(err, ErrNoGit) {
		t.Errorf("Find() = %v, want ErrNoGit", err)
	}
}

func TestRoot(t *testing.T) {
	isolatedGit(t)
	top := repository(t, "a/b/c", "x")
	linked := filepath.Join(t.TempDir(), "linked")
	git(t, top, "worktree", "add", "-q", linked)
	linked, _ = filepath.EvalSymlinks(linked)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(top, "a"), link); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(top, "empty", ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, top, "odd/.git", "not a pointer")
	for name, c := range map[string]struct{ dir, want string }{
		"the top":                     {top, top},
		"a directory below":           {filepath.Join(top, "a", "b"), top},
		"a linked work tree":          {linked, linked},
		"through a link":              {filepath.Join(link, "b"), top},
		"an empty .git is none":       {filepath.Join(top, "empty"), top},
		"a .git file with other text": {filepath.Join(top, "odd"), top},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Root(c.dir)
			if err != nil || got != c.want {
				t.Errorf("Root(%s) = %q, %v; want %q", c.dir, got, err, c.want)
			}
		})
	}
}

func TestRootOfWorkingDirectoryThroughLink(t *testing.T) {
	isolatedGit(t)
	top := repository(t, "a/b", "x")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(top, "a"), link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(link)
	if got, err := Root(""); err != nil || got != top {
		t.Errorf("Root() = %q, %v; want %q", got, err, top)
	}
}

func TestRootOutside(t *testing.T) {
	for name, dir := range map[string]string{"no repository": t.TempDir(), "no directory": filepath.Join(t.TempDir(), "gone")} {
		_, err := Root(dir)
		if err == nil || (name == "no repository") != errors.Is(err, ErrNotRepository) {
			t.Errorf("%s: Root() = %v", name, err)
		}
	}
}

func TestList(t *testing.T) {
	g := isolatedGit(t)
	top := repository(t, ".gitignore", "*.log\n/out/\n", "kept", "x", "gone", "x", "sub/tracked", "x", "odd\nname\xff", "x")
	write(t, top, "new", "x", "a.log", "x", "out/x", "x", "sub/fresh", "x", "sub/b.log", "x", "nested/inner", "x", "[a]", "x")
	git(t, filepath.Join(top, "nested"), "init", "-q")
	if err := os.Remove(filepath.Join(top, "gone")); err != nil {
		t.Fatal(err)
	}
	r := open(t, g, filepath.Join(top, "sub"))
	all := []Entry{
		{Path: ".gitignore"},
		{Path: "[a]", Untracked: true},
		{Path: "gone"},
		{Path: "kept"},
		{Path: "nested", Untracked: true, Nested: true},
		{Path: "new", Untracked: true},
		{Path: "odd\nname\xff"},
		{Path: "sub/fresh", Untracked: true},
		{Path: "sub/tracked"},
	}
	for dir, want := range map[string][]Entry{"": all, ".": all, "sub": all[7:], "[a]": all[1:2], "none": {}, "su": {}} {
		got, err := r.List(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("List(%q): %s", dir, diff)
		}
	}
}

func TestListKnowsSubmodulesAndMerges(t *testing.T) {
	g := isolatedGit(t)
	top := repository(t, "f", "1")
	write(t, top, "module/.keep", "")
	if err := os.Remove(filepath.Join(top, "module", ".keep")); err != nil {
		t.Fatal(err)
	}
	git(t, top, "update-index", "--add", "--cacheinfo", "160000,"+strings.TrimSpace(git(t, top, "rev-parse", "HEAD"))+",module")
	git(t, top, "checkout", "-q", "-b", "other")
	write(t, top, "f", "2")
	git(t, top, "commit", "-q", "-am", "other")
	git(t, top, "checkout", "-q", "main")
	write(t, top, "f", "3")
	git(t, top, "commit", "-q", "-am", "third")
	if out, err := tryGit(top, "merge", "other"); err == nil {
		t.Fatalf("the merge should conflict: %s", out)
	}
	got, err := open(t, g, top).List(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Entry{{Path: "f"}, {Path: "module", Nested: true}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPathsOutsideAreRefused(t *testing.T) {
	g := isolatedGit(t)
	r := open(t, g, repository(t, "f", "1"))
	for _, p := range []string{"../x", "/etc", "a/../../b"} {
		if _, err := r.List(context.Background(), p); err == nil {
			t.Errorf("List(%q) succeeded", p)
		}
		if _, err := r.DiffMain(context.Background(), nil, p); err == nil {
			t.Errorf("DiffMain(%q) succeeded", p)
		}
	}
}

func TestUnreadableRepository(t *testing.T) {
	g := isolatedGit(t)
	outer := repository(t, "f", "1")
	top := filepath.Join(outer, "inner")
	write(t, top, ".git/HEAD", "nonsense\n", "x", "1")
	_, err := open(t, g, top).List(context.Background(), "")
	failure, ok := errors.AsType[*Error](err)
	if !ok || failure.Exit != 128 || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("List() = %v; git must not go on to the repository above", err)
	}
}

func TestCanceled(t *testing.T) {
	g := isolatedGit(t)
	r := open(t, g, repository(t, "f", "1"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.List(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("List() = %v, want the context's error", err)
	}
	if _, err := r.DiffMain(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("DiffMain() = %v, want the context's error", err)
	}
}

func TestHints(t *testing.T) {
	for text, want := range map[string]string{
		"fatal: detected dubious ownership in repository at '/a b'\n":   "git config --global --add safe.directory '/a b'",
		"fatal: unable to access '/etc/gitconfig': Permission denied\n": "make the configuration file that git names readable, or set GIT_CONFIG_NOSYSTEM=1 if it is the system configuration",
		"fatal: bad object\n": "",
	} {
		if got := hintFor(text, "/a b"); got != want {
			t.Errorf("hintFor(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	got := oneLine("warning: a\x1b[31mb\r\nfatal: c\td\n")
	if want := "warning: a [31mb; fatal: c d"; got != want {
		t.Errorf("oneLine() = %q, want %q", got, want)
	}
	if long := oneLine(strings.Repeat("é", 2000)); len(long) > 1010 || !strings.HasSuffix(long, " …") {
		t.Errorf("a long message has %d bytes", len(long))
	}
}
