package clone

import (
	"context"
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
