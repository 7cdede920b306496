//go:build !unix

package sandbox

import (
	"errors"
	"io/fs"
	"os"
)

// FileOwner returns false: files belong to no numbers.
func FileOwner(fs.FileInfo) (uid int, ok bool) { return 0, false }

// Lock returns an error that wraps [errors.ErrUnsupported]: there are no walls here whose traces other processes must know.
func Lock(string) (*os.File, error) { return nil, errors.ErrUnsupported }
