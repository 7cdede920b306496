package restore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"hone/internal/transient"
	"hone/workspace"
	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// The caller must roll back after an error.
func (r *restorer) place() error {
	for _, it := range r.items {
		if it.isRemoval() && !it.done {
			if err := r.remove(it); err != nil {
				return err
			}
		}
	}
	for _, it := range r.items {
		for _, c := range slices.Backward(it.dirsToClear) {
			if err := r.clearDir(c); err != nil {
				return err
			}
		}
		if len(it.dirsToClear) > 0 {
			it.info = nil
		}
	}
	for _, it := range r.items {
		if it.done || it.placed {
			continue
		}
		if err := r.placeItem(it); err != nil {
			return err
		}
	}
	return r.step("placed")
}

func (r *restorer) addReversal(path string, run func() error) {
	r.reversals = append(r.reversals, reversal{path, run})
}

func (r *restorer) unchangedParent(step string, it *item) (*nofollow.Pin, error) {
	if err := r.step("%s %s", step, it.Path); err != nil {
		return nil, err
	}
	same, err := r.unchanged(it)
	if err != nil {
		return nil, err
	}
	if !same {
		return nil, &workspace.ConflictError{Paths: []string{it.Path}}
	}
	dir, err := r.pins.At(treepath.Parent(it.Path), false)
	if err == nil {
		dir.Changed = true
	}
	return dir, err
}

func (r *restorer) remove(it *item) error {
	dir, err := r.unchangedParent("remove", it)
	if err != nil {
		return err
	}
	if err := dir.Root.Remove(treepath.Base(it.Path)); err != nil {
		return fmt.Errorf("remove %s: %w", treepath.Display(it.Path), nofollow.WithoutPath(err))
	}
	it.placed = true
	r.addReversal(it.Path, func() error { return r.revert(it) })
	return nil
}

func (r *restorer) clearDir(c clearing) error {
	if err := r.step("clear %s", c.path); err != nil {
		return err
	}
	if err := r.removeDir(c.path); err != nil {
		return err
	}
	r.addReversal(c.path, func() error { return r.recreateDir(c) })
	return nil
}

func (r *restorer) removeDir(path string) error {
	dir, err := r.pins.At(path, false)
	if err == nil {
		err = r.pins.RemoveEmpty(dir)
	}
	if err == nil && r.pins.IsPinned(path) {
		err = errors.New("it is no longer empty")
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", treepath.Display(path), nofollow.WithoutPath(err))
	}
	return nil
}

func (r *restorer) recreateDir(c clearing) error {
	if err := r.step("restore %s", c.path); err != nil {
		return err
	}
	dir, err := r.pins.At(c.path, true)
	if err != nil {
		return err
	}
	dir.Created = false // keep it
	f, err := dir.Root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().Perm() == c.mode {
		return err
	}
	return f.Chmod(c.mode)
}

func (r *restorer) placeItem(it *item) error {
	if it.missingDir != "" {
		return r.graft(it.missingDir)
	}
	dir, err := r.unchangedParent("place", it)
	if err != nil {
		return err
	}
	if it.modeOnly() {
		err = r.setMode(dir, it, it.Want.Mode.Perm())
	} else if err = dir.Place(it.tempName(), treepath.Base(it.Path)); err != nil {
		err = fmt.Errorf("replace %s: %w", treepath.Display(it.Path), nofollow.WithoutPath(err))
	}
	if err != nil {
		return err
	}
	it.placed = true
	r.addReversal(it.Path, func() error { return r.revert(it) })
	return nil
}

// graft renames a complete new directory to a path that no longer exists.
func (r *restorer) graft(top string) error {
	items := r.itemsBelow(top)
	from := graftOf(top)
	if err := r.seal(from, items); err != nil {
		return err
	}
	if err := r.step("place %s", top); err != nil {
		return err
	}
	dir, err := r.pins.At(treepath.Parent(top), false)
	if err != nil {
		return err
	}
	if _, err := dir.Root.Lstat(treepath.Base(top)); transient.Is(err) {
		return nofollow.ReadError(top, err)
	} else if !nofollow.IsNotExist(err) {
		return &workspace.ConflictError{Paths: []string{top}}
	}
	dir.Changed = true
	if err := dir.Root.Rename(treepath.Base(from), treepath.Base(top)); err != nil {
		return fmt.Errorf("make directory %s: %w", treepath.Display(top), nofollow.WithoutPath(err))
	}
	made := dirsOf(items, func(it *item) string { return it.Path }, treepath.Parent(top))
	for _, path := range made {
		r.addReversal(path, func() error { return r.removeDir(path) })
	}
	for _, it := range items {
		it.placed = true
		r.addReversal(it.Path, func() error { return r.revert(it) })
	}
	return nil
}

