package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// place removes and renames. From here on an error is put right, not left.
func (r *restorer) place() error {
	for _, it := range r.items {
		if it.removal() && !it.done {
			if err := r.remove(it); err != nil {
				return err
			}
		}
	}
	for _, it := range r.items {
		for _, c := range slices.Backward(it.way) {
			if err := r.clear(c); err != nil {
				return err
			}
		}
		if len(it.way) > 0 {
			it.info = nil
		}
	}
	for _, it := range r.items {
		if it.done || it.placed {
			continue
		}
		if err := r.put(it); err != nil {
			return err
		}
	}
	return r.step("placed")
}

// changed remembers how to take back what was just changed.
func (r *restorer) changed(path string, run func() error) {
	r.back = append(r.back, reversal{path, run})
}

// ready returns the directory of a path that still is as it was found.
func (r *restorer) ready(step string, it *restored) (*pin, error) {
	if err := r.step("%s %s", step, it.Path); err != nil {
		return nil, err
	}
	if !r.unchanged(it) {
		return nil, &ConflictError{Paths: []string{it.Path}}
	}
	dir, err := r.pins.at(parentOf(it.Path), false)
	if err == nil {
		dir.changed = true
	}
	return dir, err
}

// remove removes one path.
func (r *restorer) remove(it *restored) error {
	dir, err := r.ready("remove", it)
	if err != nil {
		return err
	}
	if err := dir.dir.Remove(base(it.Path)); err != nil {
		return fmt.Errorf("remove %s: %w", display(it.Path), withoutPath(err))
	}
	it.placed = true
	r.changed(it.Path, func() error { return r.revert(it) })
	return nil
}

// clear removes a directory that stands where a file shall be.
func (r *restorer) clear(c clearing) error {
	if err := r.step("clear %s", c.path); err != nil {
		return err
	}
	if err := r.removeDir(c.path); err != nil {
		return err
	}
	r.changed(c.path, func() error { return r.remake(c) })
	return nil
}

// removeDir removes a directory, which has to be empty.
func (r *restorer) removeDir(path string) error {
	dir, err := r.pins.at(path, false)
	if err == nil {
		err = r.pins.removeEmpty(dir)
	}
	if err == nil && r.pins.held[path] != nil {
		err = errors.New("it is not empty any more")
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", display(path), withoutPath(err))
	}
	return nil
}

// remake makes a directory again.
func (r *restorer) remake(c clearing) error {
	if err := r.step("restore %s", c.path); err != nil {
		return err
	}
	dir, err := r.pins.at(c.path, true)
	if err != nil {
		return err
	}
	dir.made = false // it shall stay
	f, err := dir.dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().Perm() == c.mode {
		return err
	}
	return f.Chmod(c.mode)
}

// put brings what shall be there to its place.
func (r *restorer) put(it *restored) error {
	if it.top != "" {
		return r.graft(it.top)
	}
	dir, err := r.ready("place", it)
	if err != nil {
		return err
	}
	if it.bitsOnly() {
		err = r.setMode(dir, it, it.Want.Mode.Perm())
	} else if err = dir.dir.Rename(it.temporary(), base(it.Path)); err != nil {
		err = fmt.Errorf("replace %s: %w", display(it.Path), withoutPath(err))
	}
	if err != nil {
		return err
	}
	it.placed = true
	r.changed(it.Path, func() error { return r.revert(it) })
	return nil
}

// graft renames a whole directory into place, which nothing stands at any more.
func (r *restorer) graft(top string) error {
	items := r.below(top)
	from := graftOf(top)
	if err := r.seal(from, items); err != nil {
		return err
	}
	if err := r.step("place %s", top); err != nil {
		return err
	}
	dir, err := r.pins.at(parentOf(top), false)
	if err != nil {
		return err
	}
	if _, err := dir.dir.Lstat(base(top)); !missing(err) {
		return &ConflictError{Paths: []string{top}}
	}
	dir.changed = true
	if err := dir.dir.Rename(base(from), base(top)); err != nil {
		return fmt.Errorf("make directory %s: %w", display(top), withoutPath(err))
	}
	made := dirsOf(items, func(it *restored) string { return it.Path }, parentOf(top))
	for _, path := range made {
		r.changed(path, func() error { return r.removeDir(path) })
	}
	for _, it := range items {
		it.placed = true
		r.changed(it.Path, func() error { return r.revert(it) })
	}
	return nil
}

