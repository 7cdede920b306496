// Package nofollow opens files and directories below a root without following
// symlinks, even while another process replaces directories with symlinks.
//
// A [Cursor] reads and changes what is below a root. All paths are relative to the root and
// cleaned.
package nofollow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"hone/internal/transient"
	"hone/workspace/treepath"
)

func requireRegular(path string, mode fs.FileMode) error {
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return treepath.Refuse(path, "it is a directory")
	case mode&fs.ModeSymlink != 0:
		return treepath.Refuse(path, "it is a symlink, which is not followed")
	}
	return treepath.Refuse(path, "it is not a regular file")
}

// ReadError returns the error with the path as the tree knows it.
func ReadError(path string, err error) error {
	var refused *treepath.RefusedError
	if errors.As(err, &refused) {
		return err
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("read %s: %w", treepath.Display(path), err)
}

// Fact returns what an error says about the file at a path, without the path, which the
// reader has. An error that may pass says nothing: it is returned, with the path.
func Fact(path string, err error) (reason string, passing error) {
	var refused *treepath.RefusedError
	var code syscall.Errno
	switch {
	case transient.Is(err):
		return "", ReadError(path, err)
	case errors.As(err, &refused):
		return refused.Reason, nil
	case errors.As(err, &code):
		return code.Error(), nil
	}
	return WithoutPath(err).Error(), nil
}

// Denial returns why the system does not let this user change a file, as a clause; empty if the
// error says something else. It does not pass.
func Denial(err error) string {
	switch code := (syscall.Errno)(0); {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "the user may not write there"
	case errors.Is(err, syscall.EBUSY): // what can be changed is written in place, see Cursor.Place
		return "it is mounted from outside, so it can be changed but not deleted"
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EILSEQ), errors.Is(err, syscall.EFBIG):
		errors.As(err, &code)
		return "the file system cannot store it: " + code.Error()
	}
	return ""
}

// WithoutPath strips from an error the path given to the system, which is
// relative to a directory that the reader does not know.
func WithoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

// UntilDone returns a reader that reads from r until the context is done.
func UntilDone(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

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
