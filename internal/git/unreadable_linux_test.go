package git

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// dropReadPower removes root's capability to read every file from this test's
// thread and its children. The thread ends with the test.
func dropReadPower(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread()
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Skip(err)
	}
	for _, power := range []uint{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(power), 0, 0, 0); err != nil {
			t.Skip(err)
		}
		data[0].Effective &^= 1 << power
		data[0].Permitted &^= 1 << power
		data[0].Inheritable &^= 1 << power
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		t.Skip(err)
	}
}

// An unreadable file is an error that names it, and nothing is committed,
// unless the file is ignored.
func TestUnreadable(t *testing.T) {
	g := isolatedGit(t)
	for _, name := range []string{"secret", "closed"} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t, "f", "1", "tracked/closed/f", "1")
			write(t, dir, "secret", "1", "closed/f", "1", "f", "2")
			r := open(t, g, dir)
			dropReadPower(t)
			bar := func(name string) {
				t.Helper()
				if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.Chmod(filepath.Join(dir, name), 0o700) })
			}
			ctx := context.Background()
			bar(name)
			if made, err := r.Commit(ctx, Commit{Subject: "s"}); err == nil || made.Made || !strings.Contains(err.Error(), name) {
				t.Errorf("Commit() = %v, %v", made, err)
			}
			if got := git(t, dir, "log", "--format=%s"); got != "first\n" {
				t.Errorf("git log:\n%s", got)
			}
			write(t, dir, ".gitignore", "secret\nclosed\n")
			commit(t, r, Commit{Subject: "s"})
			checkClean(t, dir)
			// Tracked files must be read even if they are ignored.
			bar("tracked/closed")
			if made, err := r.Commit(ctx, Commit{Subject: "t"}); err == nil || made.Made || !strings.Contains(err.Error(), "tracked/closed") {
				t.Errorf("Commit() = %v, %v", made, err)
			}
		})
	}
}
