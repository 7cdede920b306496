package wall

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// cover makes the walls protect what must not exist: while a command runs there
// are placeholders, which the walls protect like other files. The entries change
// accordingly. It returns the placeholders by their path, and these by the outermost
// writable directory. It omits what this user cannot create, because commands cannot
// either.
func (w *Walls) cover() map[string]map[string]sandbox.Placeholder {
	byRoot := map[string]map[string]sandbox.Placeholder{}
	if w.spec.Policy.Records == "" || !w.spec.Policy.Wall.Namespaces() {
		return byRoot
	}
	for i, e := range w.spec.Entries {
		if e.Placeholder == nil {
			continue
		}
		root := writableAround(w.spec.Entries, e.Path)
		if root == "" || e.Absent && !creatable(e.Path) {
			continue
		}
		if e.Absent {
			w.spec.Entries[i].Absent, w.spec.Entries[i].Dir = false, e.Placeholder.Dir
			w.filled = append(w.filled, e.Path)
		}
		if byRoot[root] == nil {
			byRoot[root] = map[string]sandbox.Placeholder{}
		}
		byRoot[root][e.Path] = *e.Placeholder
	}
	return byRoot
}

// It is empty if the path lies in none, or if something between them is not writable.
func writableAround(entries []sandbox.Entry, path string) (root string) {
	inner := sandbox.Entry{}
	for _, e := range entries { // outer ones first
		if e.Absent || e.Link != "" || e.Path == path || !sandbox.Within(e.Path, path) {
			continue
		}
		if inner = e; root == "" && e.Access == sandbox.AccessWrite {
			root = e.Path
		}
	}
	if inner.Access != sandbox.AccessWrite {
		return ""
	}
	return root
}

func creatable(path string) bool {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
		if !errors.Is(err, unix.ENOENT) {
			return err == nil
		}
	}
}
