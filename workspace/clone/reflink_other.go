//go:build !linux

package clone

import (
	"errors"
	"os"
)

// cloneFile returns an error: this system cannot share blocks.
func cloneFile(*os.File, *os.File) error { return errors.ErrUnsupported }

// nextData returns the rest of a file: this system is not asked for holes.
func nextData(_ *os.File, at, end int64) (from, to int64, err error) { return at, end, nil }

// cloneUnsupported reports whether cloning will fail for every other file too.
func cloneUnsupported(error) bool { return true }
