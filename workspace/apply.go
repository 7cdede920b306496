package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"hone/internal/transient"
	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// ConflictError says that paths have neither the state Before of their delta nor
// the state After, or that something else is in their place. Nothing was changed.
type ConflictError struct {
	Paths []string // sorted
}

func (e *ConflictError) Error() string {
	return "left unchanged because they are neither as expected nor as wanted: " + displayAll(e.Paths)
}

// DeniedError says that this user may not change paths, or that the system cannot hold them
// there, which no second try changes (ruling G22). Nothing was changed.
type DeniedError struct {
	Why map[string]string // by path
	err error             // of the system, the first
}

func (e *DeniedError) Error() string { return e.err.Error() }

// Unwrap returns the error of the system.
func (e *DeniedError) Unwrap() error { return e.err }

// PartialError says that an error occurred after some files were replaced, and
// that these files could not be rolled back. If the caller repeats its call of
// Apply, that call continues from there.
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

// Apply brings every path of a list from the state Before into the state After, or none, and
// returns the paths that it changed, sorted. It makes edits, makes them again after a crash,
// and takes changes back: for that the list has the two states exchanged. open returns
// contents by digest.
//
// Apply inspects everything before it changes anything. A path in the state After is left
// alone. All paths in neither state are one [*ConflictError]; those that this user may not
// change are a [*DeniedError]. A directory counts as absent,
// because manifests have no entries for directories; it makes room for a file if the list
// removes everything in it except empty directories, and a file makes room for a directory if
// the list removes it. Anything that is neither a regular file nor a symlink is a conflict, unless Before
// has it; then it cannot be rolled back.
// Apply never touches hone's own files, .git at any depth, or paths behind a symlink. A state
// Before without a digest stands for an unreadable file of that size and those permission
// bits, which cannot be rolled back.
//
// Before the first change Apply writes, verifies and syncs all new contents to temporary
// files in the directories of their paths, or the first above that exists. Then it removes
// paths, deepest first, and places new files, each with one rename. If only the permission
// bits differ, it changes only these. Missing directories get mode 0755. It removes
// directories that removals left empty, if this process may, except those of edits. After an
// error that follows the first change it takes each change back, with the old contents from
// open; if that fails, the error is a [*PartialError]. After a crash each path is in one of its two states, so the
// same call completes the work, and removes the temporary files also if there is a conflict
// by now. Canceling the context has no effect after the first change.
//
// An edit respects the permission bits of directories. Any other list also changes what is in directories that this user owns and
// has no permission to change; they get their permission bits back.
//
// Files have new modification times, and keep their owner if this process may set it.
// Set-user-id bits, capabilities, access lists and extended attributes are lost. Other names of a replaced
// file (hard links) keep the old contents. Files of any size are streamed. Two concurrent
// calls on a tree may each report a conflict with the other.
//
// A process that swaps directories at the same time can make Apply fail, can move a directory
// that is being written to and keep a temporary file in it, but nothing is written through a
// symlink. A change made by another process between the last check and the rename is lost,
// because no system call compares and renames in one step.
func (t *Tree) Apply(ctx context.Context, list []Delta, open func(digest string) (io.ReadCloser, error)) (changed []string, err error) {
	a := t.application(ctx, open, !slices.ContainsFunc(list, func(d Delta) bool { return d.Edit }))
	defer a.close()
	if err = a.setItems(list); err == nil {
		err = a.change()
	}
	if err == nil {
		err = t.step("placed")
	}
	if err != nil {
		return nil, fmt.Errorf("apply: %w", a.rollBack(a.asFact(err)))
	}
	if err = a.sweep(); err == nil {
		err = a.sync()
	}
	if err != nil {
		return nil, fmt.Errorf("apply: %w", err)
	}
	for _, it := range a.items {
		if !it.done {
			changed = append(changed, it.Path)
		}
	}
	return changed, nil
}

// application is the state of one Apply.
type application struct {
	hasher
	open    func(digest string) (io.ReadCloser, error)
	items   []*item // sorted by path
	byPath  map[string]*item
	touched map[string]bool // directories in which names were changed
	staging nofollow.Cursor // that wrote the temporary files; zero before they are placed
	placed  []*item         // in order
	made    []string        // directories
	cleared []clearing      // directories that were removed to make room, each before those in it
}

