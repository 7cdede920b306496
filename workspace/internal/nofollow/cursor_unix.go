//go:build unix

package nofollow

import (
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
	return Info{Mode: mode, Size: st.Size, Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(), Inode: st.Ino, Device: uint64(st.Dev)}
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
