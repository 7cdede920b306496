//go:build !linux

package putback

import "io/fs"

// stampOf returns the stamp of a file.
func stampOf(info fs.FileInfo) stamp {
	return stamp{Size: info.Size(), Changed: info.ModTime().UnixNano()}
}
