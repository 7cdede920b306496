package clone

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"hone/workspace"
	"hone/workspace/internal/treetest"
)

func TestMain(m *testing.M) {
	os.Exit(treetest.Main(m, map[string]func(args []string) error{"nobody": copyAsNobody}))
}

// copyAsNobody copies the tree args[0] to args[1] as an unprivileged user and
// prints the outcome.
func copyAsNobody(args []string) error {
	tree, err := workspace.Open(args[0], workspace.Options{})
	if err == nil {
		err = treetest.DropRights()
	}
	if err != nil {
		return err
	}
	skipped, err := Tree(context.Background(), tree, args[1])
	fmt.Printf("%q %v", skipped, err)
	return nil
}

// Tree skips and names devices and files that it cannot read.
func TestCopySkips(t *testing.T) {
	tree := newTree(t, map[string]string{"a": "1", "closed": "2", "shut/x": "3", "d/x": "4"})
	if err := unix.Mkfifo(filepath.Join(tree.Dir(), "d", "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	dst := t.TempDir()
	treetest.ChownAll(t, tree.Dir())
	treetest.ChownAll(t, dst)
	treetest.Chmod(t, tree.Dir(), "closed", 0)
	treetest.Chmod(t, tree.Dir(), "shut", 0)
	defer treetest.Chmod(t, tree.Dir(), "shut", 0o700)
	out, err := treetest.Command(t, "nobody", tree.Dir(), dst).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`["closed" "d/fifo" "shut"] <nil>`, string(out)); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(filepath.Join(dst, "shut"))
	if err != nil || info.Mode().Perm() != 0 {
		t.Errorf("shut: %v, %v", info, err)
	}
	if err := os.Chmod(filepath.Join(dst, "shut"), 0o700); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "d/": "", "d/x": "4", "shut/": ""}, treetest.Contents(t, dst)); diff != "" {
		t.Error(diff)
	}
}

// TestCopyOfSparseFiles: what is not stored of a file takes no space in the copy, and is
// not read.
func TestCopyOfSparseFiles(t *testing.T) {
	tree := openTree(t, t.TempDir(), workspace.Options{})
	const size = 200 << 20
	for name, data := range map[string][]int64{"empty": nil, "start": {0}, "middle": {50 << 20, 100<<20 + 1}, "end": {size - 4}, "both": {0, size - 4}} {
		f, err := os.Create(filepath.Join(tree.Dir(), name))
		if err == nil {
			err = f.Truncate(size)
		}
		for _, at := range data {
			_, writing := f.WriteAt([]byte("data"), at)
			err = errors.Join(err, writing)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	dst := t.TempDir()
	if skipped, err := Tree(t.Context(), tree, dst); err != nil || len(skipped) > 0 {
		t.Fatalf("Copy skipped %q: %v", skipped, err)
	}
	if a, b := manifest(t, tree), manifest(t, openTree(t, dst, workspace.Options{})); len(b) != 5 || a.Digest() != b.Digest() {
		t.Errorf("the copy is %+v, of %+v", b, a)
	}
	for _, name := range []string{"empty", "start", "middle", "end", "both"} {
		var s unix.Stat_t
		if err := unix.Stat(filepath.Join(dst, name), &s); err != nil || s.Blocks*512 > size/10 { // the file system may have pages of 2 MB
			t.Errorf("the copy of %s takes %d bytes: %v", name, s.Blocks*512, err)
		}
	}
}
