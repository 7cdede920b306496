package journal

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// preallocate gives a file disk space. The error is [errors.ErrUnsupported] if its file
// system cannot, or says that it does and does not.
func preallocate(f *os.File, size int64) error {
	if err := unix.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Blocks*512 < size {
		return errors.ErrUnsupported
	}
	return nil
}
