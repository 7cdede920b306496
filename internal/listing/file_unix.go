//go:build unix

package listing

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"hone/workspace/secret"
	"hone/workspace/treepath"
)

// stateIn returns the state of a regular file in an open directory, or of the one that
// a link there leads to; ok is false if there is none. at is its path from the root.
// To ask the system by the whole path would take twice as long.
func stateIn(dir *os.File, at string) (s secret.FileState, ok bool) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(int(dir.Fd()), treepath.Base(at), &st, 0)
		if err != unix.EINTR {
			ok = err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
			break
		}
	}
	return secret.FileState{Path: at, Device: uint64(st.Dev), Inode: st.Ino, Size: st.Size, Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano()}, ok
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
