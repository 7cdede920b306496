package listing

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone/internal/git"
)

// run is the time of a run in these tests, long ago: what a test writes now lies
// outside of it by both of a file's times.
var (
	runBegins = time.Unix(1_500_000_000, 0)
	runEnds   = runBegins.Add(time.Minute)
)

// inRun sets a file's time to one of the run's.
func inRun(t testing.TB, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		when := runBegins.Add(30 * time.Second)
		if err := os.Chtimes(filepath.Join(root, filepath.FromSlash(name)), when, when); err != nil {
			t.Fatal(err)
		}
	}
}

// commitAt makes an empty commit at a time.
func commitAt(t testing.TB, dir string, when time.Time, subject string) {
	t.Helper()
	t.Setenv("GIT_COMMITTER_DATE", fmt.Sprintf("@%d +0000", when.Unix()))
	gitAt(t, dir, "commit", "-q", "--allow-empty", "-m", subject)
}

// checkLeftovers compares leftovers, except the commits' ids.
func checkLeftovers(t *testing.T, root string, restored []string, want Leftover) {
	t.Helper()
	got, err := Leftovers(context.Background(), root, restored, runBegins, runEnds, Refs{})
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range got.Commits {
		words := strings.SplitN(line, " ", 3)
		at := 0
		if strings.HasSuffix(words[0], ":") {
			at = 1
		}
		if len(words[at]) != 7 {
			t.Errorf("no short id in %q", line)
		}
		got.Commits[i] = strings.Join(append(words[:at:at], words[at+1:]...), " ")
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Leftover{})); diff != "" {
		t.Error(diff)
	}
}

