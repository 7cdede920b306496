//go:build !linux

package journal

import (
	"errors"
	"os"
)

// SignalHolder returns [errors.ErrUnsupported]: this system does not show which process
// holds a lock.
func (h *Home) SignalHolder(os.Signal) error { return errors.ErrUnsupported }

func preallocate(*os.File, int64) error { return errors.ErrUnsupported }