func (r *restorer) itemsBelow(top string) []*item {
	var items []*item
	for _, it := range r.items {
		if it.missingDir == top && it.staged {
			items = append(items, it)
		}
	}
	return items
}

// It also closes the directory, because some systems cannot rename an open one.
func (r *restorer) seal(from string, items []*item) error {
	for _, path := range slices.Backward(dirsOf(items, (*item).stagePath, treepath.Parent(from))) {
		dir, err := r.pins.At(path, false)
		if err == nil {
			err = r.pins.CheckInPlace(dir)
		}
		if err == nil {
			err = dir.Sync()
		}
		if err != nil {
			return fmt.Errorf("sync %s: %w", treepath.Display(path), nofollow.WithoutPath(err))
		}
		r.pins.Forget(path)
	}
	return nil
}

// dirsOf returns the directories that contain the items' paths, parents first,
// from below the directory end.
func dirsOf(items []*item, path func(*item) string, end string) []string {
	seen := map[string]bool{}
	for _, it := range items {
		for dir := treepath.Parent(path(it)); dir != end && !seen[dir]; dir = treepath.Parent(dir) {
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

// A directory that this process may not remove stays.
func (r *restorer) removeEmptied() error {
	removals := slices.DeleteFunc(slices.Clone(r.items), func(it *item) bool { return !it.isRemoval() })
	for _, path := range slices.Backward(dirsOf(removals, func(it *item) string { return it.Path }, "")) {
		dir, err := r.pins.At(path, false)
		if nofollow.IsAbsent(err) {
			continue
		}
		empty := false
		if err == nil {
			if empty, err = dir.Empty(); err == nil && !empty {
				continue
			}
		}
		if err == nil {
			err = r.step("sweep %s", path)
		}
		if err == nil {
			err = r.pins.RemoveEmpty(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("remove %s: %w", treepath.Display(path), nofollow.WithoutPath(err))
		}
	}
	return nil
}

func (r *restorer) rollBack(cause error) error {
	partial := workspace.PartialError{Err: cause}
	// First, because this frees space on a full disk.
	left := r.removeTemps()
	for _, b := range slices.Backward(r.reversals) {
		if err := b.run(); err != nil {
			partial.Paths = append(partial.Paths, b.path)
			partial.Why = errors.Join(partial.Why, err)
		}
	}
	left = errors.Join(left, r.pins.RemoveCreated(), r.pins.Sync(r.step))
	if len(partial.Paths) > 0 {
		slices.SortFunc(partial.Paths, strings.Compare)
		return errors.Join(&partial, left)
	}
	return errors.Join(cause, left)
}

// revert restores the previous state of one path, unless another process has
// changed it since.
func (r *restorer) revert(it *item) error {
	if err := r.step("restore %s", it.Path); err != nil {
		return err
	}
	ctx := context.Background() // a roll-back is not canceled
	now := &item{Target: it.Target}
	if err := r.inspect(ctx, now); err != nil {
		return err
	}
	if !sameState(now.found, it.Want) || len(now.dirsToClear) > 0 {
		return fmt.Errorf("another process changed %s", treepath.Display(it.Path))
	}
	dir, err := r.pins.At(treepath.Parent(it.Path), false)
	if err != nil {
		return err
	}
	dir.Changed = true
	switch {
	case it.found.Kind == "":
		return dir.Root.Remove(treepath.Base(it.Path))
	case it.modeOnly():
		return r.setMode(dir, now, it.found.Mode)
	case it.found.Kind == workspace.Regular && it.found.Digest == "":
		return fmt.Errorf("the old contents of %s could not be read", treepath.Display(it.Path))
	}
	if err := r.write(ctx, it, treepath.Join(dir.Path, it.tempName()), it.found); err != nil {
		return errors.Join(err, dir.RemoveTemp(it.tempName(), it.Path))
	}
	if dir, err = r.pins.At(dir.Path, false); err != nil {
		return err
	}
	return dir.Place(it.tempName(), treepath.Base(it.Path))
}
