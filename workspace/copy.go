package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// copyStep is how many bytes are copied between two looks at the context.
const copyStep = 64 << 20

// Copy copies the whole tree into dst, an existing empty directory: files that
// git ignores and .git at any depth included, .hone at the root and the
// temporary files of Apply and Restore left out. Permission bits, symlinks as
// they stand and the modification times of files and directories are copied,
// so that a build tool does not begin anew; owners, other names of a file
// (hard links), access lists and extended attributes are not, and dst itself
// keeps its own bits and times. An absolute symlink into the tree goes on
// pointing to the tree, not to the copy.
//
// Skipped are, by their paths, FIFOs, sockets and devices, and what cannot be
// read; of a directory that cannot be read an empty one is made. What vanishes
// meanwhile is left out. A file is copied up to the size that it has when it is
// opened, by sharing its blocks where the file system can. No symlink is
// followed. After an error, that of the context included, dst holds a part of
// the copy.
func (t *Tree) Copy(ctx context.Context, dst string) (skipped []string, err error) {
	root, err := os.OpenRoot(dst)
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", t.dir, err)
	}
	defer root.Close()
	c := &copier{ctx: ctx, clone: true}
	if c.dst, err = root.Stat("."); err == nil {
		err = c.tree(t.root, root)
	}
	if err != nil {
		return c.skipped, fmt.Errorf("copy %s: %w", t.dir, err)
	}
	return c.skipped, nil
}

// copier is one run of Copy.
type copier struct {
	ctx     context.Context
	dst     fs.FileInfo
	clone   bool // the file systems may be able to share blocks
	skipped []string
}

// tree copies from root to root.
func (c *copier) tree(from, to *os.Root) error {
	names, err := namesIn(to)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("the directory %s is not empty", to.Name())
	}
	info, err := from.Stat(".")
	if err == nil && os.SameFile(info, c.dst) {
		err = fmt.Errorf("the copy would lie in the tree")
	}
	if err != nil {
		return err
	}
	return c.entries(from, to, "")
}

// entries copies what a directory holds.
func (c *copier) entries(from, to *os.Root, dir string) error {
	names, err := namesIn(from)
	if err != nil && dir == "" {
		return err
	}
	if err != nil {
		c.skip(dir)
	}
	for _, name := range names {
		if strings.HasPrefix(name, tempPrefix) || dir == "" && canonical(name) == journalDir {
			continue
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.entry(from, to, join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// namesIn reads a directory, in order.
func namesIn(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (c *copier) skip(path string) { c.skipped = append(c.skipped, path) }

// entry copies one path. Its errors are those of the copy; what is wrong with
// the original is skipped.
func (c *copier) entry(from, to *os.Root, path string) error {
	info, err := from.Lstat(base(path))
	switch {
	case missing(err):
		return nil
	case err != nil:
		c.skip(path)
		return nil
	case info.IsDir():
		return c.directory(from, to, path, info)
	case info.Mode().IsRegular():
		return c.file(from, to, path)
	case info.Mode()&fs.ModeSymlink != 0:
		return c.symlink(from, to, path)
	}
	c.skip(path)
	return nil
}

func (c *copier) symlink(from, to *os.Root, path string) error {
	target, err := from.Readlink(base(path))
	if missing(err) {
		return nil
	}
	if err != nil {
		c.skip(path)
		return nil
	}
	return to.Symlink(target, base(path))
}

// directory copies a directory. Its bits come last: it may not be writable.
func (c *copier) directory(from, to *os.Root, path string, info fs.FileInfo) error {
	name := base(path)
	if os.SameFile(info, c.dst) {
		return fmt.Errorf("the copy would lie in the tree, at %s", display(path))
	}
	if err := to.Mkdir(name, 0o700); err != nil {
		return err
	}
	if err := c.below(from, to, path); err != nil {
		return err
	}
	if err := to.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	return to.Chmod(name, info.Mode().Perm())
}

// below copies what lies in a directory into the one that was made for it.
func (c *copier) below(from, to *os.Root, path string) error {
	src, _, err := openDir(from, base(path), path)
	if err != nil {
		if !missing(err) {
			c.skip(path)
		}
		return nil
	}
	defer src.Close()
	dst, _, err := openDir(to, base(path), path)
	if err != nil {
		return err
	}
	defer dst.Close()
	return c.entries(src, dst, path)
}

// file copies one regular file.
func (c *copier) file(from, to *os.Root, path string) error {
	src, info, err := openRegular(from, path)
	if missing(err) {
		return nil
	}
	if err != nil {
		c.skip(path)
		return nil
	}
	defer src.Close()
	dst, err := to.OpenFile(base(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = c.contents(dst, src, info)
	if err == nil {
		err = dst.Chmod(info.Mode().Perm())
	}
	err = errors.Join(err, dst.Close())
	if isRead(err) {
		c.skip(path)
		return to.Remove(base(path))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", display(path), err)
	}
	return to.Chtimes(base(path), info.ModTime(), info.ModTime())
}

// contents fills the copy of a file.
func (c *copier) contents(dst, src *os.File, info fs.FileInfo) error {
	if c.clone && info.Size() > 0 {
		err := cloneFile(dst, src)
		if err == nil {
			return nil
		}
		c.clone = !neverClones(err)
	}
	for left := info.Size(); left > 0; {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(dst, src, min(left, copyStep))
		if errors.Is(err, io.EOF) {
			return nil // it has become shorter
		}
		if err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// isRead reports whether an error is one of reading.
func isRead(err error) bool {
	var at *fs.PathError
	return errors.As(err, &at) && at.Op == "read"
}
