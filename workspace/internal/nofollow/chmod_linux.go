package nofollow

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// chmodName sets the permission bits of what st describes, if it still has the name. Kernels before 6.6 cannot do that without
// following links, except through a descriptor.
func (d directory) chmodName(name string, st *unix.Stat_t, mode uint32) error {
	fd, err := unix.Openat(d.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil || now.Ino != st.Ino || now.Dev != st.Dev {
		return unix.ESTALE
	}
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode)
}
