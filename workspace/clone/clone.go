// Package clone copies the complete tree of a workspace.
package clone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"hone/workspace"
	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// copyStep is how many bytes are copied between two checks of the context.
const copyStep = 64 << 20

// Tree copies the complete tree into dst, which must be an existing empty
// directory. The copy includes ignored files and .git at any depth, but not
// .hone at the root, hone's temporary files, or closed paths. It keeps permission bits,
// symlinks as stored, and the modification times of files and directories, so
// that build tools do not start over. It does not keep owners,
// hard links, access lists or extended attributes, and dst keeps its own
// permissions and times. An absolute symlink into the tree still points to the
// tree, not to the copy.
//
// Tree never follows a symlink. It skips FIFOs, sockets, devices and unreadable
// files, and returns their paths. It copies an unreadable directory as an empty
// one, and leaves out files that disappear during the copy. A file that grows
// during the copy is copied up to its earlier size. On Linux files share their blocks
// with the copy if the file system supports that, and holes of sparse files stay holes. After an error, including a
// canceled context, dst contains a partial copy.
func Tree(ctx context.Context, tree *workspace.Tree, dst string) (skipped []string, err error) {
	c := &copier{ctx: ctx}
	err = c.copy(tree, dst)
	return c.skipped, err
}

// Clean is like Tree, but copies only the files and links that belong, and those in .git.
// left are the paths that are not in the copy; a directory of which nothing is ends with
// a slash. changed is when a file last changed, or a directory above it was renamed, according
// to the kernel; the zero time if unknown.
func Clean(ctx context.Context, tree *workspace.Tree, dst string, belongs func(path string, changed time.Time) bool) (left []string, err error) {
	c := &copier{ctx: ctx, belongs: belongs}
	err = c.copy(tree, dst)
	return c.left, err
}

func (c *copier) copy(tree *workspace.Tree, dst string) error {
	root, err := os.OpenRoot(dst)
	if err != nil {
		return fmt.Errorf("copy %s: %w", tree.Dir(), err)
	}
	defer root.Close()
	to := nofollow.Cursor{Root: root}
	defer to.Close()
	c.src, c.dst, c.closed = nofollow.Cursor{Root: tree.Root()}, root, tree.Refusal
	defer c.src.Close()
	names, err := to.Names("")
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("the directory %s is not empty", dst)
	}
	if err == nil {
		c.inside, err = inside(tree.Dir(), dst)
	}
	if err == nil {
		err = c.entries("")
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", tree.Dir(), err)
	}
	return nil
}

// inside returns the path of a directory in a tree; it is outside if that begins with "..".
func inside(tree, dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(tree, real)
	if err != nil {
		return "", nil // on another drive
	}
	if rel == "." {
		return "", errors.New("the copy would be inside the tree")
	}
	return filepath.ToSlash(rel), nil
}

type copier struct {
	ctx     context.Context
	src     nofollow.Cursor
	dst     *os.Root // nobody else writes there
	inside  string   // the path of dst in the tree, if it is there
	skipped []string
	closed  func(path string) error
	belongs func(path string, changed time.Time) bool // nil copies everything
	left    []string                                  // what does not belong
	// moved is when a directory above last changed without its entries, such as by a change
	// of its name, which its files do not show.
	moved time.Time
}

// leaves reports whether a file or link does not belong in the copy, and notes it.
func (c *copier) leaves(path string, info nofollow.Info) bool {
	changed := info.ChangeTime()
	if c.moved.After(changed) && !changed.IsZero() {
		changed = c.moved
	}
	if c.belongs == nil || slices.Contains(strings.Split(path, "/"), ".git") || c.belongs(path, changed) {
		return false
	}
	c.left = append(c.left, path)
	return true
}

