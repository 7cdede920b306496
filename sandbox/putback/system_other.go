//go:build !linux

package putback

import (
	"io/fs"
	"os"
)

func stampOf(info fs.FileInfo) stamp {
	return stamp{Size: info.Size(), Changed: info.ModTime().UnixNano()}
}

// Only walls have placeholders, and there are none on this system.

func creatable(string) bool     { return false }
func lockWait(*os.File) error   { return nil }
func lockShared(*os.File) error { return nil }
func isAlone(*os.File) bool     { return true }
