package workspace

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// openDir opens the directory of that name in parent, and nothing else: a
// symlink is refused even when it stays inside the tree, and so is whatever
// takes the directory's place meanwhile. The path is for the error alone.
func openDir(parent *os.Root, name, path string) (*os.Root, fs.FileInfo, error) {
	seen, err := parent.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case seen.Mode()&fs.ModeSymlink != 0:
		return nil, nil, refuse(path, "%s is a symlink", display(path))
	case !seen.IsDir():
		return nil, nil, refuse(path, "%s is a file, not a directory", display(path))
	}
	// The dot makes the system open the name as a directory: a FIFO that took
	// its place would block forever.
	dir, err := parent.OpenRoot(name + "/.")
	if err != nil {
		return nil, nil, err
	}
	opened, err := dir.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = refuse(path, "%s was replaced while it was opened", display(path))
	}
	if err != nil {
		dir.Close()
		return nil, nil, err
	}
	return dir, opened, nil
}

// absent reports whether an error says that there is nothing at a path that
// hone would touch: it does not exist, or a file or symlink stands in the way.
func absent(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) || missing(err)
}

// missing reports whether an error says that a path does not exist.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// cursor opens one directory after the other and keeps open only the way from
// the root to the current one, so that neighbours cost one step and a tree of
// any size needs few descriptors. It is for one goroutine.
type cursor struct {
	root *os.Root
	path string // of the directory on top
	way  []opened
}

// opened is one directory on the way.
type opened struct {
	path string
	dir  *os.Root
}

// at returns the directory of that cleaned path, "" for the root. It is valid
// until the next call.
func (c *cursor) at(path string) (*os.Root, error) {
	for !holds(c.path, path) {
		c.pop()
	}
	for c.path != path {
		if err := c.push(path); err != nil {
			return nil, err
		}
	}
	return c.top(), nil
}

// push enters the next directory on the way to path.
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
	c.way = append(c.way, opened{path: next, dir: dir})
	c.path = next
	return nil
}

// pop leaves the directory on top. The root stays.
func (c *cursor) pop() {
	last := len(c.way) - 1
	c.way[last].dir.Close()
	c.way = c.way[:last]
	c.path = parentOf(c.path)
}

func (c *cursor) top() *os.Root {
	if len(c.way) == 0 {
		return c.root
	}
	return c.way[len(c.way)-1].dir
}

// close closes all but the root.
func (c *cursor) close() {
	for len(c.way) > 0 {
		c.pop()
	}
}

// lstat looks at a cleaned path.
func (c *cursor) lstat(path string) (fs.FileInfo, error) {
	dir, err := c.at(parentOf(path))
	if err != nil {
		return nil, err
	}
	return dir.Lstat(base(path))
}

// base returns the last name of a cleaned path.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// holds reports whether dir is path or an ancestor of it; "" is of all.
func holds(dir, path string) bool {
	return dir == "" || path == dir || len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}
