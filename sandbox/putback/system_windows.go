package putback

import (
	"io/fs"
	"os"
	"path/filepath"
)

// openAtOnce means nothing: there are no FIFOs among files.
const openAtOnce = 0

// move renames the file at a path.
func move(root *os.Root, path, to string) error {
	return os.Rename(filepath.Join(root.Name(), path), to)
}

// syncDir does nothing: Windows has no such call.
func syncDir(string) error { return nil }

// Only walls have placeholders, and there are none on this system.

func lockWait(*os.File) error   { return nil }
func lockShared(*os.File) error { return nil }
func alone(*os.File) bool       { return true }

// stampOf returns the stamp of a file.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{Modified: info.ModTime().UnixNano()}
	if info.Mode().IsRegular() {
		s.Size = info.Size()
	}
	return s
}
