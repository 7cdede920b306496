package putback

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// stampOf returns the stamp of a file.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Changed, s.Inode, s.Links = st.Ctim.Nano(), st.Ino, uint64(st.Nlink)
		s.UID, s.GID = int(st.Uid), int(st.Gid)
	}
	return s
}

// move renames the file at a path, even if the root has moved. It follows no symlink.
func move(root *os.Root, path, to string) error {
	dir, err := root.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Renameat(int(dir.Fd()), filepath.Base(path), unix.AT_FDCWD, to)
}

// lockWait locks a file until it is closed, as soon as no one else has it locked.
func lockWait(f *os.File) error { return flock(f, unix.LOCK_EX) }

// lockShared locks a file until it is closed. Others may share the lock.
func lockShared(f *os.File) error { return flock(f, unix.LOCK_SH) }

// alone reports whether no one shares the lock of a file. It may give up the lock.
func alone(f *os.File) bool { return flock(f, unix.LOCK_EX|unix.LOCK_NB) == nil }

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
