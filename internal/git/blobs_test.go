package git

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlobs(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "a.txt", "one\n", "d/b c.txt", "")
	r := open(t, g, dir)
	git(t, dir, "commit", "-qm", "first", "--allow-empty")
	head, err := r.HeadCommit(t.Context())
	if err != nil || head == "" {
		t.Fatalf("head %q, %v", head, err)
	}
	write(t, dir, "a.txt", "changed\n", "untracked", "x")
	blobs, err := r.Blobs(t.Context(), head)
	if err != nil {
		t.Fatal(err)
	}
	if paths := slices.Sorted(maps.Keys(blobs)); !slices.Equal(paths, []string{"a.txt", "d/b c.txt"}) {
		t.Errorf("paths: %q", paths)
	}
	if !IsBlob(blobs["a.txt"], []byte("one\n")) || IsBlob(blobs["a.txt"], []byte("changed\n")) || !IsBlob(blobs["d/b c.txt"], nil) {
		t.Errorf("blobs: %v", blobs)
	}
	if !IsBlob("473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813", nil) {
		t.Error("the id of an empty file in a repository with SHA-256 is not known")
	}
	for _, bad := range []string{"", "HEAD", "--all", "0000000000000000000000000000000000000000"} {
		if _, err := r.Blobs(t.Context(), bad); err == nil {
			t.Errorf("%q is a commit", bad)
		}
	}
	empty := open(t, g, initialize(t, g, newDir(t)).root)
	if head, err := empty.HeadCommit(t.Context()); err != nil || head != "" {
		t.Errorf("without a commit: %q, %v", head, err)
	}
}

// A directory is compared with a commit as git compares a work tree, whatever the work tree and the index have.
func TestCompare(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "same", "1\n", "changed", "1\n", "extra", "1\n", "crlf", "1\n2\n", "mixed", "1\n2\n", "bin", "1\r\n", "run.sh", "1\n", "d/below", "1\n",
		"filtered", "1\n", ".gitattributes", "* text=auto\nbin -text\nfiltered filter=evil\n*.lfs filter=lfs -text\n", "big.lfs", pointer("big"), "bad.lfs", pointer("other"))
	git(t, dir, "config", "core.autocrlf", "true")
	head := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
	write(t, dir, "same", "staged\n", "new", "x")
	git(t, dir, "add", "-A")
	git(t, dir, "config", "core.safecrlf", "true")
	before := git(t, dir, "status", "--porcelain")

	tree := t.TempDir()
	write(t, tree, "same", "1\n", "changed", "2\n", "crlf", "1\r\n2\r\n", "mixed", "1\r\n2\n", "bin", "1\n", "run.sh", "1\n", "d/below", "2\n", "d/missing", "x", "filtered", "1\n",
		".gitattributes", "* text=auto\nbin -text\nfiltered filter=evil\n*.lfs filter=lfs -text\n", "big.lfs", "big", "bad.lfs", "big", "missing", "x", ".gitignore", "ign\n", "ign", "x", "d/ign", "x")
	if err := os.Chmod(filepath.Join(tree, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "config", "filter.evil.clean", "touch "+filepath.Join(dir, "ran")+"; cat")
	r := open(t, g, dir)
	for below, want := range map[string]Comparison{
		".": {Changed: []string{"bad.lfs", "bin", "changed", "d/below", "run.sh"}, Missing: []string{".gitignore", "d/missing", "missing"}, Extra: []string{"extra"}, Ignored: []string{"d/ign", "ign"}},
		"d": {Changed: []string{"d/below"}, Missing: []string{"d/missing"}, Ignored: []string{"d/ign"}},
	} {
		got, err := r.Compare(t.Context(), head, tree, below)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", below, err, diff)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "ran")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a filter ran: %v", err)
	}
	git(t, dir, "config", "filter.evil.clean", "")
	if after := git(t, dir, "status", "--porcelain"); after != before {
		t.Errorf("status was %q, is %q", before, after)
	}
	git(t, dir, "config", "core.fileMode", "false")
	if got, err := r.Compare(t.Context(), head, tree, "run.sh"); err != nil || len(got.Changed) > 0 {
		t.Errorf("without file modes: %+v, %v", got, err)
	}
	for _, bad := range []string{"../x", "/x"} {
		if _, err := r.Compare(t.Context(), head, tree, bad); err == nil {
			t.Errorf("%s is below the top", bad)
		}
	}
	if _, err := r.Compare(t.Context(), strings.Repeat("0", 40), tree, "."); err == nil {
		t.Error("an unknown commit was compared")
	}
}

func pointer(content string) string {
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n", sha256.Sum256([]byte(content)), len(content))
}

func TestCompareSubmodules(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "d/a", "1\n")
	want := Comparison{Extra: []string{}}
	for _, sub := range []string{"d/with", "without"} {
		inner := filepath.Join(dir, filepath.FromSlash(sub))
		write(t, inner, "a", "1\n")
		git(t, inner, "init", "-q")
		git(t, inner, "add", "a")
		git(t, inner, "commit", "-qm", "inner")
		want.Submodules = append(want.Submodules, sub)
		git(t, dir, "add", sub)
	}
	git(t, dir, "commit", "-qm", "outer")
	tree := t.TempDir()
	write(t, tree, "d/a", "1\n", "d/with/a", "2\n", "d/with/b", "2\n")
	got, err := open(t, g, dir).Compare(t.Context(), strings.TrimSpace(git(t, dir, "rev-parse", "HEAD")), tree, ".")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}
