package treetest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Swap exchanges the directory args[0] with each other name in turn, for ever.
// The exchange is atomic: the name always exists. It is a role for Main, called
// "swapper".
func Swap(args []string) error {
	dir, others := args[0], args[1:]
	for i := 0; ; i++ {
		other := others[i/2%len(others)] // there and back
		if err := unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE); err != nil {
			return err
		}
	}
}

// Attack is an attack on a directory by another process, which swaps d/e for
// symlinks that lead outside, into .git and to a sibling, and for a FIFO.
type Attack struct {
	dir, outside string
	stop         func()
}

// StartAttack prepares dir, which must be empty, and starts the attack. The
// package needs the role "swapper".
func StartAttack(t *testing.T, dir string) *Attack {
	t.Helper()
	a := &Attack{dir: filepath.Join(dir, "d"), outside: t.TempDir()}
	for name, content := range map[string]string{
		"d/.git/config": "x", "d/e/x": "x", "d/git": "->.git", "d/out": "->" + a.outside, "d/near": "->neighbour", "d/neighbour/x": "secret",
	} {
		Put(t, dir, name, content)
	}
	if err := unix.Mkfifo(filepath.Join(a.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, name := range []string{"e", "git", "out", "near", "fifo"} {
		args = append(args, filepath.Join(a.dir, name))
	}
	swapper := Command(t, "swapper", args...)
	if err := swapper.Start(); err != nil {
		t.Fatal(err)
	}
	a.stop = func() {
		swapper.Process.Kill()
		swapper.Wait()
	}
	t.Cleanup(a.stop)
	return a
}

// Stop ends the attack. It fails the test if anything was written through a
// symlink or temporary files remain.
func (a *Attack) Stop(t *testing.T) {
	t.Helper()
	a.stop()
	if found := Contents(t, a.outside); len(found) > 0 {
		t.Errorf("written outside: %v", found)
	}
	if found := Contents(t, filepath.Join(a.dir, ".git")); len(found) != 1 || found["config"] != "x" {
		t.Errorf("written into .git: %v", found)
	}
	if found := Contents(t, filepath.Join(a.dir, "neighbour")); len(found) != 1 || found["x"] != "secret" {
		t.Errorf("written through a link that stays inside: %v", found)
	}
	NoTemps(t, filepath.Dir(a.dir))
}

// nobody is an unprivileged user.
const nobody = 65534

// DropRights drops the privileges of root.
func DropRights() error {
	if os.Getuid() != 0 {
		return nil
	}
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody))
}

// ChownAll gives everything below a directory to the user of DropRights.
func ChownAll(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	})
	// The parent directories must be accessible too.
	for up := filepath.Dir(dir); err == nil && strings.HasPrefix(up, os.TempDir()+"/"); up = filepath.Dir(up) {
		err = os.Chmod(up, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
