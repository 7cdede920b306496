// Package restore brings paths of a tree into a wanted state, all or none.
//
// [Paths] is the only entry point. Undo, and hone after a command that changed
// protected files, use it to bring files into the state of a manifest.
package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"hone/workspace"
	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// Target is one path to restore, with its wanted state. A state is an entry of
// a manifest. Only its kind, permission bits, digest and link target count.
type Target struct {
	Path string          // as manifests spell it
	Want workspace.Entry // the wanted state; zero removes the path
	// From are the states that may be replaced. The zero Entry means that the
	// path does not exist. Nil allows any state whose contents can be opened.
	// An entry without a digest allows replacing an unreadable file of that
	// size and those permission bits, which cannot be rolled back.
	From []workspace.Entry
}

// Paths brings every path of the list into the wanted state, or none, and
// returns the paths that it changed, sorted. A path already in the wanted state
// is left alone. open returns contents by digest; its error wraps
// fs.ErrNotExist if the contents are not stored.
//
// Paths inspects everything before it writes anything. It reports all paths
// that are neither in the wanted state nor in one that may be replaced as one
// [*workspace.ConflictError]. A directory counts as absent, because manifests
// have no entries for directories. It is removed to make room for a file if the
// list removes everything in it except empty directories. Anything that is
// neither a regular file nor a symlink is a conflict, whether wanted or found.
// Paths never touches hone's own files, .git at any depth, or paths behind a
// symlink.
//
// Before the first change, Paths writes, verifies and syncs all new contents to
// temporary files. They are next to their targets or, if directories are
// missing, in a new directory that is later renamed as a whole. Then it removes
// paths, deepest first, and then places new files, each with one rename. If
// only the permission bits differ, it changes only these. It removes
// directories that the removals, including those of an earlier call, left
// empty, if this process may. After an error that follows the first change, it
// restores the old contents using open; if that fails, the error is a
// [*workspace.PartialError]. After a crash each path is in the wanted state or
// its previous one, so the same call completes the work and removes the
// temporary files.
//
// Canceling the context has no effect after the first change. Restored files
// have new modification times. What [workspace.Tree.Apply] says about
// attackers, owners and hard links holds here too. The cost depends on the list
// and its files, not on the tree; files of any size are streamed. Two
// concurrent calls on a tree may each report a conflict with the other.
func Paths(ctx context.Context, tree *workspace.Tree, list []Target, open func(digest string) (io.ReadCloser, error)) (changed []string, err error) {
	r := &restorer{tree: tree, open: open}
	return r.restore(ctx, list)
}

// restorer is the state of one call of Paths.
type restorer struct {
	tree      *workspace.Tree
	open      func(string) (io.ReadCloser, error)
	pins      nofollow.Pins
	items     []*item // sorted by path
	byPath    map[string]*item
	reversals []reversal // of the changes so far, in order
	buf       []byte

	// fault is called before every step. An error from it counts as the failure
	// of that step. Only tests set it.
	fault func(step string) error
}

func (r *restorer) restore(ctx context.Context, list []Target) (changed []string, err error) {
	r.pins, r.buf = nofollow.Pins{Root: r.tree.Root(), Scratch: r.tree.IsScratch()}, make([]byte, 64<<10)
	defer r.pins.Close()
	if err = r.setItems(list); err == nil {
		changed, err = r.run(ctx)
	}
	if err != nil {
		return changed, fmt.Errorf("restore: %w", err)
	}
	return changed, nil
}

func (r *restorer) step(format string, args ...any) error {
	if r.fault == nil {
		return nil
	}
	return r.fault(fmt.Sprintf(format, args...))
}

type item struct {
	Target
	found       workspace.Entry // current state; zero for nothing or a directory
	info        fs.FileInfo     // of the path; nil if it does not exist
	dirsToClear []clearing      // directories in the place of a file, parents first
	missingDir  string          // first parent that is not a directory; empty if all exist
	blocked     bool            // missingDir exists but is not a directory

	done   bool // it already was in the wanted state
	staged bool // the temporary file may exist
	placed bool // this call brought it into the wanted state
}

type clearing struct {
	path string
	mode fs.FileMode
}

type reversal struct {
	path string
	run  func() error
}

func (it *item) isRemoval() bool { return it.Want.Kind == "" }

func (it *item) modeOnly() bool {
	return it.Want.Kind == workspace.Regular && it.found.Kind == workspace.Regular && it.Want.Digest == it.found.Digest
}

func sameState(e, o workspace.Entry) bool {
	switch {
	case e.Kind != o.Kind:
		return false
	case e.Kind == workspace.Regular:
		return e.Digest == o.Digest && e.Mode == o.Mode && (e.Digest != "" || e.Size == o.Size)
	}
	return e.Target == o.Target
}

func (r *restorer) setItems(list []Target) error {
	r.byPath = make(map[string]*item, len(list))
	for _, one := range list {
		if err := one.validate(); err != nil {
			return err
		}
		if r.byPath[one.Path] != nil {
			return fmt.Errorf("%s is in the list twice", treepath.Display(one.Path))
		}
		it := &item{Target: one}
		r.byPath[one.Path] = it
		r.items = append(r.items, it)
	}
	slices.SortFunc(r.items, func(a, b *item) int { return strings.Compare(a.Path, b.Path) })
	for _, it := range r.items {
		for dir := treepath.Parent(it.Path); dir != "" && !it.isRemoval(); dir = treepath.Parent(dir) {
			if above := r.byPath[dir]; above != nil && !above.isRemoval() {
				return fmt.Errorf("the list wants the file %s and also %s below it", treepath.Display(dir), treepath.Display(it.Path))
			}
		}
	}
	return nil
}

func (one Target) validate() error {
	if p := one.Path; !treepath.Valid(p) || strings.ContainsRune(p, 0) {
		return treepath.Refuse(p, "it is not a path of a tree")
	}
	if treepath.Hidden(one.Path) {
		return treepath.Refuse(one.Path, "git's and hone's own files are never restored")
	}
	if err := treepath.CheckAliases(one.Path, one.Path); err != nil {
		return err
	}
	if one.Want.Kind == workspace.Regular && one.Want.Digest == "" {
		return treepath.Refuse(one.Path, "its contents were never read")
	}
	return nil
}

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
	return changed, r.pins.Sync(r.step)
}
