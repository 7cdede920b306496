//go:build unix

package listing

import (
	"io/fs"
	"os"
	"syscall"
)

// inodeOf returns the device and the number of a file's inode; zeros if unknown.
func inodeOf(info fs.FileInfo) (device, inode uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return uint64(st.Dev), uint64(st.Ino)
}

// openPlain opens a file for reading that is probably a regular one. Unlike
// os.Open it does not prepare to wait for the file, which costs five system calls.
func openPlain(name string) (*os.File, error) {
	for {
		fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), name), nil
		case syscall.EINTR:
		default:
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}
