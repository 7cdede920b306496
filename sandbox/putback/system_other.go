//go:build !linux

package putback

import "io/fs"

func stampOf(info fs.FileInfo) stamp {
	return stamp{Size: info.Size(), Changed: info.ModTime().UnixNano()}
}
