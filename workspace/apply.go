package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"hone/internal/transient"
	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// ConflictError says that paths are neither in a state that may be replaced nor
// in the wanted state. For Apply, the former is the reviewed state; for
// restore.Paths, one of Target.From. Nothing was changed.
type ConflictError struct {
	Paths []string // cleaned; in the order of the change for Apply, sorted for restore.Paths
}

func (e *ConflictError) Error() string {
	return "left unchanged because they are neither as expected nor as wanted: " + displayAll(e.Paths)
}

func conflictError(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	return &ConflictError{Paths: paths}
}

// PartialError says that an error occurred after some files were replaced, and
// that these files could not be rolled back. If the caller repeats its call of
// Apply or restore.Paths, that call continues from there.
type PartialError struct {
	Err   error    // the error that stopped the change
	Paths []string // already changed and not rolled back
	Why   error    // why the roll-back failed
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("%v; not rolled back: %s: %v", e.Err, displayAll(e.Paths), e.Why)
}

// Unwrap returns the error that stopped the change.
func (e *PartialError) Unwrap() error { return e.Err }

func displayAll(paths []string) string {
	shown := make([]string, len(paths))
	for i, p := range paths {
		shown[i] = treepath.Display(p)
	}
	return strings.Join(shown, ", ")
}