func (t *Tree) application(ctx context.Context, open func(digest string) (io.ReadCloser, error), force bool) *application {
	cur := nofollow.Cursor{Root: t.root, Force: force}
	return &application{hasher: hasher{ctx: ctx, tree: t, cur: cur}, open: open, byPath: map[string]*item{}, touched: map[string]bool{}}
}

func (a *application) close() {
	a.cur.Close()
	a.staging.Close()
}

type item struct {
	Delta
	found   Entry          // current state; zero for nothing or a directory
	info    *nofollow.Info // of the path; nil if it does not exist
	base    string         // the deepest directory on the way to the path that exists
	blocked string         // what is in the place of a directory on the way; empty if nothing is
	clear   []clearing     // directories in the place of the path, each before those in it

	done   bool // it already was in the wanted state
	staged bool // the temporary file may exist
}

type clearing struct {
	path string
	mode fs.FileMode
}

func (it *item) failed(action string, err error) error {
	why := nofollow.Denial(err)
	err = fmt.Errorf("%s %s: %w", action, treepath.Display(it.Path), nofollow.WithoutPath(err))
	if why == "" {
		return err
	}
	return &DeniedError{Why: map[string]string{it.Path: why}, err: err}
}

func (it *item) removes() bool { return it.After.Kind == "" }

func (it *item) changesOnlyMode() bool {
	return it.After.Kind == Regular && it.found.Kind == Regular && it.After.Digest == it.found.Digest
}

func (it *item) temp() string { return treepath.Join(it.base, tempName(it.Path)) }

// It depends only on the path, so that every later change of the path finds what a crash left.
func tempName(path string) string {
	sum := sha256.Sum256([]byte(path))
	return treepath.TempPrefix + hex.EncodeToString(sum[:12])
}

// sameForApply compares states. Unlike [Entry.SameState] it compares files that could not be
// read, by their size.
func sameForApply(e, o Entry) bool {
	switch {
	case e.Kind != o.Kind:
		return false
	case e.Kind == Regular:
		return e.Digest == o.Digest && e.Mode == o.Mode && (e.Digest != "" || e.Size == o.Size)
	}
	return e.Target == o.Target
}

func (a *application) setItems(list []Delta) error {
	for _, d := range list {
		if err := d.checkPath(); err != nil {
			return err
		}
		if a.byPath[d.Path] != nil {
			return fmt.Errorf("%s is in the list twice", treepath.Display(d.Path))
		}
		it := &item{Delta: d}
		a.byPath[d.Path] = it
		a.items = append(a.items, it)
	}
	slices.SortFunc(a.items, func(x, y *item) int { return strings.Compare(x.Path, y.Path) })
	for _, it := range a.items {
		for dir := treepath.Parent(it.Path); dir != "" && !it.removes(); dir = treepath.Parent(dir) {
			if above := a.byPath[dir]; above != nil && !above.removes() {
				return fmt.Errorf("the list wants the file %s and also %s below it", treepath.Display(dir), treepath.Display(it.Path))
			}
		}
	}
	return nil
}

func (d Delta) checkPath() error {
	switch p := d.Path; {
	case !treepath.Valid(p) || strings.ContainsRune(p, 0):
		return treepath.Refuse(p, "it is not a path of a tree")
	case treepath.Hidden(p):
		return treepath.Refuse(p, "git's and hone's own files are never changed")
	case d.Edit && treepath.ProtectedReason(p) != "":
		return treepath.Refuse(p, "%s", treepath.ProtectedReason(p))
	case d.After.Kind == Regular && d.After.Digest == "":
		return treepath.Refuse(p, "its contents were never read")
	}
	return treepath.CheckAliases(d.Path, d.Path)
}

// change makes the changes. After an error some are made.
func (a *application) change() error {
	if err := a.inspect(); err != nil {
		return err
	}
	if err := a.stage(); err != nil {
		return err
	}
	a.staging, a.cur = a.cur, nofollow.Cursor{Root: a.tree.root, Force: a.cur.Force} // the old cursor may be in directories that were moved meanwhile
	return a.place()
}

