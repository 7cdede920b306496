//go:build unix

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openNonblock keeps an open from waiting for a FIFO's other end.
const openNonblock = syscall.O_NONBLOCK

// syncDir makes the names in a directory durable, where its file system can.
func syncDir(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}

// mayWrite finds out whether names in a directory can be changed.
func mayWrite(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return withoutPath(err)
	}
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var denied error
	err = conn.Control(func(fd uintptr) { denied = unix.Faccessat(int(fd), ".", unix.W_OK|unix.X_OK, 0) })
	return errors.Join(err, denied)
}

// chmodOpen changes the permission bits of an open file, which also has a
// name.
func chmodOpen(f *os.File, _ *os.Root, _ string, mode fs.FileMode) error { return f.Chmod(mode) }

// keepOwner gives a new file the owner of the one that it replaces, as far as
// this process may.
func keepOwner(f *os.File, old fs.FileInfo) {
	st, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	// Both at once needs a privilege that the group alone does not.
	if f.Chown(int(st.Uid), int(st.Gid)) != nil {
		_ = f.Chown(-1, int(st.Gid))
	}
}
