//go:build !linux

package clone

import (
	"errors"
	"os"
)

func cloneFile(*os.File, *os.File) error { return errors.ErrUnsupported }

// nextData returns the rest of a file: this system is not asked for holes.
func nextData(_ *os.File, at, end int64) (from, to int64, err error) { return at, end, nil }

func cloneUnsupported(error) bool { return true }
