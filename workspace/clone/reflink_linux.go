package clone

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// An error leaves dst empty.
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

// nextData returns the first section of a file at or after an offset that is not a
// hole; from is end if there is none before end. It may change the file's offset.
func nextData(f *os.File, at, end int64) (from, to int64, err error) {
	from, err = f.Seek(at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return end, end, nil
	case err != nil: // the file system knows no holes
		return at, end, nil
	}
	if to, err = f.Seek(from, unix.SEEK_HOLE); err != nil {
		to = end
	}
	return min(from, end), min(to, end), nil
}

// cloneUnsupported reports whether cloning will fail for every other file too.
func cloneUnsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ENOSYS)
}
