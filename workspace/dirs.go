package workspace

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// openDir opens the directory called name in parent. It refuses a symlink even
// if its target is inside the tree, and anything that replaces the directory
// while it is being opened. The path is used only in errors.
func openDir(parent *os.Root, name, path string) (*os.Root, fs.FileInfo, error) {
	seen, err := parent.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case seen.Mode()&fs.ModeSymlink != 0:
		return nil, nil, refusal(path, "%s is a symlink", display(path))
	case !seen.IsDir():
		return nil, nil, refusal(path, "%s is a file, not a directory", display(path))
	}
	// The dot makes the system open the name as a directory. Without it, a FIFO
	// that replaced the directory would block forever.
	dir, err := parent.OpenRoot(name + "/.")
	if err != nil {
		return nil, nil, err
	}
	opened, err := dir.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = refusal(path, "%s was replaced while being opened", display(path))
	}
	if err != nil {
		dir.Close()
		return nil, nil, err
	}
	return dir, opened, nil
}

// isAbsent reports whether an error means that hone finds nothing usable at a
// path: it does not exist, or one of its parents is a file or symlink.
func isAbsent(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) || isNotExist(err)
}

// isNotExist reports whether an error means that a path does not exist.
func isNotExist(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// cursor opens one directory after another. It keeps only the directories from
// the root to the current one open, so that moving to a neighbour costs one
// step and a tree of any size needs few descriptors. It is for one goroutine.
type cursor struct {
	root  *os.Root
	path  string // of the current directory
	stack []openedDir
}

// openedDir is one open directory of a cursor.
type openedDir struct {
	path string
	dir  *os.Root
}

// at returns the directory at a cleaned path, "" for the root. It is valid
// until the next call.
func (c *cursor) at(path string) (*os.Root, error) {
	for !contains(c.path, path) {
		c.pop()
	}
	for c.path != path {
		if err := c.push(path); err != nil {
			return nil, err
		}
	}
	return c.top(), nil
}

// push enters the next directory towards path.
func (c *cursor) push(path string) error {
	rest := path
	if c.path != "" {
		rest = path[len(c.path)+1:]
	}
	name, _, _ := strings.Cut(rest, "/")
	next := join(c.path, name)
	dir, _, err := openDir(c.top(), name, next)
	if err != nil {
		return err
	}
	c.stack = append(c.stack, openedDir{path: next, dir: dir})
	c.path = next
	return nil
}

// pop leaves the current directory. The root stays open.
func (c *cursor) pop() {
	last := len(c.stack) - 1
	c.stack[last].dir.Close()
	c.stack = c.stack[:last]
	c.path = parentOf(c.path)
}

// top returns the current directory.
func (c *cursor) top() *os.Root {
	if len(c.stack) == 0 {
		return c.root
	}
	return c.stack[len(c.stack)-1].dir
}

// close closes all directories except the root.
func (c *cursor) close() {
	for len(c.stack) > 0 {
		c.pop()
	}
}

// lstat returns the file info of a cleaned path.
func (c *cursor) lstat(path string) (fs.FileInfo, error) {
	dir, err := c.at(parentOf(path))
	if err != nil {
		return nil, err
	}
	return dir.Lstat(base(path))
}

// base returns the last name of a cleaned path.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// contains reports whether dir is path or an ancestor of it; "" is an ancestor
// of every path.
func contains(dir, path string) bool {
	return dir == "" || path == dir || len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}