// Apply makes every edit whose verdict is Allow, or none. The verdicts come
// from Review, one per edit in the same order; a caller changes the verdict of
// an edit that the user approved to Allow. Verdicts that belong to another
// change are an error.
//
// Apply inspects every file before it writes anything. A file as in Before is
// changed. A file as in After is left alone, so that Apply after a crash rolls
// the same change forward and removes its temporary files. Anything else is a
// [*ConflictError]. Only contents are compared, not permission bits. A file
// keeps its current permission bits, and its owner if this process may set it.
// Set-user-id bits, access lists and extended attributes are lost. Other names
// of the file (hard links) keep the old contents.
//
// Apply writes and syncs all new contents to temporary files next to their
// targets before it renames the first one. After an error before that rename it
// removes them. After a later error it writes the old contents back from
// memory; if that fails, the error is a [*PartialError]. Canceling the context
// has no effect after the first rename. Missing parent directories get mode
// 0755. Directories that a deletion leaves empty stay: git does not track them,
// and a process may use one as its working directory.
//
// A process that swaps directories at the same time can make Apply fail and can
// move a directory that is being written to, but nothing is written through a
// symlink. A change made by another process between the last check and the
// rename is lost, because no system call compares and renames in one step.
func (t *Tree) Apply(ctx context.Context, ch Change, verdicts []Verdict) error {
	a := &application{tree: t, pins: nofollow.Pins{Root: t.root, Scratch: t.scratch}}
	defer a.pins.Close()
	if err := a.selectEdits(ch, verdicts); err != nil {
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

// application is the state of one Apply.
type application struct {
	tree  *Tree
	pins  nofollow.Pins
	edits []*pending
}

type pending struct {
	path    string
	content []byte // wanted
	remove  bool
	before  Image // from the verdict
	after   Image

	oldContent []byte      // as found
	oldInfo    fs.FileInfo // of the file found; nil if there is none
	staged     bool        // the temporary file may exist
	placed     bool        // this call made the edit
	early      bool        // it makes room for others; see [application.makeRoom]
	done       bool        // the file was already as in After
}

func (a *application) selectEdits(ch Change, verdicts []Verdict) error {
	if len(ch.Edits) != len(verdicts) {
		return fmt.Errorf("%d edits have %d verdicts", len(ch.Edits), len(verdicts))
	}
	for i, v := range verdicts {
		if v.Ruling != Allow {
			continue
		}
		e := ch.Edits[i]
		p := &pending{path: v.Path, content: e.Content, remove: e.Delete, before: v.Before, after: v.After}
		cleaned, err := treepath.Clean(e.Path)
		if err == nil && treepath.ProtectedReason(cleaned) != "" {
			err = treepath.Refuse(cleaned, "%s", treepath.ProtectedReason(cleaned))
		}
		if err != nil {
			return err
		}
		if cleaned != v.Path || p.remove && v.After.Exists() || !p.remove && Digest(p.content) != v.After.Digest {
			return fmt.Errorf("the verdict on %s is not about edit %d of this change", treepath.Display(v.Path), i+1)
		}
		a.edits = append(a.edits, p)
	}
	return nil
}

func (a *application) run(ctx context.Context) error {
	if err := a.inspectAll(ctx); err != nil {
		return err
	}
	if err := a.makeRoom(); err != nil {
		return a.rollBack(err)
	}
	err := a.stage(ctx)
	if err == nil {
		err = a.recheck()
	}
	if err != nil && slices.ContainsFunc(a.edits, func(p *pending) bool { return p.placed }) {
		return a.rollBack(err)
	}
	if err != nil {
		return errors.Join(a.conflict(err), a.removeTemps())
	}
	if err := a.place(); err != nil {
		return a.rollBack(err)
	}
	return a.pins.Sync(a.tree.step)
}

// Another process put a link or a file in the place of a directory.
func (a *application) conflict(err error) error {
	refused, ok := errors.AsType[*treepath.RefusedError](err)
	if !ok {
		return err
	}
	var paths []string
	for _, p := range a.edits {
		if treepath.Contains(refused.Path, p.path) {
			paths = append(paths, p.path)
		}
	}
	return cmp.Or(conflictError(paths), err)
}

func (a *application) inspectAll(ctx context.Context) error {
	var conflicts []string
	for _, p := range a.edits {
		if err := ctx.Err(); err != nil {
			return err
		}
		digest, err := a.inspect(p)
		_, refused := errors.AsType[*treepath.RefusedError](err) // a link or a directory is there now
		if err != nil && !refused {
			return err
		}
		p.done = !refused && digest == p.after.Digest
		if refused || !p.done && digest != p.before.Digest {
			conflicts = append(conflicts, p.path)
		}
	}
	return conflictError(conflicts)
}

func (a *application) inspect(p *pending) (string, error) {
	dir, err := a.pins.At(treepath.Parent(p.path), false)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", a.unlessRoom(p, err)
	}
	content, image, info, err := a.tree.readIn(dir.Root, p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		err = a.unlessRoom(p, err)
	}
	p.oldContent, p.oldInfo = content, info
	return image.Digest, err
}

// unlessRoom returns nil if deletions of the change make room for an edit, or if it is such a
// deletion and was made; otherwise the error of its path.
func (a *application) unlessRoom(p *pending, err error) error {
	if transient.Is(err) {
		return err
	}
	deleted := map[string]bool{}
	for _, other := range a.edits {
		deleted[other.path] = other.remove
	}
	if p.remove && a.tree.inPlaceOf(p.path) {
		return nil
	}
	if _, ok := a.tree.roomFor(p.path, deleted); ok && !p.remove {
		return nil
	}
	return err
}

// It also removes the temporary files that a crash during the same change left.
func (a *application) stage(ctx context.Context) error {
	for _, p := range a.edits {
		if err := ctx.Err(); err != nil {
			return err
		}
		dir, err := a.pins.At(treepath.Parent(p.path), !p.done && !p.remove)
		if errors.Is(err, fs.ErrNotExist) || err != nil && p.remove && a.tree.inPlaceOf(p.path) {
			continue // the file to delete no longer exists
		}
		if err != nil {
			return err
		}
		dir.Changed = true
		if err := dir.RemoveTemp(p.tempName(), p.path); err != nil {
			return err
		}
		if p.done || p.remove {
			continue
		}
		if err := a.tree.step("write %s", p.path); err != nil {
			return err
		}
		p.staged = true // even a failed write may leave a file
		if err := dir.WriteTemp(p.temp(p.mode()), contentWriter(p.content)); err != nil {
			return err
		}
	}
	return a.tree.step("staged")
}

func (p *pending) tempName() string { return nofollow.TempName(p.path, p.after.Digest) }

func (p *pending) temp(mode fs.FileMode) nofollow.Temp {
	return nofollow.Temp{Name: p.tempName(), Path: p.path, Mode: mode, Replaces: p.oldInfo}
}

func contentWriter(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}

func (p *pending) mode() fs.FileMode {
	if p.oldInfo != nil {
		return p.oldInfo.Mode().Perm()
	}
	return fs.FileMode(p.after.Mode).Perm()
}

// Directories and files may have changed while the temporary files were being written.
func (a *application) recheck() error {
	if err := a.pins.CheckAll(); err != nil {
		return err
	}
	var conflicts []string
	for _, p := range a.edits {
		if p.done || p.placed {
			continue
		}
		same, err := a.pins.Unchanged(p.path, p.oldInfo)
		if err != nil {
			return err
		}
		if !same {
			conflicts = append(conflicts, p.path)
		}
	}
	return conflictError(conflicts)
}

// The caller must roll back after an error.
func (a *application) place() error {
	for _, p := range a.edits {
		if p.done || p.placed {
			continue
		}
		if err := a.placeOne(p); err != nil {
			return err
		}
	}
	return a.tree.step("placed")
}

func (a *application) placeOne(p *pending) error {
	if err := a.tree.step("place %s", p.path); err != nil {
		return err
	}
	same, err := a.pins.Unchanged(p.path, p.oldInfo)
	if err != nil {
		return err
	}
	if !same {
		return &ConflictError{Paths: []string{p.path}}
	}
	dir, err := a.pins.At(treepath.Parent(p.path), false)
	if err != nil {
		return err
	}
	dir.Changed = true
	if p.remove {
		err = dir.Root.Remove(treepath.Base(p.path))
	} else {
		err = dir.Place(p.tempName(), treepath.Base(p.path))
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", treepath.Display(p.path), nofollow.WithoutPath(err))
	}
	p.placed = true
	return nil
}
