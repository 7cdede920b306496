package workspace

import (
	"errors"
	"fmt"
	"slices"

	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

func (a *application) removeTemps() error {
	var errs []error
	for _, p := range a.edits {
		if !p.staged || p.placed {
			continue
		}
		dir, err := a.pins.At(treepath.Parent(p.path), false)
		if err == nil {
			err = dir.RemoveTemp(p.tempName(), p.path)
		}
		errs = append(errs, err)
	}
	errs = append(errs, a.pins.RemoveCreated())
	return errors.Join(errs...)
}

// RemoveTemps removes the temporary files that an Apply of the same change left when its
// process died. It changes no other file.
func (t *Tree) RemoveTemps(ch Change, verdicts []Verdict) error {
	a := &application{tree: t, pins: nofollow.Pins{Root: t.root}}
	defer a.pins.Close()
	if err := a.selectEdits(ch, verdicts); err != nil {
		return fmt.Errorf("remove temporary files: %w", err)
	}
	for _, p := range a.edits {
		_, err := a.pins.At(treepath.Parent(p.path), false)
		p.staged = err == nil // a directory that cannot be used has none
	}
	return a.removeTemps()
}

func (a *application) rollBack(cause error) error {
	partial := PartialError{Err: cause}
	// First, because this frees space on a full disk.
	left := a.removeTemps()
	for _, early := range []bool{false, true} {
		for _, p := range slices.Backward(a.edits) {
			if !p.placed || p.early != early {
				continue
			}
			if err := a.rollBackFile(p); err != nil {
				partial.Paths = append(partial.Paths, p.path)
				partial.Why = errors.Join(partial.Why, err)
			}
		}
		if !early {
			left = errors.Join(left, a.pins.RemoveCreated()) // a directory in the place of a file
		}
	}
	left = errors.Join(left, a.pins.RemoveCreated(), a.pins.Sync(a.tree.step))
	if len(partial.Paths) > 0 {
		slices.Reverse(partial.Paths)
		return errors.Join(&partial, left)
	}
	return errors.Join(cause, left)
}

// rollBackFile restores the old contents of one path, unless another process
// has changed it since.
func (a *application) rollBackFile(p *pending) error {
	if err := a.tree.step("restore %s", p.path); err != nil {
		return err
	}
	dir, err := a.pins.At(treepath.Parent(p.path), p.early)
	if err != nil {
		return err
	}
	_, image, _, err := a.tree.readIn(dir.Root, p.path)
	if err := ignoreNotExist(err); err != nil {
		return err
	}
	if image.Digest != p.after.Digest {
		return fmt.Errorf("another process changed %s", treepath.Display(p.path))
	}
	if p.oldInfo == nil {
		return dir.Root.Remove(treepath.Base(p.path))
	}
	if err := dir.WriteTemp(p.temp(p.oldInfo.Mode().Perm()), contentWriter(p.oldContent)); err != nil {
		return errors.Join(err, dir.RemoveTemp(p.tempName(), p.path))
	}
	return dir.Place(p.tempName(), treepath.Base(p.path))
}
