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
	"strings"
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
	switch {
	case seen.Mode()&fs.ModeSymlink != 0:
		return nil, nil, treepath.Refuse(path, "%s is a symlink", treepath.Display(path))
	case !seen.IsDir():
		return nil, nil, treepath.Refuse(path, "%s is a file, not a directory", treepath.Display(path))
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

// Cursor opens one directory after another. It keeps only the directories from
// the root to the current one open, so that moving to a neighbour costs one
// step and a tree of any size needs few descriptors. It is for one goroutine.
type Cursor struct {
	Root  *os.Root
	path  string // of the current directory
	stack []openedDir
}

// openedDir is one open directory of a cursor.
type openedDir struct {
	path string
	dir  *os.Root
}

// At returns the directory at a cleaned path, "" for the root. It is valid
// until the next call.
func (c *Cursor) At(path string) (*os.Root, error) {
	for !treepath.Contains(c.path, path) {
		c.pop()
	}
	for c.path != path {
		if err := c.push(path); err != nil {
			return nil, err
		}
	}
	return c.Top(), nil
}

// push enters the next directory towards path.
func (c *Cursor) push(path string) error {
	rest := path
	if c.path != "" {
		rest = path[len(c.path)+1:]
	}
	name, _, _ := strings.Cut(rest, "/")
	next := treepath.Join(c.path, name)
	dir, _, err := OpenDir(c.Top(), name, next)
	if err != nil {
		return err
	}
	c.stack = append(c.stack, openedDir{path: next, dir: dir})
	c.path = next
	return nil
}

// pop leaves the current directory. The root stays open.
func (c *Cursor) pop() {
	last := len(c.stack) - 1
	c.stack[last].dir.Close()
	c.stack = c.stack[:last]
	c.path = treepath.Parent(c.path)
}

// Top returns the current directory.
func (c *Cursor) Top() *os.Root {
	if len(c.stack) == 0 {
		return c.Root
	}
	return c.stack[len(c.stack)-1].dir
}

// Close closes all directories except the root.
func (c *Cursor) Close() {
	for len(c.stack) > 0 {
		c.pop()
	}
}

// Lstat returns the file info of a cleaned path.
func (c *Cursor) Lstat(path string) (fs.FileInfo, error) {
	dir, err := c.At(treepath.Parent(path))
	if err != nil {
		return nil, err
	}
	return dir.Lstat(treepath.Base(path))
}
