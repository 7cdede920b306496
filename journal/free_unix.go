//go:build linux || darwin

package journal

import "golang.org/x/sys/unix"

// FreeSpace returns how many bytes an ordinary user can still write at path. ok is false
// if that is unknown.
func FreeSpace(path string) (bytes int64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
