//go:build !linux

package workspace

import (
	"errors"
	"os"
)

// cloneFile does nothing: blocks are not shared here.
func cloneFile(*os.File, *os.File) error { return errors.ErrUnsupported }

// neverClones reports whether the next file would fare no better.
func neverClones(error) bool { return true }
