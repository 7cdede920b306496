package runs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hone/journal"
	"hone/workspace"
)

// ShutOutputs closes the files of a tree into which hone writes its output: what is written
// there is neither a change of the run nor anybody else's (ruling G24).
func ShutOutputs(tree *workspace.Tree, outputs []string) {
	tree.Shut("hone writes its own output there", outputs...)
}

// OutputsIn returns which of some open files are regular files below a directory: their
// paths, with slashes.
func OutputsIn(root string, files []*os.File) (paths []string) {
	for _, f := range files {
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if rel, ok := pathIn(root, f.Name(), info); ok && !slices.Contains(paths, rel) {
			paths = append(paths, rel)
		}
	}
	return paths
}

// name leads to the file on systems where /dev/stdout is a link to it; elsewhere the directory is searched.
func pathIn(root, name string, info fs.FileInfo) (rel string, ok bool) {
	real, err := filepath.EvalSymlinks(name)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if found, statErr := os.Stat(real); err == nil && statErr == nil && !strings.HasPrefix(real, "/dev/") && os.SameFile(found, info) {
		rel, err := filepath.Rel(root, real)
		return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
	}
	// Directories are searched after those above them: an output is rarely deep.
	const most = 200_000
	seen := 0
	for dirs := []string{"."}; len(dirs) > 0 && seen < most; dirs = dirs[1:] {
		entries, _ := os.ReadDir(filepath.Join(root, filepath.FromSlash(dirs[0])))
		for _, e := range entries {
			at := path.Join(dirs[0], e.Name())
			seen++
			if e.IsDir() && e.Name() != ".git" && e.Name() != journal.HomeName {
				dirs = append(dirs, at)
			} else if now, err := e.Info(); err == nil && e.Type().IsRegular() && os.SameFile(now, info) {
				return at, true
			}
		}
	}
	return "", false
}
