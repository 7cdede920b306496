package clone

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone/workspace"
	"hone/workspace/internal/treetest"
)

// longAgo is a modification time that never occurs by chance.
var longAgo = time.Date(2001, 2, 3, 4, 5, 6, 700_000_000, time.UTC)

func newTree(t testing.TB, files map[string]string) *workspace.Tree {
	t.Helper()
	return openTree(t, treetest.Dir(t, files), workspace.Options{})
}

func openTree(t testing.TB, dir string, o workspace.Options) *workspace.Tree {
	t.Helper()
	tree, err := workspace.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

func manifest(t testing.TB, tree *workspace.Tree) workspace.Manifest {
	t.Helper()
	m, err := tree.Manifest(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCopy(t *testing.T) {
	outside := t.TempDir()
	treetest.Put(t, outside, "x", "secret")
	tree := newTree(t, map[string]string{
		"a": "1", "d/b": "22", "d/run": "#!", "empty/": "", "link": "->a", "dirlink": "->d", "out": "->" + outside,
		".git/config": "c", "d/.git/HEAD": "h", "d/.hone/x": "x", ".hone/journal": "j", ".hone~12": "t", "d/.hone~34/x": "t", "shut/in/x": "3",
	})
	treetest.Chmod(t, tree.Dir(), "d/run", 0o751)
	treetest.Chmod(t, tree.Dir(), "a", 0o444)
	for _, path := range []string{"d/b", "d", "shut/in", "shut"} {
		if err := os.Chtimes(filepath.Join(tree.Dir(), path), longAgo, longAgo); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"shut/in", "shut"} {
		treetest.Chmod(t, tree.Dir(), path, 0o555)
		defer treetest.Chmod(t, tree.Dir(), path, 0o755)
	}
	dst := t.TempDir()
	skipped, err := Tree(t.Context(), tree, dst)
	if err != nil || len(skipped) > 0 {
		t.Fatalf("Copy skipped %q: %v", skipped, err)
	}
	want := treetest.Contents(t, tree.Dir())
	for path := range want {
		if strings.HasPrefix(path, ".hone") || strings.HasPrefix(path, "d/.hone~") {
			delete(want, path)
		}
	}
	if diff := cmp.Diff(want, treetest.Contents(t, dst)); diff != "" {
		t.Error(diff)
	}
	for path := range want {
		if path[len(path)-1] == '/' {
			path = path[:len(path)-1]
		}
		sameStat(t, filepath.Join(tree.Dir(), path), filepath.Join(dst, path))
	}
	for _, path := range []string{"shut", "shut/in"} {
		defer os.Chmod(filepath.Join(dst, path), 0o755)
	}
}

// sameStat compares permission bits and modification time.
func sameStat(t *testing.T, original, duplicate string) {
	t.Helper()
	a, err := os.Lstat(original)
	b, err2 := os.Lstat(duplicate)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	link := a.Mode()&fs.ModeSymlink != 0
	if a.Mode() != b.Mode() || !link && !a.ModTime().Equal(b.ModTime()) {
		t.Errorf("%s is %v of %v, its copy %v of %v", original, a.Mode(), a.ModTime(), b.Mode(), b.ModTime())
	}
}

func TestCopyOfLargeFile(t *testing.T) {
	tree := openTree(t, t.TempDir(), workspace.Options{MaxFile: 10})
	file := filepath.Join(tree.Dir(), "large")
	const size = 64<<20 + 17
	if err := os.WriteFile(file, []byte("head"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	dst := t.TempDir()
	if skipped, err := Tree(t.Context(), tree, dst); err != nil || len(skipped) > 0 {
		t.Fatalf("Copy skipped %q: %v", skipped, err)
	}
	a, b := manifest(t, tree), manifest(t, openTree(t, dst, workspace.Options{}))
	if len(b) != 1 || b[0].Size != size || a.Digest() != b.Digest() {
		t.Errorf("the copy is %+v", b)
	}
}

func TestCopyRefuses(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", "in/side/": "", "full/x": "1"})
	for _, dst := range []string{"in/side", "full", ".", "nothing", "a"} {
		if _, err := Tree(t.Context(), tree, filepath.Join(tree.Dir(), dst)); err == nil {
			t.Errorf("copied to %s", dst)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Tree(ctx, tree, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("Copy = %v", err)
	}
}

// A copy inside hone's own directory is allowed, because Tree leaves that
// directory out.
func TestCopyIntoJournalDir(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", ".hone/scratch/": ""})
	dst := filepath.Join(tree.Dir(), ".hone", "scratch")
	if _, err := Tree(t.Context(), tree, dst); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1"}, treetest.Contents(t, dst)); diff != "" {
		t.Error(diff)
	}
}

func TestCopyNamesThatAreNotUTF8(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this file system refuses such names")
	}
	files := map[string]string{"b\xff\n/": "", "b\xff\n/\xfe": "1", "l\xfd": "->b\xff\n"}
	tree := newTree(t, files)
	dst := t.TempDir()
	if _, err := Tree(t.Context(), tree, dst); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files, treetest.Contents(t, dst)); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkCopy(b *testing.B) {
	tree := openTree(b, treetest.ManyFiles(b, 20_000), workspace.Options{})
	for b.Loop() {
		dst, err := os.MkdirTemp(b.TempDir(), "copy")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Tree(b.Context(), tree, dst); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		os.RemoveAll(dst)
		b.StartTimer()
	}
}

// TestRemove: directories that cannot be written are removed, and what a link leads to is
// not.
func TestRemove(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a/b/c", "outside"} {
		at := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if runtime.GOOS != "windows" {
		if err := os.Symlink("../outside", filepath.Join(root, "a", "link")); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"a/b", "a"} {
		if err := os.Chmod(filepath.Join(root, dir), 0o500); err != nil {
			t.Fatal(err)
		}
	}
	if err := Remove(filepath.Join(root, "a")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(root, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "outside")); err != nil {
		t.Error(err)
	}
}
