package workshop

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxSearched is how many names of a workspace are searched for sockets and FIFOs.
const maxSearched = 100_000

// Commands could talk to programs outside the walls through them. Outer directories come first, and no symlink is followed.
func endpoints(root string) []string {
	var found []string
	dirs := []string{root}
	for seen := 0; len(dirs) > 0 && seen < maxSearched; {
		dir := dirs[0]
		dirs = dirs[1:]
		entries, _ := os.ReadDir(dir) // commands cannot read what the user cannot read
		seen += len(entries)
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch {
			case e.Type()&(fs.ModeSocket|fs.ModeNamedPipe) != 0:
				found = append(found, path)
			case e.IsDir() && !slices.Contains(gitStores(root), path):
				dirs = append(dirs, path)
			}
		}
	}
	return found
}

// They contain only objects, and many of them.
func gitStores(root string) []string {
	return []string{filepath.Join(root, ".hone"), filepath.Join(root, ".git", "objects")}
}
