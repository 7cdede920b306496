// Package nofollow opens files and directories below a root without following
// symlinks, even while another process replaces directories with symlinks.
//
// A [Cursor] opens directories to read. [Pins] holds the directories that a
// change works in. All paths are relative to the root and cleaned.
package nofollow

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"hone/workspace/treepath"
)

// OpenDir opens the directory called name in parent. It refuses a symlink even
// if its target is inside the tree, and anything that replaces the directory
// while it is being opened. The path is used only in errors.
func OpenDir(parent *os.Root, name, path string) (*os.Root, fs.FileInfo, error) {
	seen, err := parent.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if err := requireDir(path, seen.Mode()); err != nil {
		return nil, nil, err
	}
	// The dot makes the system open the name as a directory. Without it, a FIFO
	// that replaced the directory would block forever.
	dir, err := parent.OpenRoot(name + "/.")
	if err != nil {
		return nil, nil, err
	}
	opened, err := dir.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = treepath.Refuse(path, "%s was replaced while being opened", treepath.Display(path))
	}
	if err != nil {
		dir.Close()
		return nil, nil, err
	}
	return dir, opened, nil
}

func requireDir(path string, mode fs.FileMode) error {
	switch {
	case mode.IsDir():
		return nil
	case mode&fs.ModeSymlink != 0:
		return treepath.Refuse(path, "%s is a symlink", treepath.Display(path))
	}
	return treepath.Refuse(path, "%s is a file, not a directory", treepath.Display(path))
}

// IsAbsent reports whether an error means that hone finds nothing usable at a
// path: it does not exist, or one of its parents is a file or symlink.
func IsAbsent(err error) bool {
	var refused *treepath.RefusedError
	return errors.As(err, &refused) || IsNotExist(err)
}

// IsNotExist reports whether an error means that a path does not exist.
func IsNotExist(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
