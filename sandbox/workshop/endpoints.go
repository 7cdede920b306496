package workshop

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxSearched is how many names of a workspace are searched for sockets and FIFOs.
const maxSearched = 100_000

// endpoints returns the sockets and FIFOs in a workspace, through which commands
// could talk to programs outside the walls. It searches outer directories first, and
// follows no symlink.
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

// gitStores returns the directories at the top of a workspace that contain only
// objects, and many of them.
func gitStores(root string) []string {
	return []string{filepath.Join(root, ".hone"), filepath.Join(root, ".git", "objects")}
}
