//go:build unix

package transient

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// TestIs: what a file is does not pass; everything else of the system's does, whatever wraps it.
func TestIs(t *testing.T) {
	wrap := func(err error) error {
		return errors.Join(context.Canceled, fs.ErrNotExist, fmt.Errorf("read: %w", &fs.PathError{Op: "open", Path: "a", Err: err}))
	}
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC, syscall.EAGAIN, syscall.EDQUOT, 4095} {
		if !Is(errno) || !Is(wrap(errno)) {
			t.Errorf("%v does not pass", errno)
		}
	}
	for _, err := range []error{nil, syscall.ENOENT, syscall.EACCES, syscall.EPERM, syscall.ELOOP, syscall.ENOTDIR, syscall.EISDIR, syscall.EBUSY, syscall.ENOEXEC, context.Canceled} {
		if Is(err) || Is(wrap(err)) {
			t.Errorf("%v passes", err)
		}
	}
}
