package disktest

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Small returns a directory on its own file system, of a size in the syntax of mount,
// such as 1m. It skips the test where none can be mounted.
func Small(t testing.TB, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("SKIPPED, this needs root and mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}
