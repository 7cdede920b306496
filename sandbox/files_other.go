//go:build !unix

package sandbox

import (
	"errors"
	"io/fs"
)

// FileOwner returns false: files belong to no numbers.
func FileOwner(fs.FileInfo) (uid int, ok bool) { return 0, false }

// Lock returns an error that wraps [errors.ErrUnsupported]: without walls there is nothing to lock.
func Lock(string) (unlock func(), err error) { return nil, errors.ErrUnsupported }
