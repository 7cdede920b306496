// Package nofollow opens files and directories below a root without following
// symlinks, even while another process replaces directories with symlinks.
//
// A [Cursor] reads and changes what is below a root. All paths are relative to the root and
// cleaned.
package nofollow

import (
	"errors"
	"io/fs"
	"syscall"

	"hone/workspace/treepath"
)

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
