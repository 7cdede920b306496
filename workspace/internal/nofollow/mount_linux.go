package nofollow

import (
	"os"

	"golang.org/x/sys/unix"
)

// IsMount reports whether a file or directory is a mount point, which cannot be removed or
// replaced.
func IsMount(root *os.Root, path string) bool {
	f, err := root.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	var st unix.Statx_t
	err = unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, 0, &st)
	return err == nil && st.Attributes_mask&st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
