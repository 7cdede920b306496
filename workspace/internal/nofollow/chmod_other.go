//go:build unix && !linux

package nofollow

import "golang.org/x/sys/unix"

// chmodName sets the permission bits of a file or directory. It follows no link.
func (d directory) chmodName(name string, _ *unix.Stat_t, mode uint32) error {
	return unix.Fchmodat(d.fd, name, mode, unix.AT_SYMLINK_NOFOLLOW)
}
