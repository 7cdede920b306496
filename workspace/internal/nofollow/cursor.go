package nofollow

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"hone/internal/transient"
	"hone/workspace/treepath"
)

// Cursor inspects, reads and changes files in one directory after another. It keeps only
// the directories from the root to the current one open, so that moving to a
// neighbour costs one step and a tree of any size needs few descriptors. While a
// directory is open, the cursor means that very directory, even if another process moves
// it. All paths are cleaned. It is for one goroutine.
type Cursor struct {
	Root *os.Root
	// Force also enters and changes directories that this user owns and has no permission to
	// enter or change, as commands leave them behind. They get their permission bits back when
	// the cursor leaves them.
	Force bool

	path  string // of the current directory
	stack []openedDir
}

// openedDir is one directory, opened twice: by the root names in it are opened and changed, by
// dir its own state.
type openedDir struct {
	path string
	root *os.Root
	dir  *os.File
	mode *fs.FileMode // of a directory that was forced: its own permission bits
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
	std          fs.FileInfo // where inodes are unknown
}

func (i Info) isFile(o Info) bool {
	if i.std != nil && o.std != nil {
		return os.SameFile(i.std, o.std)
	}
	return i.Inode == o.Inode && i.Device == o.Device
}

// IsSame reports whether two infos are of the same file in the same state, as far as they
// show: permission bits, size and modification time of a file, nothing of a directory.
func (i Info) IsSame(o Info) bool {
	return i.isFile(o) && i.Mode == o.Mode && (i.Mode.IsDir() || i.Size == o.Size && i.Modified == o.Modified)
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
		if err := c.enter("", c.Root, "."); err != nil {
			return err
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
	seen, err := c.top().lstat(name)
	if err == nil {
		err = requireDir(next, seen.Mode)
	}
	if err != nil {
		return err
	}
	if err := c.enter(next, c.top().root, name); err != nil {
		return err
	}
	if now, err := stat(c.top().dir); err != nil || !now.isFile(seen) {
		c.pop()
		return cmp.Or(err, treepath.Refuse(next, "%s was replaced while being opened", treepath.Display(next)))
	}
	return nil
}

// enter opens the directory that is called name in a root. path is where it is in the tree.
func (c *Cursor) enter(path string, in *os.Root, name string) error {
	d := openedDir{path: path, root: in}
	var err error
	if c.Force {
		d.force(name)
	}
	if path != "" {
		// The dot makes the system open the name as a directory. Without it, a FIFO that
		// replaced the directory would block forever.
		if d.root, err = in.OpenRoot(name + "/."); err != nil {
			return err
		}
	}
	if d.dir, err = d.root.OpenFile(".", syscall.O_NONBLOCK, 0); err != nil {
		if path != "" {
			d.root.Close()
		}
		return err
	}
	c.stack, c.path = append(c.stack, d), path
	return nil
}

// force gives the owner of a directory, if that is this user, all rights in it, and notes
// the permission bits that it had.
func (d *openedDir) force(name string) {
	info, err := d.root.Lstat(name)
	if err != nil || !isOwn(info) || info.Mode()&0o700 == 0o700 {
		return
	}
	if mode := info.Mode(); d.root.Chmod(name, mode|0o700) == nil {
		d.mode = &mode
	}
}

func (c *Cursor) pop() {
	last := len(c.stack) - 1
	d := c.stack[last]
	if d.mode != nil {
		_ = d.root.Chmod(".", *d.mode)
	}
	d.dir.Close()
	if d.path != "" {
		d.root.Close()
	}
	c.stack, c.path = c.stack[:last], ""
	if last > 0 {
		c.path = c.top().path
	}
}

func (c *Cursor) top() openedDir { return c.stack[len(c.stack)-1] }

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
func (c *Cursor) Open(path string) (*os.File, Info, error) { return c.open(path, os.O_RDONLY) }

// It does not wait for a FIFO that replaced the file.
func (c *Cursor) open(path string, flag int) (*os.File, Info, error) {
	seen, err := c.Lstat(path)
	if err == nil {
		err = requireRegular(path, seen.Mode)
	}
	if err != nil {
		return nil, Info{}, err
	}
	f, err := c.top().root.OpenFile(treepath.Base(path), flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, Info{}, err
	}
	opened, err := stat(f)
	if err == nil && !opened.isFile(seen) {
		err = treepath.Refuse(path, "it was replaced while being opened")
	}
	if err != nil {
		f.Close()
		return nil, Info{}, err
	}
	return f, opened, nil
}

// Readlink returns the target of the symlink at a cleaned path.
func (c *Cursor) Readlink(path string) (string, error) {
	name, err := c.enterParent(path)
	if err != nil {
		return "", err
	}
	return c.top().root.Readlink(name)
}

// Path returns the path of the current directory: after [Cursor.Enter], that which was
// entered or, if it could not be, the deepest that could.
func (c *Cursor) Path() string { return c.path }

// Names returns the names in the directory at a cleaned path, sorted.
func (c *Cursor) Names(path string) ([]string, error) {
	if err := c.Enter(path); err != nil {
		return nil, err
	}
	dir := c.top().dir
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	return names, err
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

// MakeDir makes a directory. Its owner is as in [Cursor.Create].
func (c *Cursor) MakeDir(path string) error {
	name, err := c.enterParent(path)
	if err != nil {
		return err
	}
	above, err := stat(c.top().dir)
	if err == nil {
		err = c.top().root.Mkdir(name, 0o755)
	}
	if err == nil && os.Geteuid() == 0 {
		if err = c.Enter(path); err == nil {
			giveOwner(c.top().dir, above)
		}
	}
	return err
}

func giveOwner(f *os.File, of Info) {
	// Setting both needs a privilege that setting the group alone does not.
	if f.Chown(int(of.owner), int(of.group)) != nil {
		_ = f.Chown(-1, int(of.group))
	}
}

// ChmodDir sets the permission bits of a directory.
func (c *Cursor) ChmodDir(path string, mode fs.FileMode) error {
	if err := c.Enter(path); err != nil {
		return err
	}
	return c.top().root.Chmod(".", mode)
}

// RemoveDir removes an empty directory.
func (c *Cursor) RemoveDir(path string) error {
	name, err := c.enterParent(path)
	if err != nil {
		return err
	}
	return c.top().rmdir(name)
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
	f, err := c.top().root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if replaces != nil {
		giveOwner(f, *replaces)
	} else if above, err := stat(c.top().dir); err == nil && os.Geteuid() == 0 {
		giveOwner(f, above)
	}
	return f, nil
}

// Symlink makes a symlink.
func (c *Cursor) Symlink(target, path string) error {
	name, err := c.enterParent(path)
	if err != nil {
		return err
	}
	return c.top().root.Symlink(target, name)
}

// Chmod sets the permission bits of a regular file, if it is still in the state was.
func (c *Cursor) Chmod(path string, was Info, mode fs.FileMode) error {
	f, now, err := c.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	switch {
	case !now.IsSame(was):
		return treepath.Refuse(path, "another process changed it")
	case runtime.GOOS == "windows": // a file that is open for reading cannot be changed by its handle
		return c.top().root.Chmod(treepath.Base(path), mode.Perm())
	}
	return f.Chmod(mode.Perm())
}

// Remove removes a file or link.
func (c *Cursor) Remove(path string) error {
	name, err := c.enterParent(path)
	if err != nil {
		return err
	}
	return c.top().root.Remove(name)
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
	if above := treepath.Parent(temp); above != c.path {
		// Move it beside its target first: if a directory on the way has become a link, no more than the temporary file ends up there.
		here := treepath.Join(c.path, treepath.Base(temp))
		i := slices.IndexFunc(c.stack, func(d openedDir) bool { return d.path == above })
		if err := c.stack[i].root.Rename(treepath.Base(temp), strings.TrimPrefix(here[len(above):], "/")); err != nil {
			return err
		}
		temp = here
	}
	dir := c.top()
	err = dir.root.Rename(treepath.Base(temp), name)
	if !errors.Is(err, syscall.EBUSY) {
		return err
	}
	from, _, err := c.Open(temp)
	if err != nil {
		return err
	}
	defer from.Close()
	to, _, err := c.open(path, os.O_WRONLY)
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
	return dir.root.Remove(treepath.Base(temp))
}

// RemoveLeft removes the file or link of a name from the directory at a path and from those
// above it, as far as they can be opened. It returns the directories in which it found one.
func (c *Cursor) RemoveLeft(path, name string) (in []string, err error) {
	if err := c.Enter(path); transient.Is(err) {
		return nil, err
	}
	for _, d := range c.stack {
		switch _, err := d.lstat(name); {
		case IsNotExist(err):
			continue
		case transient.Is(err):
			return in, err
		}
		if err := d.root.Remove(name); err != nil {
			return in, err
		}
		in = append(in, d.path)
	}
	return in, nil
}

// Sync makes the names in the current directory durable, where the system and the file
// system can do that.
func (c *Cursor) Sync() error {
	err := c.top().dir.Sync()
	if runtime.GOOS == "windows" || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}