// inspect finds out in which state each path is, and whether all can be changed.
func (a *application) inspect() error {
	for _, it := range a.items {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		in, err := a.cur.RemoveLeft(treepath.Parent(it.Path), tempName(it.Path))
		if err != nil {
			return it.failed("remove the temporary file of", err)
		}
		for _, dir := range in {
			a.touched[dir] = true
		}
		if err := a.look(it); err != nil {
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
	if len(conflicts) > 0 {
		return &ConflictError{conflicts}
	}
	return nil
}

func (a *application) look(it *item) error {
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
	switch {
	case nofollow.IsNotExist(err):
		return nil
	case err != nil:
	case info.Mode.IsDir():
		it.clear = []clearing{{it.Path, info.Mode.Perm()}}
	case info.Mode&fs.ModeSymlink != 0:
		it.found.Kind = Symlink
		it.found.Target, err = a.cur.Readlink(it.Path)
	case !info.Mode.IsRegular():
		it.found.Kind = Other
	default:
		it.found = Entry{Path: it.Path, Kind: Regular, Mode: info.Mode.Perm(), Size: info.Size, Digest: a.tree.Unread(info.Size, info.Modified)}
		if it.found.Digest == "" {
			err = a.read(&it.found)
		}
		if errors.Is(err, fs.ErrPermission) {
			err = nil // without a digest
		}
	}
	if err != nil {
		return nofollow.ReadError(it.Path, err)
	}
	it.info = &info
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
	if len(it.clear) == 0 {
		return true, nil
	}
	// The directory may contain only what is removed, and such directories.
	err = a.cur.Walk(it.Path, func(path string, info nofollow.Info, err error) error {
		in := a.byPath[path]
		switch {
		case err != nil:
			return nofollow.ReadError(path, err)
		case info.Mode.IsDir() && !treepath.Hidden(path):
			it.clear = append(it.clear, clearing{path, info.Mode.Perm()})
		case in == nil || !in.removes():
			return fs.ErrExist
		}
		return nil
	})
	if err == fs.ErrExist {
		return false, nil
	}
	return err == nil, err
}

func (a *application) stage() error {
	var denied *DeniedError // of all paths that may not be written
	for _, it := range a.items {
		if it.done || it.removes() || it.changesOnlyMode() {
			continue
		}
		if err := a.tree.step("write %s", it.Path); err != nil {
			return err
		}
		it.staged = true // even a failed write may leave a file
		err := a.write(it, it.After)
		one, ok := errors.AsType[*DeniedError](err)
		switch {
		case ok && denied == nil:
			denied = one
		case ok:
			maps.Copy(denied.Why, one.Why)
		case err != nil:
			return err
		}
	}
	if denied != nil {
		return denied
	}
	return a.tree.step("staged")
}

func (a *application) write(it *item, state Entry) error {
	failed := func(err error) error {
		if _, refused := errors.AsType[*treepath.RefusedError](err); refused {
			return err
		}
		return it.failed("write", err)
	}
	a.touched[it.base] = true
	if state.Kind == Symlink {
		if err := a.cur.Symlink(state.Target, it.temp()); err != nil {
			return failed(err)
		}
		return nil
	}
	content, err := a.open(state.Digest)
	if err != nil {
		return fmt.Errorf("the contents of %s: %w", treepath.Display(it.Path), err)
	}
	defer content.Close()
	var replaces *nofollow.Info
	if it.info != nil && it.info.Mode.IsRegular() {
		replaces = it.info
	}
	f, err := a.cur.Create(it.temp(), replaces)
	if err != nil {
		return failed(err)
	}
	sum := sha256.New()
	_, err = io.CopyBuffer(io.MultiWriter(f, sum), nofollow.UntilDone(a.ctx, content), a.buffer())
	if got := hex.EncodeToString(sum.Sum(nil)); err == nil && got != state.Digest {
		err = fmt.Errorf("the stored contents have digest %s, not %s", got, state.Digest)
	}
	if err == nil {
		err = f.Chmod(state.Mode.Perm())
	}
	if err == nil && !a.tree.scratch {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return failed(err)
	}
	return nil
}

func (a *application) place() error {
	for _, it := range slices.Backward(a.items) {
		if it.done || !it.removes() {
			continue
		}
		if err := a.confirm("remove", it); err != nil {
			return err
		}
		if err := a.cur.Remove(it.Path); err != nil {
			return it.failed("remove", err)
		}
		a.changed(it)
	}
	for _, it := range a.items {
		for _, c := range slices.Backward(it.clear) {
			if err := a.tree.step("clear %s", c.path); err != nil {
				return err
			}
			if err := a.cur.RemoveDir(c.path); err != nil {
				return it.failed("make room for", err)
			}
			a.touched[treepath.Parent(c.path)] = true
			a.cleared = slices.Insert(a.cleared, 0, c)
			it.info = nil
		}
	}
	for _, it := range a.items {
		if it.done || it.removes() {
			continue
		}
		if err := a.makeDirs(it); err != nil {
			return err
		}
		if err := a.confirm("place", it); err != nil {
			return err
		}
		var err error
		if it.changesOnlyMode() {
			err = a.cur.Chmod(it.Path, *it.info, it.After.Mode)
		} else {
			err = a.cur.Place(it.temp(), it.Path)
		}
		if err != nil {
			return it.failed("replace", err)
		}
		a.changed(it)
	}
	return nil
}

func (a *application) changed(it *item) {
	it.staged = false
	a.touched[treepath.Parent(it.Path)] = true
	a.placed = append(a.placed, it)
}

// confirm returns a conflict if a path is not as it was found.
func (a *application) confirm(step string, it *item) error {
	if err := a.tree.step("%s %s", step, it.Path); err != nil {
		return err
	}
	info, err := a.cur.Lstat(it.Path)
	switch _, refused := errors.AsType[*treepath.RefusedError](err); {
	case refused && it.blocked == "":
		return err
	case refused: // what blocks it is an item too
		return nil
	case nofollow.IsNotExist(err) && it.info == nil:
		return nil
	case transient.Is(err):
		return nofollow.ReadError(it.Path, err)
	case err != nil || it.info == nil || !info.IsSame(*it.info):
		return &ConflictError{[]string{it.Path}}
	}
	return nil
}

func (a *application) makeDirs(it *item) error {
	dir := treepath.Parent(it.Path)
	for {
		err := a.cur.Enter(dir)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		next := below(a.cur.Path(), dir)
		if err := a.tree.step("make %s", next); err != nil {
			return err
		}
		if err := a.cur.MakeDir(next); err != nil {
			return it.failed("make the directory of", err)
		}
		a.touched[treepath.Parent(next)] = true
		a.made = append(a.made, next)
	}
}

// below returns the first path on the way from a directory to a path below it.
func below(dir, path string) string {
	rest := strings.TrimPrefix(path[len(dir):], "/")
	name, _, _ := strings.Cut(rest, "/")
	return treepath.Join(dir, name)
}

// removeDir removes a directory if it is empty and this process may. Any other stays.
func (a *application) removeDir(path string) error {
	if err := a.cur.RemoveDir(path); transient.Is(err) {
		return fmt.Errorf("remove %s: %w", treepath.Display(path), nofollow.WithoutPath(err))
	}
	a.touched[treepath.Parent(path)] = true
	return nil
}

func (a *application) sweep() error {
	emptied := map[string]bool{}
	for _, it := range a.items {
		for dir := treepath.Parent(it.Path); dir != "" && it.removes() && !it.Edit; dir = treepath.Parent(dir) {
			emptied[dir] = true
		}
	}
	for _, dir := range slices.Backward(sortedKeys(emptied)) {
		if err := a.tree.step("sweep %s", dir); err != nil {
			return err
		}
		if err := a.removeDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func (a *application) sync() error {
	if a.tree.scratch {
		return nil
	}
	for _, dir := range sortedKeys(a.touched) {
		err := a.cur.Enter(dir)
		if nofollow.IsAbsent(err) {
			continue
		}
		if err := a.tree.step("sync %s", dir); err != nil {
			return err
		}
		if err == nil {
			err = a.cur.Sync()
		}
		if err != nil {
			return fmt.Errorf("sync %s: %w", treepath.Display(dir), nofollow.WithoutPath(err))
		}
	}
	return nil
}

// asFact returns a conflict if another process put a link or a file in the place of a directory.
func (a *application) asFact(err error) error {
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
	return &ConflictError{paths}
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