func TestLeftovers(t *testing.T) {
	root := ignoring(t)
	addTo(t, root, ".hone/runs/x", "out/sub/deep/file", "nested/inner/i.db", "nested/inner/j.go", "mixed/k", "mixed/l.db", "mixed/m.db")
	gitAt(t, filepath.Join(root, "nested/inner"), "init", "-q")
	addTo(t, root, "nested/inner/.git/info/exclude")
	if err := os.WriteFile(filepath.Join(root, ".hone", ".gitignore"), []byte("*\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "a.go"), filepath.Join(root, "link.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(root, "out", "away")); err != nil {
		t.Fatal(err)
	}
	checkLeftovers(t, root, nil, Leftover{})
	inRun(t, root, "a.go", ".env", ".env.local", ".hone/runs/x", "out/sub/deep/file", "data/deep", "nested/n.db", "nested/n.go", "mixed/l.db", "top.db")
	for dir, subject := range map[string]string{"": "outer", "nested": "inner", "nested/inner": "innermost \x1b[31m"} {
		at := filepath.Join(root, dir)
		commitAt(t, at, runBegins.Add(-time.Second), "before")
		commitAt(t, at, runBegins.Add(time.Second), subject)
		commitAt(t, at, runEnds.Add(time.Second), "after")
	}
	gitAt(t, root, "reset", "-q", "--soft", "HEAD~1")
	commits := []string{"outer", "nested: inner", "nested/inner: innermost \x1b[31m"}
	checkLeftovers(t, root, nil, Leftover{
		Ignored: []string{".env", ".env.local", "data/", "mixed/l.db", "out/", "top.db", "nested/n.db"}, Commits: commits})
	checkLeftovers(t, root, []string{".env", "out/sub/deep/file", "data/deep/b.db", "nested/n.db"}, Leftover{
		Ignored: []string{".env.local", "mixed/l.db", "top.db"}, Commits: commits})
}

// In the second in which the run began, what the names of the repository held then is older.
func TestLeftoversOfTheFirstSecond(t *testing.T) {
	personal(t)
	root := planted(t, "f", "nested/f")
	gitAt(t, root, "init", "-q", "-b", "main")
	gitAt(t, filepath.Join(root, "nested"), "init", "-q")
	commitAt(t, filepath.Join(root, "nested"), runBegins, "inner")
	commitAt(t, root, runBegins, "first")
	commitAt(t, root, runBegins, "second")
	gitAt(t, root, "checkout", "-q", "-b", "topic")
	g, err := git.OpenAt(root)
	if err != nil {
		t.Fatal(err)
	}
	was, err := g.Refs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	commitAt(t, root, runBegins, "by the run")
	commitAt(t, root, runBegins, "amended")
	gitAt(t, root, "commit", "-q", "--amend", "--allow-empty", "-m", "again")
	commitAt(t, root, runEnds, "late")
	got, err := Leftovers(t.Context(), root, nil, runBegins, runEnds, was)
	if err != nil || len(got.Commits) != 4 {
		t.Fatalf("%q, %v", got.Commits, err)
	}
	for i, want := range []string{" by the run", " again", " late", " inner"} {
		if !strings.HasSuffix(got.Commits[i], want) {
			t.Errorf("%q, not %q", got.Commits[i], want)
		}
	}
}

// Commits are also found in a repository whose files the outer one tracks, and
// in one that is in a tree outside any repository.
func TestLeftoversOfHiddenRepositories(t *testing.T) {
	personal(t)
	tracked, bare := planted(t, "src/deep/f"), planted(t, "src/deep/f", "src/x.db", ".hone/src/f", "tests/f")
	gitAt(t, tracked, "init", "-q")
	gitAt(t, tracked, "add", "-A")
	commitAt(t, tracked, runBegins.Add(-time.Hour), "before")
	gitAt(t, bare, "init", "-q", "tests")
	commitAt(t, filepath.Join(bare, "tests"), runEnds, "a test")
	for _, root := range []string{tracked, bare} {
		gitAt(t, root, "init", "-q", "src")
		commitAt(t, filepath.Join(root, "src"), runBegins, "a phase")
	}
	gitAt(t, bare, "init", "-q", ".hone/src")
	commitAt(t, filepath.Join(bare, ".hone/src"), runBegins.Add(time.Second), "hidden")
	if err := os.WriteFile(filepath.Join(bare, "src", ".gitignore"), []byte("*.db\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	inRun(t, bare, "src/x.db", "src/deep/f")
	checkLeftovers(t, tracked, nil, Leftover{Commits: []string{"src: a phase"}})
	checkLeftovers(t, bare, nil, Leftover{Commits: []string{"src: a phase", "tests: a test"}})
	checkLeftovers(t, planted(t, "f"), nil, Leftover{})
}

// The workspace may be a directory of a repository, even an ignored one.
func TestLeftoversBelowTop(t *testing.T) {
	personal(t)
	top := planted(t, "sub/out/x.log", "sub/f", "subs/y.log", "work/inner/f", "z.log")
	if err := os.WriteFile(filepath.Join(top, ".gitignore"), []byte("*.log\n/work/\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	gitAt(t, top, "init", "-q")
	commitAt(t, top, runBegins.Add(time.Second), "outer")
	inRun(t, top, "sub/out/x.log", "subs/y.log", "z.log", "work/inner/f")
	checkLeftovers(t, filepath.Join(top, "sub"), nil, Leftover{Ignored: []string{"out/"}, Commits: []string{"outer"}})
	for _, at := range []string{"work", "work/inner"} {
		checkLeftovers(t, filepath.Join(top, at), nil, Leftover{Ignored: []string{"./"}, Commits: []string{"outer"}})
	}
}

// The change time reveals a file whose modification time was set back.
func TestLeftoversByChangeTime(t *testing.T) {
	root := ignoring(t)
	file := filepath.Join(root, ".env")
	if err := os.Chtimes(file, runBegins, runBegins); err != nil {
		t.Fatal(err)
	}
	changed := changeTime(file)
	if changed.IsZero() {
		t.Skip("there is no change time here")
	}
	got, err := Leftovers(context.Background(), root, nil, changed, changed, Refs{})
	if err != nil || !slices.Contains(got.Ignored, ".env") {
		t.Errorf("Leftovers() = %q, %v", got.Ignored, err)
	}
}

// The search is limited, and says so. One changed file in a directory is
// enough.
func TestLeftoversAreBounded(t *testing.T) {
	root := ignoring(t)
	for i := range 300 {
		addTo(t, root, fmt.Sprintf("out/many/%d", i))
	}
	inRun(t, root, "top.db")
	for budget, want := range map[int]Leftover{
		3:    {More: true},
		100:  {More: true},
		1000: {Ignored: []string{"top.db"}},
	} {
		s := &leftoverSearch{ctx: context.Background(), root: root, since: runBegins, until: runEnds, budget: budget}
		if err := s.inOuter(root, s.searchRepository); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.found, cmp.AllowUnexported(Leftover{})); diff != "" {
			t.Errorf("%d: %s", budget, diff)
		}
	}
	inRun(t, root, "out")
	s := &leftoverSearch{ctx: context.Background(), root: root, since: runBegins, until: runEnds, budget: 1000}
	if err := s.inOuter(root, s.searchRepository); err != nil || s.budget < 900 {
		t.Errorf("%d entries were looked at, %v", 1000-s.budget, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Leftovers(ctx, root, nil, runBegins, runEnds, Refs{}); err == nil {
		t.Error("a cancelled search ended well")
	}
}

// A nested repository that git cannot read does not hide the others.
func TestLeftoversOfBrokenRepository(t *testing.T) {
	root := ignoring(t)
	inRun(t, root, "top.db", "nested/n.db")
	if err := os.WriteFile(filepath.Join(root, "nested", ".git", "HEAD"), []byte("nonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Leftovers(context.Background(), root, nil, runBegins, runEnds, Refs{})
	if err == nil || !slices.Contains(got.Ignored, "top.db") {
		t.Errorf("Leftovers() = %q, %v", got.Ignored, err)
	}
}

// The slowest case is a large ignored directory in which nothing changed,
// because all of it is read. For comparison, git status reads none of it.
func BenchmarkLeftovers(b *testing.B) {
	personal(b)
	root := planted(b, "f")
	for i := range 20_000 {
		addTo(b, root, fmt.Sprintf("node_modules/%d/%d/f.js", i/1000, i/20%50)+fmt.Sprint(i))
	}
	if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte("node_modules\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	gitAt(b, root, "init", "-q")
	b.Run("leftovers", func(b *testing.B) {
		for b.Loop() {
			if got, err := Leftovers(context.Background(), root, nil, runBegins, runEnds, Refs{}); err != nil || got.More {
				b.Fatal(got, err)
			}
		}
	})
	b.Run("git status --ignored", func(b *testing.B) {
		for b.Loop() {
			gitAt(b, root, "status", "--ignored=matching", "-uall")
		}
	})
	for _, glob := range []string{"", ".env*", "**/*.db"} {
		b.Run("listing with "+glob, func(b *testing.B) {
			list, err := Of(root, root, strings.Fields(glob)...)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := list(context.Background(), root); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
