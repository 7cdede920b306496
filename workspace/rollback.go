package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// rollBack takes back what was changed, and returns the cause.
func (a *application) rollBack(cause error) error {
	left := a.removeTemps() // first, because this frees space on a full disk
	partial := PartialError{Err: cause}
	for _, it := range slices.Backward(a.placed) {
		if err := a.takeBack(it); err != nil {
			partial.Paths = append(partial.Paths, it.Path)
			partial.Why = errors.Join(partial.Why, err)
		}
	}
	for _, dir := range slices.Backward(a.made) {
		left = errors.Join(left, a.removeDir(dir))
	}
	for _, c := range a.cleared {
		if err := a.cur.MakeDir(c.path); !errors.Is(err, fs.ErrExist) {
			left = errors.Join(left, err)
		}
	}
	for _, c := range slices.Backward(a.cleared) {
		left = errors.Join(left, a.cur.ChmodDir(c.path, c.mode))
	}
	left = errors.Join(left, a.sync())
	if len(partial.Paths) > 0 {
		slices.Sort(partial.Paths)
		return errors.Join(&partial, left)
	}
	return errors.Join(cause, left)
}

// takeBack undoes the change of one path. It makes the checks of any other change, so what another process wrote meanwhile
// stays. The context does not cancel it.
func (a *application) takeBack(it *item) error {
	if err := a.tree.step("restore %s", it.Path); err != nil {
		return err
	}
	if it.found.Kind == Other || it.found.Kind == Regular && it.found.Digest == "" {
		return fmt.Errorf("%s cannot be restored: its old contents were not read", treepath.Display(it.Path))
	}
	back := a.tree.application(context.WithoutCancel(a.ctx), a.open, a.cur.Force)
	defer back.close()
	err := back.setItems([]Delta{{Path: it.Path, Before: it.After, After: it.found}})
	if err == nil {
		err = back.change()
	}
	if err != nil {
		err = errors.Join(back.asFact(err), back.removeTemps())
	}
	maps.Copy(a.touched, back.touched)
	return err
}

func (a *application) removeTemps() error {
	cur := &a.cur
	if a.staging.Root != nil {
		cur = &a.staging
	}
	var errs []error
	for _, it := range a.items {
		if !it.staged {
			continue
		}
		if err := cur.Remove(it.temp()); err != nil && !nofollow.IsAbsent(err) {
			errs = append(errs, fmt.Errorf("remove the temporary file of %s: %w", treepath.Display(it.Path), nofollow.WithoutPath(err)))
		}
	}
	a.close()
	return errors.Join(errs...)
}
