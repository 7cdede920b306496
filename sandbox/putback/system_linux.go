package putback

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

func stampOf(info fs.FileInfo) stamp {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}
	}
	return stamp{Size: st.Size, Changed: st.Ctim.Nano(), Inode: st.Ino, Links: uint64(st.Nlink), Owner: owner{int(st.Uid), int(st.Gid)}}
}

// rename moves what is at a path of a directory out of it, without following a symlink on the way there.
func rename(root *os.Root, path, to string) error {
	dir, err := root.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Renameat(int(dir.Fd()), filepath.Base(path), unix.AT_FDCWD, to)
}

// creatable reports whether this user can create something at a path: otherwise commands cannot either.
func creatable(path string) bool {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
		if !errors.Is(err, unix.ENOENT) {
			return err == nil
		}
	}
}
