package nofollow

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"hone/workspace/treepath"
)

// Cursor inspects and reads files in one directory after another. It keeps only
// the directories from the root to the current one open, so that moving to a
// neighbour costs one step and a tree of any size needs few descriptors. It is
// for one goroutine.
//
// A look at a large tree is mostly Lstat. So a cursor holds descriptors where the
// system has them: [os.Root] takes three times as long for each file.
type Cursor struct {
	Root *os.Root

	path  string // of the current directory
	stack []openedDir
}

type openedDir struct {
	path string
	dir  directory
}

// Info is what the system knows of a file.
type Info struct {
	Mode     fs.FileMode // of the type bits, only those of directories and symlinks are exact
	Size     int64       // bytes
	Modified int64       // nanoseconds since 1970
	Changed  int64       // last change of the inode in nanoseconds; 0 if unknown
	Inode    uint64      // 0 if unknown
	Device   uint64      // 0 if unknown
}

// Enter opens the directory at a cleaned path, "" for the root. The error wraps
// fs.ErrNotExist or is a [*treepath.RefusedError] if there is none.
func (c *Cursor) Enter(path string) error {
	if len(c.stack) == 0 {
		dir, err := openRoot(c.Root)
		if err != nil {
			return err
		}
		c.stack = append(c.stack, openedDir{dir: dir})
	}
	for !treepath.Contains(c.path, path) {
		c.pop()
	}
	for c.path != path {
		if err := c.push(path); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cursor) push(path string) error {
	rest := path
	if c.path != "" {
		rest = path[len(c.path)+1:]
	}
	name, _, _ := strings.Cut(rest, "/")
	next := path[:len(path)-len(rest)+len(name)]
	if name == ".." {
		return treepath.Refuse(next, "it leaves the tree")
	}
	dir, err := c.top().enter(name)
	if err != nil {
		return c.notDir(name, next, err)
	}
	c.stack = append(c.stack, openedDir{path: next, dir: dir})
	c.path = next
	return nil
}

func (c *Cursor) notDir(name, path string, cause error) error {
	if errors.Is(cause, fs.ErrNotExist) {
		return cause
	}
	if info, err := c.top().lstat(name); err == nil {
		if refused := requireDir(path, info.Mode); refused != nil {
			return refused
		}
	}
	return cause
}

func (c *Cursor) pop() {
	last := len(c.stack) - 1
	c.stack[last].dir.close()
	c.stack = c.stack[:last]
	c.path = ""
	if last > 0 {
		c.path = c.stack[last-1].path
	}
}

func (c *Cursor) top() directory { return c.stack[len(c.stack)-1].dir }

// Close closes all directories except Root.
func (c *Cursor) Close() {
	for len(c.stack) > 0 {
		c.pop()
	}
}

// Lstat returns the info of a cleaned path.
func (c *Cursor) Lstat(path string) (Info, error) {
	name, err := c.enterParent(path)
	if err != nil {
		return Info{}, err
	}
	return c.top().lstat(name)
}

func (c *Cursor) enterParent(path string) (name string, err error) {
	if err := c.Enter(treepath.Parent(path)); err != nil {
		return "", err
	}
	if name = treepath.Base(path); name == ".." {
		return "", treepath.Refuse(path, "it leaves the tree")
	}
	return name, nil
}

// Open opens the regular file at a cleaned path for reading. It opens nothing
// else, even if something replaces the file at the same time. The caller must
// close the file.
func (c *Cursor) Open(path string) (File, Info, error) {
	name, err := c.enterParent(path)
	if err != nil {
		return File{}, Info{}, err
	}
	return c.top().open(name, path)
}

// Readlink returns the target of the symlink at a cleaned path.
func (c *Cursor) Readlink(path string) (string, error) {
	name, err := c.enterParent(path)
	if err != nil {
		return "", err
	}
	return c.top().readlink(name)
}

// Names returns the names in the directory at a cleaned path, sorted.
func (c *Cursor) Names(path string) ([]string, error) {
	if err := c.Enter(path); err != nil {
		return nil, err
	}
	return c.top().names()
}
