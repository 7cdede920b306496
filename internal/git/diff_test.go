package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDiffBase(t *testing.T) {
	g := isolatedGit(t)
	for name, c := range map[string]struct {
		prepare func(t *testing.T, dir string)
		want    string
	}{
		"the local branch":   {func(t *testing.T, dir string) { git(t, dir, "update-ref", "refs/remotes/origin/main", "HEAD") }, "main"},
		"not a tag":          {func(t *testing.T, dir string) { git(t, dir, "tag", "main"); git(t, dir, "branch", "-m", "trunk") }, ""},
		"not below a branch": {func(t *testing.T, dir string) { git(t, dir, "branch", "-m", "main/x") }, ""},
		"the remote's": {func(t *testing.T, dir string) {
			git(t, dir, "update-ref", "refs/remotes/origin/main", "HEAD")
			git(t, dir, "branch", "-m", "trunk")
		}, "origin/main"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t, "f", "1")
			head := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
			c.prepare(t, dir)
			base, ok, err := open(t, g, dir).DiffBase(context.Background())
			if err != nil || ok != (c.want != "") || base.Name != c.want || ok && base.Commit != head {
				t.Errorf("DiffBase() = %v, %v, %v; want %q at %s", base, ok, err, c.want, head)
			}
		})
	}
}

func TestWithoutCommits(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t)
	write(t, dir, "f", "1")
	r := open(t, g, dir)
	d, err := r.DiffMain(context.Background(), nil, "specs")
	if err != nil || d.Found || len(d.Patch) > 0 {
		t.Errorf("DiffMain() = %v, %v", d, err)
	}
	entries, err := r.List(context.Background(), "")
	if err != nil || len(entries) != 1 || !entries[0].Untracked {
		t.Errorf("List() = %v, %v", entries, err)
	}
}

// patch returns the difference from main.
func patch(t *testing.T, r *Repo, paths ...string) string {
	t.Helper()
	d, err := r.DiffMain(context.Background(), nil, paths...)
	if err != nil {
		t.Fatal(err)
	}
	return string(d.Patch)
}

func TestDiff(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "specs/a.md", "one\n", "specs/b.md", "two\n", "src/x", "three\n", "specs/é.md", "four\n")
	git(t, dir, "checkout", "-q", "-b", "work")
	write(t, dir, "specs/a.md", "one\nmore\n", "src/x", "changed\n", "specs/new.md", "untracked\n", "specs/added.md", "added\n", "specs/é.md", "five\n")
	git(t, dir, "add", "specs/added.md")
	git(t, dir, "commit", "-q", "-m", "second")
	if err := os.Remove(filepath.Join(dir, "specs/b.md")); err != nil {
		t.Fatal(err)
	}
	want := `diff --git a/specs/a.md b/specs/a.md
index 5626abf0f72e..9a72323797a8 100644
--- a/specs/a.md
+++ b/specs/a.md
@@ -1 +1,2 @@
 one
+more
diff --git a/specs/added.md b/specs/added.md
new file mode 100644
index 000000000000..d5f7fc3f74f7
--- /dev/null
+++ b/specs/added.md
@@ -0,0 +1 @@
+added
diff --git a/specs/b.md b/specs/b.md
deleted file mode 100644
index f719efd430d5..000000000000
--- a/specs/b.md
+++ /dev/null
@@ -1 +0,0 @@
-two
diff --git a/specs/é.md b/specs/é.md
index 851066514915..54f9d6da5c91 100644
--- a/specs/é.md
+++ b/specs/é.md
@@ -1 +1 @@
-four
+five
`
	if got := patch(t, open(t, g, dir), "specs/"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A tracked file of 1 TB is left out, and not read.
func TestDiffWithoutHugeFile(t *testing.T) {
	dir := repository(t, "specs/a", "one\n", "specs/huge*", "two\n", "specs/hugest", "three\n")
	write(t, dir, "specs/a", "two\n", "specs/hugest", "four\n")
	if err := os.Truncate(filepath.Join(dir, "specs/huge*"), 1<<40); err != nil {
		t.Skip(err) // the file system has no sparse files
	}
	d, err := open(t, isolatedGit(t), dir).DiffMain(context.Background(), []string{"specs/huge*"}, "specs")
	if got := string(d.Patch); err != nil || !strings.Contains(got, "+two\n") || !strings.Contains(got, "+four\n") || strings.Contains(got, "huge*") {
		t.Errorf("%v\n%s", err, got)
	}
}

// The user's configuration does not affect the patch.
func TestDiffDependsOnNothingElse(t *testing.T) {
	g := isolatedGit(t)
	body := strings.Repeat("same\n", 20)
	dir := repository(t, "specs/a", "first\n"+body+"\nlast\n", "specs/gone", body+"unique\n")
	write(t, dir, "specs/a", "First\n"+body+"\nLast\n", "specs/moved", body+"unique\n", "order", "z\na\n")
	git(t, dir, "add", "specs/moved")
	if err := os.Remove(filepath.Join(dir, "specs/gone")); err != nil {
		t.Fatal(err)
	}
	r := open(t, g, dir)
	before := patch(t, r)
	for _, setting := range []string{
		"diff.noprefix=true", "diff.mnemonicPrefix=true", "diff.context=0", "diff.interHunkContext=100", "diff.algorithm=patience",
		"diff.renames=copies", "diff.orderFile=order", "diff.suppressBlankEmpty=true", "diff.relative=true", "color.ui=always",
		"diff.colorMoved=zebra", "diff.wordRegex=.", "diff.submodule=log", "core.abbrev=40", "core.quotePath=true", "diff.srcPrefix=x/",
		"diff.indentHeuristic=false", "diff.autoRefreshIndex=false",
	} {
		key, value, _ := strings.Cut(setting, "=")
		git(t, dir, "config", key, value)
		if after := patch(t, r); after != before {
			t.Errorf("%s changes the patch:\n%s\nbefore\n%s", setting, after, before)
		}
	}
}

// A file that was only touched does not differ, and reading writes nothing.
func TestDiffOfTouchedFile(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "specs/a", "one\n")
	then := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "specs/a"), then, then); err != nil {
		t.Fatal(err)
	}
	index := filepath.Join(dir, ".git", "index")
	before, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	if got := patch(t, open(t, g, dir)); got != "" {
		t.Errorf("a touched file differs:\n%s", got)
	}
	if after, _ := os.ReadFile(index); string(after) != string(before) {
		t.Error("the index was written")
	}
}

func TestDiffPathsAreLiteral(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "*", "1\n", "a", "1\n", ":(top)a", "1\n")
	write(t, dir, "*", "2\n", "a", "2\n", ":(top)a", "2\n")
	r := open(t, g, dir)
	for _, p := range []string{"*", ":(top)a"} {
		if got := patch(t, r, p); strings.Count(got, "diff --git") != 1 || !strings.Contains(got, "+++ b/"+p+"\n") {
			t.Errorf("Diff(%q):\n%s", p, got)
		}
	}
}
