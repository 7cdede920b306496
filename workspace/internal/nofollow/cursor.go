package nofollow

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"hone/internal/transient"
	"hone/workspace/treepath"
)

// Cursor inspects, reads and changes files in one directory after another. It keeps only
// the directories from the root to the current one open, so that moving to a
// neighbour costs one step and a tree of any size needs few descriptors. While a
// directory is open, the cursor means that very directory, even if another process moves
// it. All paths are cleaned. It is for one goroutine.
//
// A look at a large tree is mostly Lstat. So a cursor holds descriptors where the
// system has them: [os.Root] takes three times as long for each file.
type Cursor struct {
	Root *os.Root
	// Force also enters and changes directories that this user owns and has no permission to
	// enter or change, as commands leave them behind. They get their permission bits back when
	// the cursor leaves them.
	Force bool

	path  string // of the current directory
	stack []openedDir
}

type openedDir struct {
	path string
	dir  directory
	mode *uint32 // of a directory that was forced: its own permission bits
}

// Info is what the system knows of a file.
type Info struct {
	Mode         fs.FileMode // of the type bits, only those of directories and symlinks are exact
	Size         int64       // bytes
	Modified     int64       // nanoseconds since 1970
	Changed      int64       // last change of the inode in nanoseconds; 0 if unknown
	Inode        uint64      // 0 if unknown
	Device       uint64      // 0 if unknown
	Links        uint64      // names of the file; 0 if unknown
	owner, group uint32
}

// IsSame reports whether two infos are of the same file in the same state, as far as they
// show: permission bits, size and modification time of a file, nothing of a directory.
func (i Info) IsSame(o Info) bool {
	same := i.Inode == o.Inode && i.Device == o.Device && i.Mode == o.Mode
	return same && (i.Mode.IsDir() || i.Size == o.Size && i.Modified == o.Modified)
}

// ChangeTime returns when the contents of the file or its entry last changed, according to
// the kernel; the zero time if unknown.
func (i Info) ChangeTime() time.Time {
	if i.Changed == 0 {
		return time.Time{}
	}
	return time.Unix(0, i.Changed)
}

