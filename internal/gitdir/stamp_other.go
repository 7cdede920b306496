//go:build !unix

package gitdir

import "os"

// Without a stamp, every search reads every directory.
func stampOf(path string) (s stamp, isDir bool, err error) {
	info, err := os.Lstat(path)
	return s, err == nil && info.IsDir(), err
}
