package attempts

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// emptyDirs returns the directories in a copy of a tree that contain no file and that the tree does not have, without those inside
// one of them; sorted. They are no part of a change. What cannot be read is not empty.
func emptyDirs(copied, tree string) (names []string) {
	full := map[string]bool{}
	var dirs []string
	_ = filepath.WalkDir(copied, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(copied, path)
		if strings.EqualFold(d.Name(), ".git") || rel == ".hone" {
			full[filepath.Dir(rel)] = true
			return filepath.SkipDir
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, rel)
		} else {
			full[filepath.Dir(rel)] = true
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) { // inner ones first
		if full[dir] {
			full[filepath.Dir(dir)] = true
		}
	}
	for _, dir := range dirs {
		if _, err := os.Lstat(filepath.Join(tree, dir)); full[dir] || err == nil {
			continue
		}
		if n := len(names); n == 0 || !strings.HasPrefix(dir, names[n-1]+string(filepath.Separator)) {
			names = append(names, dir)
		}
	}
	slices.Sort(names)
	return names
}
