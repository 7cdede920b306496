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
	"slices"
	"strings"

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
// during the copy is copied up to its earlier size. Files share their blocks
// with the copy if the file system supports that; otherwise, on Linux, holes of sparse
// files stay holes. After an error, including a
// canceled context, dst contains a partial copy.
func Tree(ctx context.Context, tree *workspace.Tree, dst string) (skipped []string, err error) {
	c := &copier{ctx: ctx, clone: true}
	err = c.copy(tree, dst)
	return c.skipped, err
}

// Clean is like Tree, but copies only the files and links that belong, and those in .git.
// left are the paths that are not in the copy; a directory of which nothing is ends with
// a slash.
func Clean(ctx context.Context, tree *workspace.Tree, dst string, belongs func(path string, info fs.FileInfo) bool) (left []string, err error) {
	c := &copier{ctx: ctx, clone: true, belongs: belongs}
	err = c.copy(tree, dst)
	return c.left, err
}

func (c *copier) copy(tree *workspace.Tree, dst string) error {
	root, err := os.OpenRoot(dst)
	if err != nil {
		return fmt.Errorf("copy %s: %w", tree.Dir(), err)
	}
	defer root.Close()
	c.closed = tree.Refusal
	if c.dst, err = root.Stat("."); err == nil {
		err = c.tree(tree.Root(), root)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", tree.Dir(), err)
	}
	return nil
}

type copier struct {
	ctx     context.Context
	dst     fs.FileInfo
	clone   bool // sharing blocks may work
	skipped []string
	closed  func(path string) error
	belongs func(path string, info fs.FileInfo) bool // nil copies everything
	left    []string                                 // what does not belong
}

// leaves reports whether a file or link does not belong in the copy, and notes it.
func (c *copier) leaves(path string, info fs.FileInfo) bool {
	if c.belongs == nil || slices.Contains(strings.Split(path, "/"), ".git") || c.belongs(path, info) {
		return false
	}
	c.left = append(c.left, path)
	return true
}

func (c *copier) tree(from, to *os.Root) error {
	names, err := nofollow.DirNames(to)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("the directory %s is not empty", to.Name())
	}
	info, err := from.Stat(".")
	if err == nil && os.SameFile(info, c.dst) {
		err = fmt.Errorf("the copy would be inside the tree")
	}
	if err != nil {
		return err
	}
	return c.entries(from, to, "")
}

func (c *copier) entries(from, to *os.Root, dir string) error {
	names, err := nofollow.DirNames(from)
	if err != nil && dir == "" {
		return err
	}
	if err != nil {
		c.skip(dir)
	}
	for _, name := range names {
		if treepath.IsHoneName(name, dir == "") || c.closed(treepath.Join(dir, name)) != nil {
			continue
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.entry(from, to, treepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) skip(path string) { c.skipped = append(c.skipped, path) }

// It returns only errors of the copy; a path of the original that fails is skipped.
func (c *copier) entry(from, to *os.Root, path string) error {
	info, err := from.Lstat(treepath.Base(path))
	switch {
	case nofollow.IsNotExist(err):
		return nil
	case err != nil:
		c.skip(path)
		return nil
	case info.IsDir():
		return c.directory(from, to, path, info)
	case c.leaves(path, info):
		return nil
	case info.Mode().IsRegular():
		return c.file(from, to, path)
	case info.Mode()&fs.ModeSymlink != 0:
		return c.symlink(from, to, path)
	}
	c.skip(path)
	return nil
}

func (c *copier) symlink(from, to *os.Root, path string) error {
	target, err := from.Readlink(treepath.Base(path))
	if nofollow.IsNotExist(err) {
		return nil
	}
	if err != nil {
		c.skip(path)
		return nil
	}
	return to.Symlink(target, treepath.Base(path))
}

// The permission bits are set last, because they may forbid writing.
func (c *copier) directory(from, to *os.Root, path string, info fs.FileInfo) error {
	name := treepath.Base(path)
	if os.SameFile(info, c.dst) {
		return fmt.Errorf("the copy would be inside the tree, at %s", treepath.Display(path))
	}
	if err := to.Mkdir(name, 0o700); err != nil {
		return err
	}
	left := len(c.left)
	if err := c.dirContents(from, to, path); err != nil {
		return err
	}
	if len(c.left) > left && to.Remove(name) == nil { // nothing in it belongs
		c.left = append(c.left[:left], path+"/")
		return nil
	}
	if err := to.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	return to.Chmod(name, info.Mode().Perm())
}

func (c *copier) dirContents(from, to *os.Root, path string) error {
	src, _, err := nofollow.OpenDir(from, treepath.Base(path), path)
	if err != nil {
		if !nofollow.IsNotExist(err) {
			c.skip(path)
		}
		return nil
	}
	defer src.Close()
	dst, _, err := nofollow.OpenDir(to, treepath.Base(path), path)
	if err != nil {
		return err
	}
	defer dst.Close()
	return c.entries(src, dst, path)
}

func (c *copier) file(from, to *os.Root, path string) error {
	src, info, err := nofollow.OpenRegular(from, path)
	if nofollow.IsNotExist(err) {
		return nil
	}
	if err != nil {
		c.skip(path)
		return nil
	}
	defer src.Close()
	dst, err := to.OpenFile(treepath.Base(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = c.contents(dst, src, info)
	if err == nil {
		err = dst.Chmod(info.Mode().Perm())
	}
	err = errors.Join(err, dst.Close())
	if isReadError(err) {
		c.skip(path)
		return to.Remove(treepath.Base(path))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", treepath.Display(path), err)
	}
	return to.Chtimes(treepath.Base(path), info.ModTime(), info.ModTime())
}

func (c *copier) contents(dst, src *os.File, info fs.FileInfo) error {
	if c.clone && info.Size() > 0 {
		err := cloneFile(dst, src)
		if err == nil {
			return nil
		}
		c.clone = !cloneUnsupported(err)
	}
	end := info.Size()
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

func isReadError(err error) bool {
	var at *fs.PathError
	return errors.As(err, &at) && at.Op == "read"
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
