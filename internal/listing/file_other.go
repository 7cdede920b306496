//go:build !unix

package listing

import (
	"os"
	"path/filepath"
	"time"

	"hone/workspace/secret"
	"hone/workspace/treepath"
)

// A link counts as the file that it leads to. at is the path from the root. The inode and its change time are not known on this
// system.
func stateIn(dir *os.File, at string) (s secret.FileState, ok bool) {
	info, err := os.Stat(filepath.Join(dir.Name(), treepath.Base(at)))
	if err != nil || !info.Mode().IsRegular() {
		return s, false
	}
	return secret.FileState{Path: at, Size: info.Size(), Modified: info.ModTime().UnixNano()}, true
}

func openPlain(name string) (*os.File, error) { return os.Open(name) }

// changeTime returns the zero time: it is not known on this system.
func changeTime(string) time.Time { return time.Time{} }
