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
