//go:build unix

package nofollow

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const allBits = 0o7777

func isMine(st *unix.Stat_t, kind uint32) bool {
	return uint32(st.Mode)&unix.S_IFMT == kind && int(st.Uid) == os.Geteuid()
}

// lacks reports whether this user owns the directory and has not all of these rights.
func (d directory) lacks(needed fs.FileMode) bool {
	var st unix.Stat_t
	return unix.Fstat(d.fd, &st) == nil && isMine(&st, unix.S_IFDIR) && fs.FileMode(st.Mode)&needed != needed
}

func grantOf(st *unix.Stat_t) grant {
	return grant{mode: uint32(st.Mode) & allBits, inode: st.Ino, device: uint64(st.Dev)}
}

// give gives all rights in a directory to its owner, if that is this user and lacks them.
func (d directory) give(name string, needed fs.FileMode) (grant, bool) {
	var st unix.Stat_t
	if unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || !isMine(&st, unix.S_IFDIR) || fs.FileMode(st.Mode)&needed == needed {
		return grant{}, false
	}
	g := grantOf(&st)
	return g, d.chmodName(name, &st, g.mode|0o700) == nil
}

// giveRoot does the same for the root. Nothing in the tree can replace that.
func giveRoot(root *os.Root, needed fs.FileMode) (grant, bool) {
	var st unix.Stat_t
	if unix.Lstat(root.Name(), &st) != nil || !isMine(&st, unix.S_IFDIR) || fs.FileMode(st.Mode)&needed == needed {
		return grant{}, false
	}
	g := grantOf(&st)
	return g, unix.Chmod(root.Name(), g.mode|0o700) == nil
}

func (d directory) takeBack(g grant) {
	var st unix.Stat_t
	if unix.Fstat(d.fd, &st) == nil && st.Ino == g.inode && uint64(st.Dev) == g.device && uint32(st.Mode)&allBits == g.mode|0o700 {
		_ = unix.Fchmod(d.fd, g.mode)
	}
}

// openOwn opens a regular file for reading that its owner, this user, may not read. It has its permission bits again when it is
// open.
func (d directory) openOwn(name string) (fd int, err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || !isMine(&st, unix.S_IFREG) || st.Mode&0o400 != 0 {
		return -1, pathError("openat", name, unix.EACCES)
	}
	mode := uint32(st.Mode) & allBits
	if err := d.chmodName(name, &st, mode|0o400); err != nil {
		return -1, pathError("openat", name, unix.EACCES)
	}
	fd, err = d.openat(name, unix.O_NONBLOCK)
	if err != nil {
		_ = d.chmodName(name, &st, mode)
		return fd, err
	}
	return fd, pathError("chmod", name, unix.Fchmod(fd, mode))
}