// Enter opens the directory at a cleaned path, "" for the root. The error wraps
// fs.ErrNotExist or is a [*treepath.RefusedError] if there is none.
func (c *Cursor) Enter(path string) error {
	if len(c.stack) == 0 {
		root, err := openRoot(c.Root)
		if err != nil {
			return err
		}
		c.stack = append(c.stack, openedDir{dir: root})
		if c.Force {
			c.stack[0].mode = root.force()
		}
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
	var mode *uint32
	dir, err := c.top().enter(name)
	switch {
	case c.Force && err == nil:
		mode = dir.force()
	case c.Force && errors.Is(err, fs.ErrPermission):
		if mode = c.top().forceName(name); mode != nil {
			dir, err = c.top().enter(name)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		if info, failed := c.top().lstat(name); failed == nil {
			err = cmp.Or(requireDir(next, info.Mode), err)
		}
		return err
	}
	c.stack = append(c.stack, openedDir{next, dir, mode})
	c.path = next
	return nil
}

func (c *Cursor) pop() {
	last := len(c.stack) - 1
	if mode := c.stack[last].mode; mode != nil {
		_ = c.top().chmod(fs.FileMode(*mode))
	}
	c.top().close()
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

// IsMount reports whether a file or directory is a mount point, which cannot be removed or
// replaced.
func (c *Cursor) IsMount(path string) bool {
	name, err := c.enterParent(path)
	return err == nil && c.top().isMount(name)
}

// Path returns the path of the current directory: after [Cursor.Enter], that which was
// entered or, if it could not be, the deepest that could.
func (c *Cursor) Path() string { return c.path }

// Names returns the names in the directory at a cleaned path, sorted.
func (c *Cursor) Names(path string) ([]string, error) {
	if err := c.Enter(path); err != nil {
		return nil, err
	}
	return c.top().names()
}

// Walk calls visit for what is below a directory, in order, until an error. An err that it
// passes is that of the path. visit returns [fs.SkipDir] for a directory that is not entered.
func (c *Cursor) Walk(dir string, visit func(path string, info Info, err error) error) error {
	names, err := c.Names(dir)
	if err != nil {
		return visit(dir, Info{}, err)
	}
	for _, name := range names {
		path := treepath.Join(dir, name)
		info, err := c.Lstat(path)
		err = visit(path, info, err)
		if err == nil && info.Mode.IsDir() {
			err = c.Walk(path, visit)
		}
		if err != nil && err != fs.SkipDir {
			return err
		}
	}
	return nil
}

// MakeDir makes a directory.
func (c *Cursor) MakeDir(path string) error {
	name, err := c.enterParent(path)
	if err != nil {
		return err
	}
	return c.top().makeDir(name)
}

// ChmodDir sets the permission bits of a directory.
func (c *Cursor) ChmodDir(path string, mode fs.FileMode) error {
	if err := c.Enter(path); err != nil {
		return err
	}
	return c.top().chmod(mode)
}

// RemoveDir removes an empty directory.
func (c *Cursor) RemoveDir(path string) error {
	name, err := c.enterParent(path)
	if err != nil {
		return err
	}
	return c.top().removeDir(name)
}

// Create creates a file, for this user only, and opens it for writing. Its owner is that of
// the file that it shall replace or, without one (nil), if this process is root, that of the
// directory: root in a container works in the tree of a user, who must be able to change
// what it leaves.
func (c *Cursor) Create(path string, replaces *Info) (*os.File, error) {
	name, err := c.enterParent(path)
	if err != nil {
		return nil, err
	}
	return c.top().create(name, replaces)
}

// Symlink makes a symlink.
func (c *Cursor) Symlink(target, path string) error {
	name, err := c.enterParent(path)
	if err != nil {
		return err
	}
	return c.top().symlink(target, name)
}

// Chmod sets the permission bits of a regular file, if it is still in the state was.
func (c *Cursor) Chmod(path string, was Info, mode fs.FileMode) error {
	f, now, err := c.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if !now.IsSame(was) {
		return treepath.Refuse(path, "another process changed it")
	}
	return c.top().chmodFile(f, treepath.Base(path), mode)
}

// Remove removes a file or link.
func (c *Cursor) Remove(path string) error {
	name, err := c.enterParent(path)
	if err != nil {
		return err
	}
	return c.top().remove(name)
}

// Place gives a path what is at temp, by renaming that. temp is in the same directory or one
// above. A mount point, such as a file that a container binds, cannot be replaced: it is
// written in place. Then a crash can leave it with a part of each contents, and other
// processes can see that.
func (c *Cursor) Place(temp, path string) error {
	name, err := c.enterParent(path)
	if err != nil {
		return err
	}
	above := c.stack[0]
	for _, d := range c.stack {
		if d.path == treepath.Parent(temp) {
			above = d
		}
	}
	err = above.dir.rename(treepath.Base(temp), c.top(), strings.TrimPrefix(path[len(above.path):], "/"), name)
	if !isBusy(err) {
		return err
	}
	from, _, err := above.dir.open(treepath.Base(temp), temp)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := c.top().openToWrite(name)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, from)
	if err == nil {
		err = to.Truncate(n)
	}
	if err == nil {
		err = to.Sync()
	}
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	return above.dir.remove(treepath.Base(temp))
}

// RemoveLeft removes the file or link of a name from the directory at a path and from those
// above it, as far as they can be opened. It returns the directories in which it found one.
func (c *Cursor) RemoveLeft(path, name string) (in []string, err error) {
	if err := c.Enter(path); transient.Is(err) {
		return nil, err
	}
	for _, d := range c.stack {
		switch _, err := d.dir.lstat(name); {
		case IsNotExist(err):
			continue
		case transient.Is(err):
			return in, err
		}
		if err := d.dir.remove(name); err != nil {
			return in, err
		}
		in = append(in, d.path)
	}
	return in, nil
}

// Sync makes the names in the current directory durable.
func (c *Cursor) Sync() error { return c.top().sync() }
