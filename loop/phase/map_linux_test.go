package phase_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestMapOfUnreadable looks at a folder that may not be read. Root may read
// every one, so its thread takes another user's rights to files meanwhile.
func TestMapOfUnreadable(t *testing.T) {
	src := mapTree(t, "open/x", "shut/y")
	shut := filepath.Join(src, "shut")
	if err := os.Chmod(shut, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(shut, 0o755) })
	if os.Geteuid() == 0 {
		if err := os.Chmod(filepath.Dir(filepath.Dir(src)), 0o755); err != nil { // else only root may enter it
			t.Fatal(err)
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		const nobody = 65534
		if _, err := unix.SetfsuidRetUid(nobody); err != nil {
			t.Skip("the thread cannot take another user's rights: ", err)
		}
		defer unix.SetfsuidRetUid(0)
	}
	want := "src/\n├── open\n│   └── x\n└── shut  [cannot be read]\n\n2 directories, 1 file\n"
	if diff := cmp.Diff(want, mapOf(t, src)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
