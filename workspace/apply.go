package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// ConflictError says that paths are neither as they may be found nor as they
// shall become: not as reviewed (Apply), in none of the states that may be
// replaced (Restore). Nothing was changed.
type ConflictError struct {
	Paths []string // cleaned, in the order of the change; sorted by Restore
}

func (e *ConflictError) Error() string {
	return "neither as expected nor as wanted, and left alone: " + displayAll(e.Paths)
}

// PartialError says that an error came after some files were replaced, and
// that these could not be put back. Apply or Restore, asked for the same, goes
// on from there.
type PartialError struct {
	Err   error    // what stopped it
	Paths []string // left as the change wants them, though the whole failed
	Why   error    // what kept them from being put back
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("%v; not put back: %s: %v", e.Err, displayAll(e.Paths), e.Why)
}

// Unwrap returns what stopped the change.
func (e *PartialError) Unwrap() error { return e.Err }

func displayAll(paths []string) string {
	shown := make([]string, len(paths))
	for i, p := range paths {
		shown[i] = display(p)
	}
	return strings.Join(shown, ", ")
}

// Apply makes every edit whose verdict is Allow, or none. The verdicts are
// those of Review, one for each edit in order; a caller turns those that a
// person approved into Allow. Verdicts that belong to another change are an
// error.
//
// Every file is looked at before anything is written. One that is as Before
// is changed; one that is as After is left, so that Apply after a crash rolls
// the same change forward and removes its temporary files; anything else is a
// [*ConflictError]. Contents decide, not permission bits, which a file keeps
// as it has them now, and so its owner where this process may give it.
// Set-user-id bits, access lists and extended attributes are lost; other names
// of the file (hard links) keep the old contents.
//
// New contents are written and synced to temporary files beside their targets
// before the first one is renamed. An error until then takes back all of
// them; an error later puts the old contents back from memory, and what that
// cannot do is a [*PartialError]. The context is heeded until the first rename.
// Missing parents are made with mode 0755. Directories that a deletion leaves
// empty stay: git does not know them, and somebody may stand in one.
//
// A process that exchanges directories meanwhile can make Apply fail, and can
// move a directory that is being written to, but nothing is written through a
// symlink. A third state that comes up in the instant between the last look
// and the rename is lost, as there is no rename that compares.
func (t *Tree) Apply(ctx context.Context, ch Change, verdicts []Verdict) error {
	a := &application{tree: t, pins: pins{root: t.root}}
	defer a.pins.close()
	if err := a.choose(ch, verdicts); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	if len(a.edits) == 0 {
		return nil
	}
	if err := a.run(ctx); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	return nil
}

// application is one run of Apply.
type application struct {
	tree  *Tree
	pins  pins
	edits []*pending
}

// pending is one edit on its way.
type pending struct {
	path    string
	content []byte // of the file to be
	remove  bool
	before  Image // as reviewed
	after   Image

	now    []byte      // contents found
	info   fs.FileInfo // what was found; nil: nothing
	staged bool        // the temporary file is written
	placed bool        // the edit is made, by this run
	done   bool        // nothing is left to do: it was as After when looked at
}

// choose takes the allowed edits and checks that the verdicts are about them.
func (a *application) choose(ch Change, verdicts []Verdict) error {
	if len(ch.Edits) != len(verdicts) {
		return fmt.Errorf("%d edits have %d verdicts", len(ch.Edits), len(verdicts))
	}
	for i, v := range verdicts {
		if v.Ruling != Allow {
			continue
		}
		e := ch.Edits[i]
		p := &pending{path: v.Path, content: e.Content, remove: e.Delete, before: v.Before, after: v.After}
		cleaned, err := Clean(e.Path)
		if err == nil && protected(cleaned) != "" {
			err = refuse(cleaned, "%s", protected(cleaned))
		}
		if err != nil {
			return err
		}
		if cleaned != v.Path || p.wanted() != v.After.Digest {
			return fmt.Errorf("the verdict on %s is not about edit %d of this change", display(v.Path), i+1)
		}
		a.edits = append(a.edits, p)
	}
	return nil
}

// wanted is the digest of the file to be; empty where it shall not be.
func (p *pending) wanted() string {
	if p.remove {
		return ""
	}
	return Digest(p.content)
}

