//go:build unix

package git

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnlink checks that only links that HEAD does not know leave the index, and that a
// hostile repository runs nothing meanwhile.
func TestUnlink(t *testing.T) {
	isolatedGit(t)
	tr := newTrap(t)
	link := func(path string) {
		t.Helper()
		git(t, tr.dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.TrimSpace(git(t, tr.dir, "rev-parse", "HEAD"))+","+path)
	}
	link("committed")
	last := func(out string) string { // the repository's programs write to it as well
		words := strings.Fields(out)
		return words[len(words)-1]
	}
	commit := last(git(t, tr.dir, "commit-tree", "-p", "HEAD", "-m", "x", last(git(t, tr.dir, "write-tree"))))
	git(t, tr.dir, "update-ref", "HEAD", commit)
	link("a/new")
	write(t, tr.dir, "a/new/x", "")
	tr.newMarks(t)
	for _, path := range []string{"committed", "a/new", "specs/clean", "missing"} {
		if err := Unlink(context.Background(), filepath.Join(tr.dir, path)); err != nil {
			t.Error(path, err)
		}
	}
	if marks := tr.newMarks(t); len(marks) > 0 {
		t.Errorf("ran %q", marks)
	}
	staged := git(t, tr.dir, "ls-files", "--stage")
	if !strings.Contains(staged, "\tcommitted\n") || strings.Contains(staged, "a/new") || !strings.Contains(staged, "specs/clean") {
		t.Error(staged)
	}
	if err := Unlink(context.Background(), filepath.Join(t.TempDir(), "x")); err != nil {
		t.Error(err)
	}
}
