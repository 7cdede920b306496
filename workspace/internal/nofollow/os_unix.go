//go:build unix

package nofollow

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openNonblock keeps open from waiting for the other end of a FIFO.
const openNonblock = syscall.O_NONBLOCK

// Some file systems cannot sync directories.
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

// CheckDirWritable returns an error if names in a directory cannot be changed.
func CheckDirWritable(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return WithoutPath(err)
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

// ChmodOpen sets the permission bits of an open file. Other systems also need
// its directory and name.
func ChmodOpen(f *os.File, _ *os.Root, _ string, mode fs.FileMode) error { return f.Chmod(mode) }

// giveOwner gives a new file the owner of the one that it replaces, or, if this process is
// root, of the directory that it is in: root in a container works in the tree of a user, who
// must be able to change what it leaves.
func giveOwner(f *os.File, dir *os.Root, old fs.FileInfo) {
	if old == nil {
		in, err := dir.Stat(".")
		if err != nil || os.Geteuid() != 0 {
			return
		}
		old = in
	}
	st, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	// Setting both needs a privilege that setting the group alone does not.
	if f.Chown(int(st.Uid), int(st.Gid)) != nil {
		_ = f.Chown(-1, int(st.Gid))
	}
}

// isBusy reports whether a file cannot be replaced by another one because it is a mount
// point.
func isBusy(err error) bool { return errors.Is(err, syscall.EBUSY) }