func (c *copier) entries(dir string) error {
	names, err := c.src.Names(dir)
	if err != nil && dir == "" {
		return err
	}
	if err != nil && !nofollow.IsNotExist(err) {
		c.skip(dir)
	}
	for _, name := range names {
		if treepath.IsHoneName(name, dir == "") || c.closed(treepath.Join(dir, name)) != nil {
			continue
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.entry(treepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) skip(path string) { c.skipped = append(c.skipped, path) }

// It returns only errors of the copy; a path of the original that fails is skipped.
func (c *copier) entry(path string) error {
	info, err := c.src.Lstat(path)
	switch {
	case nofollow.IsNotExist(err):
		return nil
	case err != nil:
		c.skip(path)
		return nil
	case info.Mode.IsDir():
		moved := c.moved
		if info.Changed != info.Modified && info.ChangeTime().After(moved) {
			c.moved = info.ChangeTime()
		}
		defer func() { c.moved = moved }()
		return c.directory(path, info)
	case c.leaves(path, info):
		return nil
	case info.Mode.IsRegular():
		return c.file(path)
	case info.Mode&fs.ModeSymlink != 0:
		return c.symlink(path)
	}
	c.skip(path)
	return nil
}

func (c *copier) symlink(path string) error {
	target, err := c.src.Readlink(path)
	if nofollow.IsNotExist(err) {
		return nil
	}
	if err != nil {
		c.skip(path)
		return nil
	}
	return c.dst.Symlink(target, path)
}

// The permission bits are set last, because they may forbid writing.
func (c *copier) directory(path string, info nofollow.Info) error {
	if path == c.inside {
		return fmt.Errorf("the copy would be inside the tree, at %s; set TMPDIR to a directory outside of it", treepath.Display(path))
	}
	if err := c.dst.Mkdir(path, 0o700); err != nil {
		return err
	}
	left := len(c.left)
	if err := c.entries(path); err != nil {
		return err
	}
	if len(c.left) > left && c.dst.Remove(path) == nil { // nothing in it belongs
		c.left = append(c.left[:left], path+"/")
		return nil
	}
	return c.finish(path, info)
}

func (c *copier) finish(path string, info nofollow.Info) error {
	modified := time.Unix(0, info.Modified)
	return errors.Join(c.dst.Chtimes(path, modified, modified), c.dst.Chmod(path, info.Mode.Perm()))
}

func (c *copier) file(path string) error {
	src, info, err := c.src.Open(path)
	if nofollow.IsNotExist(err) {
		return nil
	}
	if err != nil {
		c.skip(path)
		return nil
	}
	defer src.Close()
	dst, err := c.dst.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(c.contents(dst, src, info.Size), dst.Close())
	if at := (*fs.PathError)(nil); errors.As(err, &at) && at.Op == "read" {
		c.skip(path)
		return c.dst.Remove(path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", treepath.Display(path), err)
	}
	return c.finish(path, info)
}

func (c *copier) contents(dst, src *os.File, end int64) error {
	for at := int64(0); at < end; {
		from, to, err := nextData(src, at, end)
		if err == nil {
			err = c.section(dst, src, from, to)
		}
		if err != nil {
			return err
		}
		if from == end { // the file ends with a hole, or became shorter
			now, err := src.Stat()
			if err != nil {
				return err
			}
			return dst.Truncate(min(end, now.Size()))
		}
		at = to
	}
	return nil
}

// nextData returns the first section of a file at or after an offset that is not a
// hole; from is end if there is none before end. It may change the file's offset.
func nextData(f *os.File, at, end int64) (from, to int64, err error) {
	const seekData, seekHole = 3, 4 // of Linux
	if runtime.GOOS != "linux" {
		return at, end, nil
	}
	from, err = f.Seek(at, seekData)
	switch {
	case errors.Is(err, syscall.ENXIO):
		return end, end, nil
	case err != nil: // the file system knows no holes
		return at, end, nil
	}
	if to, err = f.Seek(from, seekHole); err != nil {
		to = end
	}
	return min(from, end), min(to, end), nil
}

// The file may have become shorter.
func (c *copier) section(dst, src *os.File, from, to int64) error {
	for _, f := range []*os.File{dst, src} {
		if _, err := f.Seek(from, io.SeekStart); err != nil {
			return err
		}
	}
	for left := to - from; left > 0; {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(dst, src, min(left, copyStep))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// Remove removes a directory, such as a copy, even if it contains directories that their
// owner may not write, such as a module cache. It follows no link.
func Remove(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
