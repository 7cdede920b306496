//go:build unix

package nofollow

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"hone/workspace/treepath"
)

// directory is the descriptor of an open directory. Names in it are single
// components of a path.
type directory struct {
	fd   int
	root *os.File // keeps the root's descriptor open; nil for others
}

func openRoot(root *os.Root) (directory, error) {
	f, err := root.Open(".")
	if err != nil {
		return directory{}, err
	}
	return directory{fd: int(f.Fd()), root: f}, nil
}

func (d directory) close() {
	if d.root != nil {
		d.root.Close()
	} else {
		unix.Close(d.fd)
	}
}

func (d directory) enter(name string) (directory, error) {
	fd, err := d.openat(name, unix.O_DIRECTORY)
	return directory{fd: fd}, err
}

func (d directory) openat(name string, flags int) (fd int, err error) {
	for {
		fd, err = unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
		if err != unix.EINTR {
			return fd, pathError("openat", name, err)
		}
	}
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (d directory) lstat(name string) (Info, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err != unix.EINTR {
			return infoOf(&st), pathError("lstat", name, err)
		}
	}
}

func infoOf(st *unix.Stat_t) Info {
	mode := fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	default:
		mode |= fs.ModeIrregular
	}
	return Info{Mode: mode, Size: st.Size, Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(), Inode: st.Ino, Device: uint64(st.Dev), Links: uint64(st.Nlink), owner: st.Uid, group: st.Gid}
}

// It does not wait for a FIFO that replaced the file.
func (d directory) open(name, path string) (File, Info, error) {
	seen, err := d.lstat(name)
	if err == nil {
		err = requireRegular(path, seen.Mode)
	}
	if err != nil {
		return File{}, Info{}, err
	}
	fd, err := d.openat(name, unix.O_NONBLOCK)
	if err != nil {
		return File{}, Info{}, err
	}
	var st unix.Stat_t
	err = pathError("fstat", name, unix.Fstat(fd, &st))
	opened := infoOf(&st)
	if err == nil && (opened.Inode != seen.Inode || opened.Device != seen.Device) {
		err = treepath.Refuse(path, "it was replaced while being opened")
	}
	if err != nil {
		unix.Close(fd)
		return File{}, Info{}, err
	}
	return File{fd}, opened, nil
}

func (d directory) readlink(name string) (string, error) {
	for size := 256; ; size *= 2 {
		b := make([]byte, size)
		n, err := unix.Readlinkat(d.fd, name, b)
		if err != nil || n < size {
			return string(b[:max(n, 0)]), pathError("readlink", name, err)
		}
	}
}

func (d directory) names() ([]string, error) {
	fd, err := d.openat(".", unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (d directory) makeDir(name string) error {
	if err := unix.Mkdirat(d.fd, name, 0o755); err != nil {
		return pathError("mkdirat", name, err)
	}
	if os.Geteuid() == 0 {
		made, err := d.enter(name)
		if err != nil {
			return err
		}
		giveOwner(made.fd, d.owner())
		made.close()
	}
	return nil
}

// owner returns nil if this process is not root, or if the owner is unknown.
func (d directory) owner() *Info {
	var st unix.Stat_t
	if os.Geteuid() != 0 || unix.Fstat(d.fd, &st) != nil {
		return nil
	}
	info := infoOf(&st)
	return &info
}

func giveOwner(fd int, of *Info) {
	// Setting both needs a privilege that setting the group alone does not.
	if of != nil && unix.Fchown(fd, int(of.owner), int(of.group)) != nil {
		_ = unix.Fchown(fd, -1, int(of.group))
	}
}

func (d directory) chmod(mode fs.FileMode) error {
	return pathError("chmod", ".", unix.Fchmod(d.fd, uint32(mode.Perm())))
}

// force gives the owner of the directory, if that is this user, all rights in it, and returns
// the permission bits that it had; nil if nothing was to be given.
func (d directory) force() *uint32 {
	var st unix.Stat_t
	mode := modeToGive(&st, unix.Fstat(d.fd, &st))
	if mode == nil || unix.Fchmod(d.fd, *mode|0o700) != nil {
		return nil
	}
	return mode
}

// forceName is force for a directory that cannot be opened. Kernels before 6.6 cannot do that
// without following links.
func (d directory) forceName(name string) *uint32 {
	var st unix.Stat_t
	mode := modeToGive(&st, unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW))
	if mode == nil || unix.Fchmodat(d.fd, name, *mode|0o700, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return nil
	}
	return mode
}

func modeToGive(st *unix.Stat_t, err error) *uint32 {
	mode := uint32(st.Mode)
	if err != nil || mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || mode&0o700 == 0o700 {
		return nil
	}
	return new(mode & 0o7777)
}

func (d directory) chmodFile(f File, name string, mode fs.FileMode) error {
	return pathError("chmod", name, unix.Fchmod(f.fd, uint32(mode.Perm())))
}

func (d directory) removeDir(name string) error {
	return pathError("rmdir", name, unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR))
}

func (d directory) remove(name string) error {
	return pathError("unlink", name, unix.Unlinkat(d.fd, name, 0))
}

func (d directory) create(name string, replaces *Info) (*os.File, error) {
	fd, err := unix.Openat(d.fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	if replaces == nil {
		replaces = d.owner()
	}
	giveOwner(fd, replaces)
	return os.NewFile(uintptr(fd), name), nil
}

func (d directory) openToWrite(name string) (*os.File, error) {
	fd, err := unix.Openat(d.fd, name, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (d directory) symlink(target, name string) error {
	return pathError("symlink", name, unix.Symlinkat(target, d.fd, name))
}

// The third argument is for systems that rename by paths only.
func (d directory) rename(name string, to directory, _, toName string) error {
	return pathError("rename", toName, unix.Renameat(d.fd, name, to.fd, toName))
}

// isBusy reports whether a file cannot be replaced by another one because it is a mount
// point.
func isBusy(err error) bool { return errors.Is(err, unix.EBUSY) }

// Some file systems cannot sync directories.
func (d directory) sync() error {
	err := unix.Fsync(d.fd)
	if err == unix.EINVAL || err == unix.ENOTSUP {
		return nil
	}
	return pathError("sync", ".", err)
}

// File is an open regular file. Unlike an [os.File], it does not first ask the system
// whether the descriptor can be polled.
type File struct{ fd int }

func (f File) Read(p []byte) (int, error) {
	for {
		switch n, err := unix.Read(f.fd, p); {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Close closes the file. Call it once.
func (f File) Close() error { return unix.Close(f.fd) }

// Std returns the file as the standard library has it, instead of it. The path is used only
// in errors.
func (f File) Std(path string) *os.File { return os.NewFile(uintptr(f.fd), path) }
