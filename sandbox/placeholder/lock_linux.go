package placeholder

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func lockWait(f *os.File) error { return flock(f, unix.LOCK_EX) }

func lockShared(f *os.File) error { return flock(f, unix.LOCK_SH) }

// It may give up the lock.
func isAlone(f *os.File) bool { return flock(f, unix.LOCK_EX|unix.LOCK_NB) == nil }

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func inode(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }
