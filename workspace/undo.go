package workspace

import (
	"errors"
	"fmt"
	"slices"
)

// takeBack removes all temporary files and the directories that were made for
// them.
func (a *application) takeBack() error {
	var errs []error
	for _, p := range a.edits {
		if !p.staged || p.placed {
			continue
		}
		dir, err := a.pins.at(parentOf(p.path), false)
		if err == nil {
			err = dir.removeTemp(p.temporary(), p.path)
		}
		errs = append(errs, err)
	}
	errs = append(errs, a.pins.removeMade())
	return errors.Join(errs...)
}

// putBack restores the files that were replaced before an error, in reverse
// order, and returns the error with what could not be restored.
func (a *application) putBack(cause error) error {
	partial := PartialError{Err: cause}
	// Before anything else, because on a full disk this makes room.
	left := a.takeBack()
	for _, p := range slices.Backward(a.edits) {
		if !p.placed {
			continue
		}
		if err := a.restore(p); err != nil {
			partial.Paths = append(partial.Paths, p.path)
			partial.Why = errors.Join(partial.Why, err)
		}
	}
	left = errors.Join(left, a.pins.removeMade(), a.pins.sync(a.step))
	if len(partial.Paths) > 0 {
		slices.Reverse(partial.Paths)
		return errors.Join(&partial, left)
	}
	return errors.Join(cause, left)
}

// restore gives one path the contents back that were found there, unless
// somebody has changed it again.
func (a *application) restore(p *pending) error {
	if err := a.step("restore %s", p.path); err != nil {
		return err
	}
	dir, err := a.pins.at(parentOf(p.path), false)
	if err != nil {
		return err
	}
	_, image, _, err := a.tree.readIn(dir.dir, p.path)
	if err := orNothing(err); err != nil {
		return err
	}
	if image.Digest != p.after.Digest {
		return fmt.Errorf("%s was changed by somebody else", display(p.path))
	}
	if p.info == nil {
		return dir.dir.Remove(base(p.path))
	}
	if err := dir.writeTemp(p.temp(p.info.Mode().Perm()), writes(p.now)); err != nil {
		return errors.Join(err, dir.removeTemp(p.temporary(), p.path))
	}
	return dir.dir.Rename(p.temporary(), base(p.path))
}
