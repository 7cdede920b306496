//go:build !unix

package listing

import (
	"os"
	"path/filepath"

	"hone/workspace/secret"
	"hone/workspace/treepath"
)

// stateIn returns the state of a regular file in an open directory, or of the one that
// a link there leads to; ok is false if there is none. at is its path from the root.
// The inode and its change time are not known on this system.
func stateIn(dir *os.File, at string) (s secret.FileState, ok bool) {
	info, err := os.Stat(filepath.Join(dir.Name(), treepath.Base(at)))
	if err != nil || !info.Mode().IsRegular() {
		return s, false
	}
	return secret.FileState{Path: at, Size: info.Size(), Modified: info.ModTime().UnixNano()}, true
}

// openPlain opens a file for reading that is probably a regular one.
func openPlain(name string) (*os.File, error) { return os.Open(name) }
