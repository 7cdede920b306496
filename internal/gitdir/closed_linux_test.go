package gitdir

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// dropPower takes root's power to use every directory from this test's thread, which ends
// with the test.
func dropPower(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
	data[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
}

// TestClosed hides repositories in directories that their owner may not read, search or
// change. Git needs only their names.
func TestClosed(t *testing.T) {
	for name, test := range map[string]struct {
		closed string
		mode   fs.FileMode
	}{
		"not listed":             {"a/x", 0o311},
		"not listed above":       {"a", 0o111},
		"not changed":            {"a/x", 0o555},
		"not searched":           {"a", 0o600},
		"not listed, repository": {"a/x/.git", 0o311},
		"not changed, bare":      {"bare", 0o555},
	} {
		t.Run(name, func(t *testing.T) {
			root, _ := filepath.EvalSymlinks(t.TempDir())
			w, err := NewWatch(t.Context(), root, root, func([]string) []string { return nil }, func(context.Context, string) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			run(t, root, "git init -q a/x; git -C a/x config core.fsmonitor evil; git init -q --bare bare; git -C bare config core.fsmonitor evil")
			closed := filepath.Join(root, test.closed)
			if err := os.Chmod(closed, test.mode); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Chmod(closed, 0o700) })
			dropPower(t)
			if moved, err := w.Settle(t.Context()); err != nil || len(moved) != 2 {
				t.Errorf("%+v, %v", moved, err)
			}
			if mode := modeOf(closed); mode != 0 && mode.Perm() != test.mode {
				t.Errorf("its mode is now %v", mode)
			}
		})
	}
}

// TestTooDeep makes a repository whose path is longer than the system allows. Git gets
// there in shorter steps.
func TestTooDeep(t *testing.T) {
	root, _ := filepath.EvalSymlinks(t.TempDir())
	here, err := os.OpenRoot(root)
	for range 20 {
		if err == nil {
			err = here.Mkdir(strings.Repeat("d", 250), 0o700)
		}
		if err == nil {
			here, err = here.OpenRoot(strings.Repeat("d", 250))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&finder{root: root}).find(t.Context()); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Error(err)
	}
}
