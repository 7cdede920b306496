package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// commit makes a commit and checks that nothing is left to commit.
func commit(t testing.TB, r *Repo, c Commit) string {
	t.Helper()
	made, err := r.Commit(context.Background(), c)
	if err != nil || !made.Made {
		t.Fatalf("Commit(%q) = %v, %v", c.Subject, made, err)
	}
	id := made.ID
	if head := strings.TrimSpace(git(t, r.root, "rev-parse", "HEAD")); head != id {
		t.Errorf("HEAD is %s, the commit %s", head, id)
	}
	if _, err := os.Lstat(filepath.Join(r.root, ".git", "hone-index")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of the index remains: %v", err)
	}
	return id
}

// checkClean fails the test if git status reports anything.
func checkClean(t testing.TB, dir string) {
	t.Helper()
	if out := git(t, dir, "status", "--porcelain"); out != "" {
		t.Errorf("git status:\n%s", out)
	}
}

// headTree returns the contents of HEAD, one mode and path per line.
func headTree(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.SplitSeq(git(t, dir, "ls-tree", "-r", "-z", "HEAD"), "\x00") {
		if meta, path, ok := strings.Cut(line, "\t"); ok {
			b.WriteString(meta[:6] + " " + path + "\n")
		}
	}
	return b.String()
}

func checkTree(t testing.TB, dir, want string) {
	t.Helper()
	if diff := cmp.Diff(want, headTree(t, dir)); diff != "" {
		t.Errorf("the commit's tree: %s", diff)
	}
}

