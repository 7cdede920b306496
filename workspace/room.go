package workspace

import (
	"errors"
	"fmt"
	"io/fs"

	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// A change may put a directory in the place of a file that it deletes, or a file in the place
// of a directory whose files it all deletes. Apply then makes these deletions before it writes
// temporary files, and after an error writes the files back from memory, as others.

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
	err = fs.WalkDir(t.root.FS(), path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
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

// The caller must roll back after an error.
func (a *application) makeRoom() error {
	deleted := map[string]bool{}
	for _, p := range a.edits {
		deleted[p.path] = p.remove
	}
	early := map[string]bool{}
	var folders []string
	for _, p := range a.edits {
		if p.remove || p.done {
			continue
		}
		paths, ok := a.tree.roomFor(p.path, deleted)
		for _, path := range paths {
			early[path] = true
		}
		if info, err := a.tree.root.Lstat(p.path); ok && err == nil && info.IsDir() {
			folders = append(folders, p.path)
		}
	}
	for _, p := range a.edits {
		if early[p.path] && !p.done {
			p.early = true
			if err := a.placeOne(p); err != nil {
				return err
			}
		}
	}
	for _, path := range folders {
		if err := a.clearDir(path); err != nil {
			return fmt.Errorf("remove directory %s: %w", treepath.Display(path), nofollow.WithoutPath(err))
		}
	}
	return nil
}

// clearDir removes a directory that contains only directories.
func (a *application) clearDir(path string) error {
	dir, err := a.pins.At(path, false)
	if err != nil {
		return err
	}
	names, err := nofollow.DirNames(dir.Root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := a.clearDir(treepath.Join(path, name)); err != nil {
			return err
		}
	}
	if dir, err = a.pins.At(path, false); err == nil {
		err = a.pins.RemoveEmpty(dir)
	}
	if err == nil && a.pins.IsPinned(path) {
		err = errors.New("it is no longer empty")
	}
	return err
}
