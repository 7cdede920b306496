//go:build !unix

package nofollow

import (
	"io/fs"
	"os"
)

// directory is an open directory. Names in it are single components of a path.
type directory struct {
	*os.Root
	keep bool // the root is the caller's to close
}

func openRoot(root *os.Root) (directory, error) { return directory{root, true}, nil }

func (d directory) close() {
	if !d.keep {
		d.Root.Close()
	}
}

func (d directory) enter(name string) (directory, error) {
	dir, _, err := OpenDir(d.Root, name, name)
	return directory{Root: dir}, err
}

func (d directory) lstat(name string) (Info, error) {
	info, err := d.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	return infoOf(info), nil
}

// infoOf returns no change time and no inode, so that only size and modification
// time of a file are compared: a program that resets the latter hides its change.
func infoOf(info fs.FileInfo) Info {
	return Info{Mode: info.Mode(), Size: info.Size(), Modified: info.ModTime().UnixNano()}
}

func (d directory) open(_, path string) (File, Info, error) {
	f, info, err := OpenRegular(d.Root, path)
	if err != nil {
		return File{}, Info{}, err
	}
	return File{f}, infoOf(info), nil
}

func (d directory) readlink(name string) (string, error) { return d.Readlink(name) }

func (d directory) names() ([]string, error) { return DirNames(d.Root) }

// File is an open regular file.
type File struct{ *os.File }