// below returns what shall be below a directory that is missing.
func (r *restorer) below(top string) []*restored {
	var items []*restored
	for _, it := range r.items {
		if it.top == top && it.staged {
			items = append(items, it)
		}
	}
	return items
}

// seal makes the names in a directory of temporary files durable and closes
// it, because some systems do not rename an open one.
func (r *restorer) seal(from string, items []*restored) error {
	for _, path := range slices.Backward(dirsOf(items, (*restored).stage, parentOf(from))) {
		dir, err := r.pins.at(path, false)
		if err == nil {
			err = r.pins.inPlace(dir)
		}
		if err == nil {
			err = syncDir(dir.dir)
		}
		if err != nil {
			return fmt.Errorf("sync %s: %w", display(path), withoutPath(err))
		}
		r.pins.forget(path)
	}
	return nil
}

// dirsOf returns the directories of paths, parents first, down from but without
// the directory end.
func dirsOf(items []*restored, path func(*restored) string, end string) []string {
	seen := map[string]bool{}
	for _, it := range items {
		for dir := parentOf(path(it)); dir != end && !seen[dir]; dir = parentOf(dir) {
			seen[dir] = true
		}
	}
	dirs := make([]string, 0, len(seen))
	for dir := range seen {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return dirs
}

// sweep removes the directories that removals left empty. One that this
// process may not remove stays.
func (r *restorer) sweep() error {
	gone := slices.DeleteFunc(slices.Clone(r.items), func(it *restored) bool { return !it.removal() })
	for _, path := range slices.Backward(dirsOf(gone, func(it *restored) string { return it.Path }, "")) {
		dir, err := r.pins.at(path, false)
		if absent(err) {
			continue
		}
		if err == nil && !dir.empty() {
			continue
		}
		if err == nil {
			err = r.step("sweep %s", path)
		}
		if err == nil {
			err = r.pins.removeEmpty(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("remove %s: %w", display(path), withoutPath(err))
		}
	}
	return nil
}

// putBack restores what was changed before an error, in reverse order, and
// returns the error with what could not be restored.
func (r *restorer) putBack(cause error) error {
	partial := PartialError{Err: cause}
	// Before anything else, because on a full disk this makes room.
	left := r.takeBack()
	for _, b := range slices.Backward(r.back) {
		if err := b.run(); err != nil {
			partial.Paths = append(partial.Paths, b.path)
			partial.Why = errors.Join(partial.Why, err)
		}
	}
	left = errors.Join(left, r.pins.removeMade(), r.pins.sync(r.step))
	if len(partial.Paths) > 0 {
		slices.SortFunc(partial.Paths, strings.Compare)
		return errors.Join(&partial, left)
	}
	return errors.Join(cause, left)
}

// revert gives one path back what was found there, unless somebody has changed
// it again.
func (r *restorer) revert(it *restored) error {
	if err := r.step("restore %s", it.Path); err != nil {
		return err
	}
	ctx := context.Background() // what was begun is ended
	now := &restored{Restoration: it.Restoration}
	if err := r.lookAt(ctx, now); err != nil {
		return err
	}
	if !now.found.is(it.Want) || len(now.way) > 0 {
		return fmt.Errorf("%s was changed by somebody else", display(it.Path))
	}
	dir, err := r.pins.at(parentOf(it.Path), false)
	if err != nil {
		return err
	}
	dir.changed = true
	switch {
	case it.found.Kind == "":
		return dir.dir.Remove(base(it.Path))
	case it.bitsOnly():
		return r.setMode(dir, now, it.found.Mode)
	case it.found.Kind == Regular && it.found.Digest == "":
		return fmt.Errorf("what %s held could not be read", display(it.Path))
	}
	if err := r.write(ctx, it, join(dir.path, it.temporary()), it.found); err != nil {
		return errors.Join(err, dir.removeTemp(it.temporary(), it.Path))
	}
	if dir, err = r.pins.at(dir.path, false); err != nil {
		return err
	}
	return dir.dir.Rename(it.temporary(), base(it.Path))
}