// run goes through the stages.
func (a *application) run(ctx context.Context) error {
	if err := a.lookAtAll(ctx); err != nil {
		return err
	}
	err := a.stage(ctx)
	if err == nil {
		err = a.lookAgain()
	}
	if err != nil {
		return errors.Join(err, a.takeBack())
	}
	if err := a.place(); err != nil {
		return a.putBack(err)
	}
	return a.pins.sync(a.step)
}

// step lets a test stop here.
func (a *application) step(format string, args ...any) error {
	if a.tree.fault == nil {
		return nil
	}
	return a.tree.fault(fmt.Sprintf(format, args...))
}

// lookAtAll finds out what stands at every path, and reports all conflicts at
// once.
func (a *application) lookAtAll(ctx context.Context) error {
	var conflict ConflictError
	for _, p := range a.edits {
		if err := ctx.Err(); err != nil {
			return err
		}
		digest, err := a.lookAt(p)
		if err != nil {
			return err
		}
		p.done = digest == p.after.Digest
		if !p.done && digest != p.before.Digest {
			conflict.Paths = append(conflict.Paths, p.path)
		}
	}
	if len(conflict.Paths) > 0 {
		return &conflict
	}
	return nil
}

// lookAt reads what stands at a path, and returns its digest.
func (a *application) lookAt(p *pending) (string, error) {
	dir, err := a.pins.at(parentOf(p.path), false)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	content, image, info, err := a.tree.readIn(dir.dir, p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	p.now, p.info = content, info
	return image.Digest, err
}

// stage writes all temporary files, and removes those that a crash of the
// same change has left.
func (a *application) stage(ctx context.Context) error {
	for _, p := range a.edits {
		if err := ctx.Err(); err != nil {
			return err
		}
		dir, err := a.pins.at(parentOf(p.path), !p.done && !p.remove)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a deletion of what is gone
		}
		if err != nil {
			return err
		}
		dir.changed = true
		if err := dir.removeTemp(p.temporary(), p.path); err != nil {
			return err
		}
		if p.done || p.remove {
			continue
		}
		if err := a.step("write %s", p.path); err != nil {
			return err
		}
		p.staged = true // even a write that fails may leave a file
		if err := dir.writeTemp(p.temp(p.mode()), writes(p.content)); err != nil {
			return err
		}
	}
	return a.step("staged")
}

// temporary is the name of the temporary file.
func (p *pending) temporary() string { return tempName(p.path, p.after.Digest) }

func (p *pending) temp(mode fs.FileMode) temp {
	return temp{name: p.temporary(), path: p.path, mode: mode, old: p.info}
}

// writes returns what fills a temporary file.
func writes(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}

// mode is the permission bits of the file to be.
func (p *pending) mode() fs.FileMode {
	if p.info != nil {
		return p.info.Mode().Perm()
	}
	return fs.FileMode(p.after.Mode).Perm()
}

// lookAgain finds directories and files that changed while the temporary
// files were written.
func (a *application) lookAgain() error {
	if err := a.pins.check(); err != nil {
		return err
	}
	var conflict ConflictError
	for _, p := range a.edits {
		if !p.done && !a.unchanged(p) {
			conflict.Paths = append(conflict.Paths, p.path)
		}
	}
	if len(conflict.Paths) > 0 {
		return &conflict
	}
	return nil
}

// unchanged reports whether a path still has what was found there.
func (a *application) unchanged(p *pending) bool {
	dir, err := a.pins.at(parentOf(p.path), false)
	return err == nil && dir.still(base(p.path), p.info)
}

// place renames and deletes. From here on an error is put right, not left.
func (a *application) place() error {
	for _, p := range a.edits {
		if p.done {
			continue
		}
		if err := a.step("place %s", p.path); err != nil {
			return err
		}
		if !a.unchanged(p) {
			return &ConflictError{Paths: []string{p.path}}
		}
		dir, err := a.pins.at(parentOf(p.path), false)
		if err != nil {
			return err
		}
		if p.remove {
			err = dir.dir.Remove(base(p.path))
		} else {
			err = dir.dir.Rename(p.temporary(), base(p.path))
		}
		if err != nil {
			return fmt.Errorf("replace %s: %w", display(p.path), withoutPath(err))
		}
		p.placed = true
	}
	return a.step("placed")
}
