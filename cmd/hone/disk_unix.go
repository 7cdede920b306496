//go:build linux || darwin

package main

import "golang.org/x/sys/unix"

// freeBytes returns how many bytes an ordinary user can still write at path. It
// returns false if that is unknown.
func freeBytes(path string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
