package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommitID(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "a", "1\n")
	head := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
	git(t, dir, "tag", "-a", "-m", "one", "one")
	r := open(t, g, dir)
	for _, revision := range []string{"HEAD", head, head[:8], "one"} {
		if id, err := r.CommitID(context.Background(), revision); err != nil || id != head {
			t.Errorf("%s: %q, %v", revision, id, err)
		}
	}
	for _, revision := range []string{"HEAD~1", "no", "--all", "-h", "HEAD:a"} {
		if id, err := r.CommitID(context.Background(), revision); id != "" || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", revision, id, err)
		}
	}
}

func TestDirty(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "a", "1\n", ".gitignore", "ignored\n")
	r := open(t, g, dir)
	for _, c := range []struct {
		file, text string
		want       bool
	}{{"ignored", "x", false}, {"new", "x", true}, {"new", "", false}, {"a", "2\n", true}} {
		write(t, dir, c.file, c.text)
		if c.text == "" {
			if err := os.Remove(filepath.Join(dir, c.file)); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := r.Dirty(context.Background()); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", c.file, got, err)
		}
	}
}

// An export has the files of the commit, runs no filter, and leaves the repository alone.
func TestExport(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "a", "1\n", "sub/run.sh", "#!/bin/sh\n", ".gitattributes", "a filter=evil\nsub export-ignore\n")
	if err := errors.Join(os.Chmod(filepath.Join(dir, "sub", "run.sh"), 0o755), os.Symlink("a", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "second")
	git(t, dir, "config", "filter.evil.smudge", "touch "+filepath.Join(dir, "ran")+"; cat")
	write(t, dir, "a", "changed\n", "untracked", "x")
	before := git(t, dir, "status", "--porcelain")
	r := open(t, g, dir)
	out := t.TempDir()
	if err := r.Export(context.Background(), "HEAD", out); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(out, "a")); string(got) != "1\n" || err != nil {
		t.Errorf("a: %q, %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(out, "sub", "run.sh")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("run.sh: %v, %v", info, err)
	}
	if to, err := os.Readlink(filepath.Join(out, "link")); to != "a" {
		t.Errorf("link: %q, %v", to, err)
	}
	for _, file := range []string{filepath.Join(out, "untracked"), filepath.Join(out, ".git"), filepath.Join(dir, "ran")} {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if after := git(t, dir, "status", "--porcelain"); after != before {
		t.Errorf("status was %q, is %q", before, after)
	}
}
