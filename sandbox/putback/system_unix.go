//go:build unix

package putback

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// openAtOnce keeps the opening of a FIFO from waiting for its other end.
	openAtOnce = unix.O_NONBLOCK
	// sharesModes says that modes tell who may write a folder.
	sharesModes = true
)

// move renames what stands at a name in an open folder, wherever that folder
// is by now; it follows no symlink.
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

// lockFile takes a file for this process, until it is closed; false means that
// another has it.
func lockFile(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// syncFolder returns when the names in a folder are on the disk.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
