package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// moves returns the result of Reflog, which must not fail.
func moves(t testing.TB, r *Repo, since, until time.Time) []ReflogEntry {
	t.Helper()
	list, err := r.Reflog(context.Background(), since, until)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// descriptions returns actions and subjects.
func descriptions(list []ReflogEntry) []string {
	var lines []string
	for _, m := range list {
		lines = append(lines, m.Action+": "+m.Subject)
	}
	return lines
}

// gitAt runs plain git at a fixed time.
func gitAt(t testing.TB, dir string, seconds string, args ...string) {
	t.Helper()
	t.Setenv("GIT_COMMITTER_DATE", "@"+seconds+" +0200")
	git(t, dir, args...)
}

func TestMoves(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t)
	write(t, dir, "f", "1")
	git(t, dir, "add", "f")
	gitAt(t, dir, "1000", "commit", "-qm", "first")
	gitAt(t, dir, "2000", "commit", "-q", "--allow-empty", "-m", "second: of two")
	gitAt(t, dir, "2001", "commit", "-q", "--amend", "--allow-empty", "-m", "second \x1b[31m\xff")
	amended := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
	gitAt(t, dir, "2002", "reset", "-q", "--hard", "HEAD~1")
	gitAt(t, dir, "2003", "checkout", "-q", "-b", "other")
	gitAt(t, dir, "1500", "commit", "-q", "--allow-empty", "-m", "dated back")
	gitAt(t, dir, "2004", "checkout", "-q", "main")
	gitAt(t, dir, "2004", "merge", "-q", "--no-ff", "-m", "joined", "other")
	gitAt(t, dir, "3000", "commit", "-q", "--allow-empty", "-m", "last")
	r := open(t, g, dir)
	all := []string{"commit (initial): first", "commit: second: of two", "commit (amend): second \x1b[31m\xff", "reset: moving to HEAD~1",
		"checkout: moving from main to other", "commit: dated back", "checkout: moving from other to main", "merge other: Merge made by the 'ort' strategy.", "commit: last"}
	all[7] = descriptions(moves(t, r, time.Time{}, time.Time{}))[7] // what git writes about a merge depends on its version
	for _, c := range []struct {
		name         string
		since, until time.Time
		want         []string
	}{
		{"everything", time.Time{}, time.Time{}, all},
		{"one dated back between two", time.Unix(2000, 0), time.Unix(2999, 0), all[1:8]},
		{"parts of a second", time.Unix(2001, 999), time.Unix(2003, 1), all[2:5]},
		{"from the last on", time.Unix(2500, 0), time.Time{}, all[8:]},
		{"before all", time.Time{}, time.Unix(999, 0), nil},
		{"after all", time.Unix(3001, 0), time.Time{}, nil},
	} {
		if diff := cmp.Diff(c.want, descriptions(moves(t, r, c.since, c.until))); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	if m := moves(t, r, time.Unix(2001, 0), time.Unix(2001, 0)); len(m) != 1 || m[0].ID != amended || !m[0].When.Equal(time.Unix(2001, 0)) {
		t.Errorf("Moves() = %+v", m)
	}
	if !strings.HasPrefix(all[7], "merge other: ") {
		t.Errorf("a merge is %q", all[7])
	}
}

// Each work tree has its own HEAD, wherever its git directory is.
func TestMovesElsewhere(t *testing.T) {
	g := isolatedGit(t)
	top := repository(t, "f", "1")
	linked := filepath.Join(t.TempDir(), "linked")
	git(t, top, "worktree", "add", "-q", linked)
	git(t, linked, "commit", "-q", "--allow-empty", "-m", "in the linked one")
	got := descriptions(moves(t, open(t, g, linked), time.Time{}, time.Time{}))
	if len(got) == 0 || got[len(got)-1] != "commit: in the linked one" {
		t.Errorf("Moves() = %q", got)
	}
	if got := descriptions(moves(t, open(t, g, top), time.Time{}, time.Time{})); !cmp.Equal(got, []string{"commit (initial): first"}) {
		t.Errorf("Moves() = %q", got)
	}
}

func TestMovesWithoutReflog(t *testing.T) {
	g := isolatedGit(t)
	none := repository(t)
	off := repository(t)
	git(t, off, "config", "core.logAllRefUpdates", "false")
	git(t, off, "commit", "-q", "--allow-empty", "-m", "unseen")
	for _, dir := range []string{none, off} {
		if got := moves(t, open(t, g, dir), time.Time{}, time.Time{}); len(got) != 0 {
			t.Errorf("Moves() = %v", got)
		}
	}
}

// What a command put in the place of the reflog is not read.
func TestHostileReflog(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "f", "1")
	file := filepath.Join(dir, ".git", "logs", "HEAD")
	for name, make := range map[string]func() error{
		"a link":   func() error { return os.Symlink("/dev/zero", file) },
		"a folder": func() error { return os.Mkdir(file, 0o755) },
	} {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t, g, dir).Reflog(context.Background(), time.Time{}, time.Time{}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: Moves() = %v", name, err)
		}
	}
}