func TestCommit(t *testing.T) {
	g := isolatedGit(t)
	dir := newDir(t)
	r := initialize(t, g, dir, "/results/")
	write(t, dir, "a", "1", "b/c", "2", "results/log", "x", ".gitignore", "*.tmp\n", "x.tmp", "1", "b/y.tmp", "1")
	run := []string{"Hone-Run: 7", "Hone-Step: build"}
	first := commit(t, r, Commit{Subject: "phase1/build/step-1/pre", Trailers: run})
	checkClean(t, dir)
	checkTree(t, dir, "100644 .gitignore\n100644 a\n100644 b/c\n")

	again, err := r.Commit(context.Background(), Commit{Subject: "phase1/build/step-1/pre", Trailers: run})
	if again.ID != first || again.Made || err != nil {
		t.Errorf("the same again: %v, %v; want %s", again, err, first)
	}
	commit(t, r, Commit{Subject: "phase1/build/step-1/post", Trailers: run})
	if err := os.RemoveAll(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a", "2", "b", "a file now", "new", "3")
	git(t, dir, "add", "new")
	commit(t, r, Commit{Subject: "phase1/build/step-2/pre"})
	checkClean(t, dir)
	checkTree(t, dir, "100644 .gitignore\n100644 a\n100644 b\n100644 new\n")
	// The same subject in another run is another commit.
	commit(t, r, Commit{Subject: "phase1/build/step-2/pre", Trailers: []string{"Hone-Run: 8"}})

	want := "phase1/build/step-2/pre\nphase1/build/step-2/pre\nphase1/build/step-1/post\nphase1/build/step-1/pre\n"
	if got := git(t, dir, "log", "--format=%s"); got != want {
		t.Errorf("git log:\n%s", got)
	}
	if got := git(t, dir, "log", "-1", "--format=%B", first); got != "phase1/build/step-1/pre\n\nHone-Run: 7\nHone-Step: build\n\n" {
		t.Errorf("the message is %q", got)
	}
	if got := git(t, dir, "fsck", "--strict", "--no-dangling"); strings.Contains(got, "error") {
		t.Error(got)
	}
	if got := git(t, dir, "reflog", "--format=%gs"); !strings.Contains(got, "commit: phase1/build/step-1/post\n") {
		t.Errorf("the log of the branch:\n%s", got)
	}
}

func TestCommitOfNothing(t *testing.T) {
	g := isolatedGit(t)
	r := initialize(t, g, newDir(t))
	commit(t, r, Commit{Subject: "s"})
	checkClean(t, r.root)
	checkTree(t, r.root, "")
}

func TestChanged(t *testing.T) {
	g := isolatedGit(t)
	r := initialize(t, g, newDir(t))
	for i, want := range []bool{false, true, false} {
		if i == 1 {
			if err := os.WriteFile(filepath.Join(r.root, "a"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, fresh := range []bool{true, false} {
			got, err := r.Commit(t.Context(), Commit{Subject: fmt.Sprintf("s%d", i)})
			if err != nil || got.Made != fresh || got.Changed != want {
				t.Errorf("commit %d: %+v, %v, want changed %v and made %v", i, got, err, want, fresh)
			}
		}
	}
}

func TestMessagesAreChecked(t *testing.T) {
	g := isolatedGit(t)
	r := initialize(t, g, newDir(t))
	for _, c := range []Commit{
		{}, {Subject: " a"}, {Subject: "a\nb"}, {Subject: "a\x00"}, {Subject: "\xff"},
		{Subject: "a", Trailers: []string{""}}, {Subject: "a", Trailers: []string{"b\nc"}},
		{Subject: "a", Exclude: []string{"../x"}}, {Subject: "a", Exclude: []string{"."}}, {Subject: "a", Exclude: []string{""}},
	} {
		if made, err := r.Commit(context.Background(), c); !errors.Is(err, fs.ErrInvalid) || made.Made {
			t.Errorf("Commit(%+q) = %v, %v", fmt.Sprint(c), made, err)
		}
	}
	if _, _, err := r.FindCommit(context.Background(), ""); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("Find() of nothing: %v", err)
	}
	if id, _, err := r.FindCommit(context.Background(), "s"); id != "" || err != nil {
		t.Errorf("Find() without commits = %q, %v", id, err)
	}
}

// A model can force files into the repository, or remove the list of ignored
// files.
func TestExcluded(t *testing.T) {
	g := isolatedGit(t)
	dir := newDir(t)
	r := initialize(t, g, dir, "/results/")
	write(t, dir, "results/dev.log", "1", "results2", "1", "a/results/x", "1")
	git(t, dir, "add", "-f", "results/dev.log", "results2")
	git(t, dir, "commit", "-q", "-m", "forced")
	write(t, dir, "results/dev.log", "2", "results/new", "1", ".git/info/exclude", "")
	commit(t, r, Commit{Subject: "s", Exclude: []string{"results/", "gone"}})
	checkTree(t, dir, "100644 a/results/x\n100644 results/dev.log\n100644 results2\n")
	if got := git(t, dir, "show", "HEAD:results/dev.log"); got != "1" {
		t.Errorf("the excluded file is %q", got)
	}
	if err := os.RemoveAll(filepath.Join(dir, "results")); err != nil {
		t.Fatal(err)
	}
	commit(t, r, Commit{Subject: "t", Exclude: []string{"results"}})
	if got := git(t, dir, "diff", "--name-only", "HEAD~", "HEAD"); got != "" {
		t.Errorf("excluded files were deleted: %s", got)
	}
}

// Files of 1 TB are not added, and not read. Of one that git knows, the commit has the state
// before.
func TestCommitWithoutHugeFiles(t *testing.T) {
	g := isolatedGit(t)
	dir := newDir(t)
	r := initialize(t, g, dir, "/results/")
	write(t, dir, "a", "1", "b", "1", ".gitignore", "ignored\n")
	commit(t, r, Commit{Subject: "small", MaxFile: 100})
	for _, name := range []string{"a", "new", "ignored"} {
		write(t, dir, name, "")
		if err := os.Truncate(filepath.Join(dir, name), 1<<40); err != nil {
			t.Skip(err) // the file system has no sparse files
		}
	}
	write(t, dir, "b", "2")
	made, err := r.Commit(context.Background(), Commit{Subject: "huge", MaxFile: 100})
	if err != nil || !made.Changed || !slices.Equal(made.TooLarge, []string{"a", "new"}) {
		t.Errorf("Commit() = %+v, %v", made, err)
	}
	checkTree(t, dir, "100644 .gitignore\n100644 a\n100644 b\n")
	if a, b := git(t, dir, "show", "HEAD:a"), git(t, dir, "show", "HEAD:b"); a != "1" || b != "2" {
		t.Errorf("the commit has %q and %q", a, b)
	}
}

func TestIgnored(t *testing.T) {
	g := isolatedGit(t)
	write(t, os.Getenv("HOME"), "ignore", "*.swp\n")
	git(t, "", "config", "--global", "core.excludesFile", filepath.Join(os.Getenv("HOME"), "ignore"))
	dir := repository(t, "kept.log", "1", "out/kept", "1", "out/deleted", "1", "f", "1")
	write(t, dir, ".gitignore", "*.log\n/out/\n!good.log\n", "kept.log", "2", "out/kept", "2", "out/new", "1", "a.log", "1",
		"d/good.log", "1", "x.swp", "1", "d/.gitignore", "/only\n", "d/only", "1", "only", "1")
	if err := os.Remove(filepath.Join(dir, "out", "deleted")); err != nil {
		t.Fatal(err)
	}
	commit(t, open(t, g, dir), Commit{Subject: "s"})
	checkClean(t, dir)
	checkTree(t, dir, "100644 .gitignore\n100644 d/.gitignore\n100644 d/good.log\n100644 f\n100644 kept.log\n100644 only\n100644 out/kept\n")
	if got := git(t, dir, "show", "HEAD:out/kept"); got != "2" {
		t.Errorf("a tracked file that is ignored was not added: %q", got)
	}
}

// Line endings follow the attributes, otherwise status would never be clean.
func TestLineEndings(t *testing.T) {
	g := isolatedGit(t)
	git(t, "", "config", "--global", "core.safecrlf", "true")
	dir := newDir(t)
	r := initialize(t, g, dir)
	write(t, dir, ".gitattributes", "*.bat text eol=crlf\n*.txt text\n", "a.bat", "1\r\n2\n", "b.txt", "1\r\n", "c", "1\r\n")
	commit(t, r, Commit{Subject: "s"})
	then := time.Now().Add(-time.Hour)
	for _, name := range []string{"a.bat", "b.txt", "c"} {
		if err := os.Chtimes(filepath.Join(dir, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	checkClean(t, dir)
}

func TestIdentity(t *testing.T) {
	for name, c := range map[string]struct{ global, want string }{
		"nobody":       {"", "hone <hone@localhost>"},
		"half":         {"[user]\nname = Ada\n", "hone <hone@localhost>"},
		"empty":        {"[user]\nname = Ada\nemail =\n", "hone <hone@localhost>"},
		"the person's": {"[user]\nname = Wrong\n[user]\nname = Ada L\nemail = ada@example.com\n", "Ada L <ada@example.com>"},
		"included":     {"[include]\npath = more\n", "Grace <g@example.com>"},
	} {
		t.Run(name, func(t *testing.T) {
			g := isolatedGit(t)
			write(t, os.Getenv("HOME"), ".gitconfig", c.global, "more", "[user]\nname = Grace\nemail = g@example.com\n")
			dir := newDir(t)
			r := initialize(t, g, dir)
			git(t, dir, "config", "user.name", "Model")
			git(t, dir, "config", "user.email", "model@example.com")
			git(t, dir, "config", "author.name", "Model")
			commit(t, r, Commit{Subject: "s"})
			if got := strings.TrimSpace(git(t, dir, "log", "-1", "--format=%an <%ae>")); got != c.want {
				t.Errorf("the author is %s, want %s", got, c.want)
			}
			if got := strings.TrimSpace(git(t, dir, "log", "-1", "--format=%cn <%ce>")); got != c.want {
				t.Errorf("the committer is %s, want %s", got, c.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	g := isolatedGit(t)
	dir := newDir(t)
	r := initialize(t, g, dir)
	ctx := context.Background()
	older := commit(t, r, Commit{Subject: "a/b.c", Trailers: []string{"Run: 1"}})
	newer := commit(t, r, Commit{Subject: "a/b.c", Trailers: []string{"Run: 2"}})
	commit(t, r, Commit{Subject: "a/b.c more"})
	commit(t, r, Commit{Subject: "other", Trailers: []string{"a/b.c"}})
	last := commit(t, r, Commit{Subject: "--all"})
	git(t, dir, "config", "grep.patternType", "perl")
	git(t, dir, "config", "log.showSignature", "true")
	for subject, want := range map[string]string{"a/b.c": newer, "--all": last, "a/b": "", "a/b?c": "", "Run: 1": "", "nonsense": ""} {
		if id, _, err := r.FindCommit(ctx, subject); id != want || err != nil {
			t.Errorf("Find(%q) = %s, %v; want %s", subject, id, err, want)
		}
	}
	if _, message, _ := r.FindCommit(ctx, "a/b.c"); message != "a/b.c\n\nRun: 2\n" {
		t.Errorf("the message found is %q", message)
	}
	if id, message, err := r.Head(ctx); id != last || message != "--all\n" || err != nil {
		t.Errorf("Head() = %s, %q, %v", id, message, err)
	}
	// Find ignores commits that HEAD does not reach.
	git(t, dir, "checkout", "-q", older)
	if id, _, err := r.FindCommit(ctx, "--all"); id != "" || err != nil {
		t.Errorf("Find() = %s, %v", id, err)
	}
}

func TestCommitIsCanceled(t *testing.T) {
	g := isolatedGit(t)
	r := initialize(t, g, newDir(t))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if made, err := r.Commit(ctx, Commit{Subject: "s"}); !errors.Is(err, context.Canceled) || made.Made {
		t.Errorf("Commit() = %v, %v", made, err)
	}
}

func TestSparseIsRefused(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "a/f", "1", "b/f", "1")
	git(t, dir, "sparse-checkout", "set", "a")
	made, err := open(t, g, dir).Commit(context.Background(), Commit{Subject: "s"})
	if err == nil || made.Made || !strings.Contains(err.Error(), "sparse") {
		t.Errorf("Commit() = %v, %v", made, err)
	}
	for setting, sparse := range map[string]bool{"sparseCheckout": true, "sparseCheckout = On": true, "sparseCheckout = false": false, "sparseCheckout = No": false, "sparseCheckout =": false} {
		dir := repository(t, "f", "1")
		write(t, dir, ".git/config", read(t, filepath.Join(dir, ".git/config"))+"[core]\n\t"+setting+"\n")
		if made, err := open(t, g, dir).Commit(context.Background(), Commit{Subject: "s"}); made.Made == sparse || (err != nil) != sparse {
			t.Errorf("%s: Commit() = %v, %v", setting, made, err)
		}
	}
}

// A lock of the index does not matter; one of the branch is named.
func TestLocks(t *testing.T) {
	g := isolatedGit(t)
	for _, name := range []string{"index.lock", "hone-index/index.lock", "HEAD.lock", "refs/heads/main.lock"} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t, "f", "1")
			r := open(t, g, dir)
			write(t, dir, ".git/"+name, "", "f", "2")
			lock := filepath.Join(dir, ".git", filepath.FromSlash(name))
			if !strings.HasSuffix(name, "index.lock") {
				made, err := r.Commit(context.Background(), Commit{Subject: "s"})
				if err == nil || made.Made || !strings.Contains(err.Error(), lock) {
					t.Errorf("Commit() = %v, %v", made, err)
				}
				if err := os.Remove(lock); err != nil {
					t.Fatal(err)
				}
			}
			commit(t, r, Commit{Subject: "s"})
			checkClean(t, dir)
		})
	}
}
