//go:build !linux

package putback

import (
	"io/fs"
	"os"
	"path/filepath"
)

func stampOf(info fs.FileInfo) stamp {
	return stamp{Size: info.Size(), Changed: info.ModTime().UnixNano()}
}

func rename(root *os.Root, path, to string) error {
	return os.Rename(filepath.Join(root.Name(), path), to)
}

// Only walls have placeholders, and there are none on this system.
func creatable(string) bool { return false }
