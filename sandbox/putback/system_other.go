//go:build !linux

package putback

import (
	"errors"
	"io/fs"
	"os"
)

// stampOf returns the stamp of a file.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{Modified: info.ModTime().UnixNano()}
	if info.Mode().IsRegular() {
		s.Size = info.Size()
	}
	return s
}

// move fails: files are copied.
func move(*os.Root, string, string) error { return errors.ErrUnsupported }

// Only walls have placeholders, and there are none on this system.

func lockWait(*os.File) error   { return nil }
func lockShared(*os.File) error { return nil }
func alone(*os.File) bool       { return true }
