//go:build !linux

package journal

import (
	"errors"
	"os"
)

func preallocate(*os.File, int64) error { return errors.ErrUnsupported }
