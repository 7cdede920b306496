package workspace

import (
	"errors"
	"io/fs"
	"maps"
	"slices"

	"hone/internal/transient"
	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

func (a *application) inspectAll() error {
	for _, it := range a.items {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		if err := a.inspect(it); err != nil {
			return err
		}
	}
	var conflicts []string
	for _, it := range a.items {
		ok, err := a.decide(it)
		if err != nil {
			return err
		}
		if !ok {
			conflicts = append(conflicts, it.Path)
		}
	}
	return a.conflict(conflicts)
}

func (a *application) inspect(it *item) error {
	err := a.cur.Enter(treepath.Parent(it.Path))
	it.base = a.cur.Path()
	switch _, refused := errors.AsType[*treepath.RefusedError](err); {
	case refused:
		it.blocked = below(it.base, it.Path)
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return it.failed("look for", err)
	}
	info, err := a.cur.Lstat(it.Path)
	if nofollow.IsNotExist(err) {
		return nil
	}
	if err == nil {
		it.info = &info
		err = a.inspectPresent(it)
	}
	if err != nil {
		return nofollow.ReadError(it.Path, err)
	}
	if it.Edit && it.found.Kind == Regular { // only the contents count, and the file keeps its permission bits
		if it.Before.Kind == Regular {
			it.Before.Mode = it.found.Mode
		}
		if it.After.Kind == Regular {
			it.After.Mode = it.found.Mode
		}
	}
	return nil
}

func (a *application) inspectPresent(it *item) (err error) {
	info := it.info
	switch {
	case info.Mode.IsDir():
		it.clear = []clearing{{it.Path, info.Mode.Perm()}}
		return nil
	case info.Mode&fs.ModeSymlink != 0:
		it.found.Kind = Symlink
		it.found.Target, err = a.cur.Readlink(it.Path)
		return err
	case !info.Mode.IsRegular():
		it.found.Kind = Other
		return nil
	}
	it.found = Entry{Path: it.Path, Kind: Regular, Mode: info.Mode.Perm(), Size: info.Size, Digest: a.tree.Unread(info.Size, info.Modified)}
	if it.found.Digest == "" {
		err = a.read(&it.found)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil // without a digest
	}
	return err
}

func (a *application) decide(it *item) (ok bool, err error) {
	switch {
	case it.After.Kind == Other || it.found.Kind == Other && (it.Before.Kind != Other || it.Before.Note != ""):
		return false, nil
	case sameForApply(it.found, it.After): // includes a directory where nothing is wanted
		it.done, it.clear = true, nil
		return true, nil
	case !sameForApply(it.found, it.Before):
		return false, nil
	case it.blocked != "":
		above := a.byPath[it.blocked]
		return above != nil && above.removes(), nil
	}
	return a.canClear(it)
}

// canClear reports whether the directories in the place of a path contain only paths to
// remove and other such directories, which it adds.
func (a *application) canClear(it *item) (bool, error) {
	for i := 0; i < len(it.clear); i++ {
		dir := it.clear[i].path
		names, err := a.cur.Names(dir)
		if err != nil {
			return false, nofollow.ReadError(dir, err)
		}
		for _, name := range names {
			path := treepath.Join(dir, name)
			info, err := a.cur.Lstat(path)
			if err != nil {
				return false, nofollow.ReadError(path, err)
			}
			if info.Mode.IsDir() && !treepath.Hidden(path) {
				it.clear = append(it.clear, clearing{path, info.Mode.Perm()})
			} else if in := a.byPath[path]; in == nil || !in.removes() {
				return false, nil
			}
		}
	}
	return true, nil
}

// Directories and files may have changed while the temporary files were being written.
func (a *application) recheck() error {
	fresh := nofollow.Cursor{Root: a.tree.root, Force: a.cur.Force} // that of the application may be in directories that were moved
	defer fresh.Close()
	var conflicts []string
	for _, it := range a.items {
		if it.done {
			continue
		}
		same, err := it.unchanged(&fresh)
		if err == nil && same && it.staged {
			_, err = fresh.Lstat(it.temp())
			same = err == nil
		}
		if err != nil && !nofollow.IsAbsent(err) {
			return nofollow.ReadError(it.Path, err)
		}
		if !same {
			conflicts = append(conflicts, it.Path)
		}
	}
	return a.conflict(conflicts)
}

// unchanged reports whether a path is as it was found. An error may pass.
func (it *item) unchanged(cur *nofollow.Cursor) (bool, error) {
	info, err := cur.Lstat(it.Path)
	switch _, refused := errors.AsType[*treepath.RefusedError](err); {
	case refused && it.blocked != "":
		return true, nil // what blocks it is an item too
	case nofollow.IsNotExist(err):
		return it.info == nil, nil
	case transient.Is(err):
		return false, nofollow.ReadError(it.Path, err)
	}
	return err == nil && it.info != nil && info.IsSame(*it.info), nil
}

// conflict returns nil if there are no paths.
func (a *application) conflict(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	return &ConflictError{Paths: paths, Made: a.madeBefore()}
}

func (a *application) madeBefore() (made []Delta) {
	for _, it := range a.items {
		if it.done && !sameForApply(it.Before, it.After) {
			made = append(made, it.Delta)
		}
	}
	return made
}

// asFact completes what an error says about the files. It is a conflict if another process put a
// link or a file in the place of a directory.
func (a *application) asFact(err error) error {
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		denied.Made = a.madeBefore()
	}
	refused, ok := errors.AsType[*treepath.RefusedError](err)
	if !ok {
		return err
	}
	var paths []string
	for _, it := range a.items {
		if treepath.Contains(refused.Path, it.Path) {
			paths = append(paths, it.Path)
		}
	}
	if len(paths) == 0 {
		return err
	}
	return a.conflict(paths)
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
