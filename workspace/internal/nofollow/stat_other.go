//go:build !unix

package nofollow

import (
	"io/fs"
	"os"
)

func (d openedDir) lstat(name string) (Info, error) { return infoOf(d.root.Lstat(name)) }

func (d openedDir) rmdir(name string) error {
	info, err := d.root.Lstat(name)
	if err == nil {
		err = requireDir(name, info.Mode())
	}
	if err != nil {
		return err
	}
	return d.root.Remove(name)
}

func stat(f *os.File) (Info, error) { return infoOf(f.Stat()) }

// Only size and modification time of a file are compared: a program that resets the latter
// hides its change.
func infoOf(info fs.FileInfo, err error) (Info, error) {
	if err != nil {
		return Info{}, err
	}
	return Info{Mode: info.Mode(), Size: info.Size(), Modified: info.ModTime().UnixNano(), std: info}, nil
}

// On this system permission bits do not keep owners from their directories.
func isOwn(fs.FileInfo) bool { return false }
