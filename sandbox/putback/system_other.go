//go:build !linux

package putback

import (
	"io/fs"
)

// stampOf returns the stamp of a file.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{Modified: info.ModTime().UnixNano()}
	if info.Mode().IsRegular() {
		s.Size = info.Size()
	}
	return s
}
