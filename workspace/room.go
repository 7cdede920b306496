package workspace

import (
	"io/fs"

	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// roomFor returns the deleted paths that make room for a new file at a path: the file in the
// place of one of its directories, or all files of the directory in its place. ok is false if
// they do not make room, or if nothing is in the way.
func (t *Tree) roomFor(path string, deleted map[string]bool) (paths []string, ok bool) {
	c := nofollow.Cursor{Root: t.root}
	defer c.Close()
	for dir := treepath.Parent(path); dir != ""; dir = treepath.Parent(dir) {
		info, err := c.Lstat(dir)
		if t.note(err); err == nil && info.Mode.IsRegular() && deleted[dir] {
			return []string{dir}, true
		}
	}
	info, err := c.Lstat(path)
	if t.note(err); err != nil || !info.Mode.IsDir() {
		return nil, false
	}
	err = c.Walk(path, func(p string, info nofollow.Info, err error) error {
		switch {
		case err != nil || info.Mode.IsDir():
			return err
		case !deleted[p] || treepath.Hidden(p):
			return fs.ErrExist
		}
		paths = append(paths, p)
		return nil
	})
	t.note(err)
	return paths, err == nil
}

// inPlaceOf reports whether a directory is in the place of a file, or a file in that of one of
// its directories.
func (t *Tree) inPlaceOf(path string) bool {
	c := nofollow.Cursor{Root: t.root}
	defer c.Close()
	for dir := treepath.Parent(path); dir != ""; dir = treepath.Parent(dir) {
		info, err := c.Lstat(dir)
		if t.note(err); err == nil {
			return info.Mode.IsRegular()
		}
	}
	info, err := c.Lstat(path)
	t.note(err)
	return err == nil && info.Mode.IsDir()
}
