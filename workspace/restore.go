package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strings"
)

// Restoration is one path for Restore, with its wanted state. A state is an
// entry of a manifest, of which only kind, permission bits, digest and link
// target count.
type Restoration struct {
	Path string // as manifests spell it
	Want Entry  // the wanted state; zero removes the path
	// From are the states that may be replaced. The zero Entry means that the
	// path does not exist. Nil allows any state whose contents can be opened.
	// An entry without a digest allows replacing an unreadable file of that
	// size and those permission bits, which cannot be rolled back.
	From []Entry
}

// Restore brings every path of the list into the wanted state, or none, and
// returns the paths that it changed, sorted. A path already in the wanted state
// is left alone. open returns contents by digest; its error wraps
// fs.ErrNotExist if the contents are not stored.
//
// Restore inspects everything before it writes anything. It reports all paths
// that are neither in the wanted state nor in one that may be replaced as one
// [*ConflictError]. A directory counts as absent, because manifests have no
// entries for directories. It is removed to make room for a file if the list
// removes everything in it except empty directories. Anything that is neither a
// regular file nor a symlink is a conflict, whether wanted or found. Restore
// never touches hone's own files, .git at any depth, or paths behind a symlink.
//
// Before the first change, Restore writes, verifies and syncs all new contents
// to temporary files. They are next to their targets or, if directories are
// missing, in a new directory that is later renamed as a whole. Then it removes
// paths, deepest first, and then places new files, each with one rename. If
// only the permission bits differ, it changes only these. It removes
// directories that the removals, including those of an earlier call, left
// empty, if this process may. After an error that follows the first change, it
// restores the old contents using open; if that fails, the error is a
// [*PartialError]. After a crash each path is in the wanted state or its
// previous one, so the same call completes the work and removes the temporary
// files.
//
// Cancelling the context has no effect after the first change. Restored files
// have new modification times. What Apply says of attackers, owners and hard
// links holds here too. The cost depends on the list and its files, not on the
// tree; files of any size are streamed.
func (t *Tree) Restore(ctx context.Context, list []Restoration, open func(digest string) (io.ReadCloser, error)) (changed []string, err error) {
	r := &restorer{tree: t, open: open, pins: pins{root: t.root}, buf: make([]byte, 64<<10)}
	defer r.pins.close()
	if err = r.setItems(list); err == nil {
		changed, err = r.run(ctx)
	}
	if err != nil {
		return changed, fmt.Errorf("restore: %w", err)
	}
	return changed, nil
}

// restorer is the state of one Restore.
type restorer struct {
	tree      *Tree
	open      func(string) (io.ReadCloser, error)
	pins      pins
	items     []*restoreItem // sorted by path
	byPath    map[string]*restoreItem
	reversals []reversal // of the changes so far, in order
	buf       []byte
}

// restoreItem is one path to restore.
type restoreItem struct {
	Restoration
	found       Entry       // current state; zero for nothing or a directory
	info        fs.FileInfo // of the path; nil if it does not exist
	dirsToClear []clearing  // directories in the place of a file, parents first
	missingDir  string      // first parent that is no directory; empty if all exist
	blocked     bool        // missingDir exists but is not a directory

	done   bool // it already was in the wanted state
	staged bool // the temporary file may exist
	placed bool // this call brought it into the wanted state
}

// clearing is a directory to remove.
type clearing struct {
	path string
	mode fs.FileMode
}

// reversal reverts one change.
type reversal struct {
	path string
	run  func() error
}

// isRemoval reports whether the path is to be removed.
func (it *restoreItem) isRemoval() bool { return it.Want.Kind == "" }

// modeOnly reports whether at most the permission bits differ.
func (it *restoreItem) modeOnly() bool {
	return it.Want.Kind == Regular && it.found.Kind == Regular && it.Want.Digest == it.found.Digest
}

// sameState reports whether two entries are the same state of a path.
func (e Entry) sameState(o Entry) bool {
	switch {
	case e.Kind != o.Kind:
		return false
	case e.Kind == Regular:
		return e.Digest == o.Digest && e.Mode == o.Mode && (e.Digest != "" || e.Size == o.Size)
	}
	return e.Target == o.Target
}

// setItems sets the items from the list. It refuses a list that no tree can
// satisfy.
func (r *restorer) setItems(list []Restoration) error {
	r.byPath = make(map[string]*restoreItem, len(list))
	for _, one := range list {
		if err := one.validate(); err != nil {
			return err
		}
		if r.byPath[one.Path] != nil {
			return fmt.Errorf("%s is in the list twice", display(one.Path))
		}
		it := &restoreItem{Restoration: one}
		r.byPath[one.Path] = it
		r.items = append(r.items, it)
	}
	slices.SortFunc(r.items, func(a, b *restoreItem) int { return strings.Compare(a.Path, b.Path) })
	for _, it := range r.items {
		for dir := parentOf(it.Path); dir != "" && !it.isRemoval(); dir = parentOf(dir) {
			if above := r.byPath[dir]; above != nil && !above.isRemoval() {
				return fmt.Errorf("the list wants the file %s and also %s below it", display(dir), display(it.Path))
			}
		}
	}
	return nil
}

// validate refuses a path that Files never lists, and wanted contents that are
// unknown.
func (one Restoration) validate() error {
	if p := one.Path; p == "." || !fs.ValidPath(toValid(p)) || strings.ContainsRune(p, 0) {
		return refusal(p, "it is not a path of a tree")
	}
	if hidden(one.Path) {
		return refusal(one.Path, "git's and hone's own files are never restored")
	}
	if runtime.GOOS == "windows" {
		if err := checkWindows(one.Path, one.Path); err != nil {
			return err
		}
	}
	if one.Want.Kind == Regular && one.Want.Digest == "" {
		return refusal(one.Path, "its contents were never read")
	}
	return nil
}

// run performs the stages of Restore in order.
func (r *restorer) run(ctx context.Context) (changed []string, err error) {
	if err := r.inspectAll(ctx); err != nil {
		return nil, err
	}
	if err = r.stage(ctx); err == nil {
		err = r.recheck()
	}
	if err != nil {
		return nil, errors.Join(err, r.removeTemps())
	}
	if err := r.place(); err != nil {
		return nil, r.rollBack(err)
	}
	for _, it := range r.items {
		if !it.done {
			changed = append(changed, it.Path)
		}
	}
	if err := r.removeEmptied(); err != nil {
		return changed, err
	}
	return changed, r.pins.sync(r.tree.step)
}
