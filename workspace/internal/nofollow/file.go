package nofollow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"hone/internal/transient"
	"hone/workspace/treepath"
)

// OpenRegular opens the regular file at path in its parent directory for
// reading. It opens nothing else, even if something replaces the file at the
// same time.
func OpenRegular(dir *os.Root, path string) (*os.File, fs.FileInfo, error) {
	name := treepath.Base(path)
	seen, err := dir.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if err := requireRegular(path, seen.Mode()); err != nil {
		return nil, nil, err
	}
	// Without blocking, because a FIFO may have replaced the file.
	f, err := dir.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(seen, opened) {
		err = treepath.Refuse(path, "it was replaced while being opened")
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, opened, nil
}

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

// DirNames returns the names in a directory, sorted.
func DirNames(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
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
