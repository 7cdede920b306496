//go:build unix

package putback

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// openAtOnce opens a FIFO without waiting for its other end.
	openAtOnce = unix.O_NONBLOCK
	// sharesModes reports whether modes show who may write a directory.
	sharesModes = true
)

// move renames the file at a name in an open directory, even if that directory has
// moved. It follows no symlink.
func move(dir *os.Root, name, to string) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Renameat(int(f.Fd()), name, unix.AT_FDCWD, to); err != nil {
		return &os.LinkError{Op: "renameat", Old: name, New: to, Err: err}
	}
	return nil
}

// lockFile locks a file for this process until it is closed. It returns false if
// another process has locked it.
func lockFile(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// syncFolder syncs the names in a directory to the disk.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
