package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"hone/harness/internal/state"
	"hone/workspace/secret"
)

// maxCleanAge is how long the list of a workspace's files without secrets is kept
// after it was last written.
const maxCleanAge = 60 * 24 * time.Hour

// recallClean tells a guard which files of a workspace contained no secret when an
// earlier process looked, so that it does not read them again. save stores what the
// guard knows then. Without a state folder nothing is recalled or saved. Commands
// behind walls can neither read nor write the list.
func recallClean(g *secret.Guard, root string) (save func()) {
	file, key, err := cleanList(root)
	if err != nil {
		return func() {}
	}
	if list, err := os.ReadFile(file); err == nil {
		g.AddClean(key, list)
	}
	return func() {
		list := g.CleanList(key)
		if list == nil || state.WriteCache(file, list) != nil {
			return
		}
		entries, _ := os.ReadDir(filepath.Dir(file))
		for _, e := range entries {
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > maxCleanAge {
				_ = os.Remove(filepath.Join(filepath.Dir(file), e.Name())) // the next one tries again
			}
		}
	}
}

// Another program may judge otherwise, so that it has another key.
func cleanList(root string) (file string, key []byte, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	info, err := os.Stat(self)
	if err != nil {
		return "", nil, err
	}
	if key, err = state.Key(fmt.Sprintf("files without secrets, %d, %d", info.Size(), info.ModTime().UnixNano())); err != nil {
		return "", nil, err
	}
	dir, err := state.Make("clean")
	name := sha256.Sum256([]byte(root))
	return filepath.Join(dir, hex.EncodeToString(name[:16])), key, err
}
