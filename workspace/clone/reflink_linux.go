package clone

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// cloneFile makes dst share the blocks of src. An error leaves dst empty.
func cloneFile(dst, src *os.File) error {
	to, err := dst.SyscallConn()
	if err != nil {
		return err
	}
	from, err := src.SyscallConn()
	if err != nil {
		return err
	}
	var cloned error
	outer := to.Control(func(d uintptr) {
		inner := from.Control(func(s uintptr) { cloned = unix.IoctlFileClone(int(d), int(s)) })
		cloned = errors.Join(cloned, inner)
	})
	return errors.Join(cloned, outer)
}

// cloneUnsupported reports whether cloning will fail for every other file too.
func cloneUnsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ENOSYS)
}
