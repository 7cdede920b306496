//go:build !linux

package clone

import (
	"errors"
	"os"
)

// cloneFile returns an error: this system cannot share blocks.
func cloneFile(*os.File, *os.File) error { return errors.ErrUnsupported }

// cloneUnsupported reports whether cloning will fail for every other file too.
func cloneUnsupported(error) bool { return true }
