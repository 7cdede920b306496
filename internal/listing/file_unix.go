//go:build unix

package listing

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hone/workspace/secret"
	"hone/workspace/treepath"
)

// A link counts as the file that it leads to. at is the path from the root. To ask the system by the whole path would take
// twice as long.
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

// The file is probably a regular one: unlike os.Open it does not prepare to wait for the file, which costs five system calls.
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

// changeTime returns when the contents of a file or its entry last changed, according to the kernel.
func changeTime(name string) (changed time.Time) {
	var st unix.Stat_t
	if unix.Lstat(name, &st) == nil {
		changed = time.Unix(0, st.Ctim.Nano())
	}
	return changed
}
