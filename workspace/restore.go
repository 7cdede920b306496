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

// Restoration is one path that Restore puts into a state. States are entries of
// manifests, of which kind, permission bits, digest and link target count.
type Restoration struct {
	Path string // as manifests spell it
	Want Entry  // zero: nothing shall be there
	// From are the states that may be replaced; a zero Entry is "nothing is
	// there". Nil: whatever is there, provided that its contents can be
	// opened. An entry without a digest allows the replacing of a file of that
	// size and those bits that cannot be read, and so not be put back either.
	From []Entry
}

// Restore puts every path of the list into the wanted state, or none, and
// returns the paths that it changed, sorted. One that already is as wanted is
// left. Open gives contents by their digest; an error of it that is
// fs.ErrNotExist says that they are not kept.
//
// Everything is looked at before anything is written, and all paths that are
// neither as wanted nor in a state that may be replaced come as one
// [*ConflictError]. A directory stands for nothing, as it has no entry in
// manifests; it makes way for a file when all that it holds is removed by the
// same list, or is empty directories. What is neither a regular file nor a
// symlink is a conflict, wanted or in the way. Hone's own files, .git at any
// depth and paths behind a symlink are never touched.
//
// New contents are written, verified and synced to temporary files before the
// first path changes, beside their targets or, below directories that are
// missing, in a directory that is renamed as a whole. Then come the removals,
// the deepest first, then the writing, each path by one rename; where
// permission bits are all that differs they are changed alone. Directories
// that hold nothing once the removals are made are removed, where this process
// may, also when an earlier call removed the files. An error after
// the first change puts back what was there, from what open gives; what that
// cannot do is a [*PartialError]. After a crash each path is in the wanted
// state or in one that it was in before, so that the same call goes on, and
// removes the temporary files as well.
//
// The context is heeded until the first change. Modification times are those of
// the writing. What Apply says of attackers, owners and hard links holds here
// too. The cost follows from the list and the files it names, not from the
// tree; files of any size are streamed.
func (t *Tree) Restore(ctx context.Context, list []Restoration, open func(digest string) (io.ReadCloser, error)) (changed []string, err error) {
	r := &restorer{tree: t, open: open, pins: pins{root: t.root}, buf: make([]byte, 64<<10)}
	defer r.pins.close()
	if err = r.choose(list); err == nil {
		changed, err = r.run(ctx)
	}
	if err != nil {
		return changed, fmt.Errorf("restore: %w", err)
	}
	return changed, nil
}

// restorer is one run of Restore.
type restorer struct {
	tree   *Tree
	open   func(string) (io.ReadCloser, error)
	pins   pins
	items  []*restored // sorted by path
	byPath map[string]*restored
	back   []reversal // of what was changed, in that order
	buf    []byte
}

// restored is one path on its way.
type restored struct {
	Restoration
	found Entry       // zero: nothing, or a directory
	info  fs.FileInfo // of what was found; nil: nothing
	way   []clearing  // directories that stand where a file shall be, parents first
	top   string      // where the way to the path ends; empty: its directory exists
	stop  bool        // something that is no directory stands at top

	done   bool // it was as wanted when looked at
	staged bool // the temporary file is written
	placed bool // it is as wanted, by this run
}

// clearing is a directory that has to go.
type clearing struct {
	path string
	mode fs.FileMode
}

// reversal takes back one change.
type reversal struct {
	path string
	run  func() error
}

// removal reports whether nothing shall be there.
func (it *restored) removal() bool { return it.Want.Kind == "" }

// bitsOnly reports whether only permission bits differ.
func (it *restored) bitsOnly() bool {
	return it.Want.Kind == Regular && it.found.Kind == Regular && it.Want.Digest == it.found.Digest
}

// is reports whether two entries are the same state of a path.
func (e Entry) is(o Entry) bool {
	switch {
	case e.Kind != o.Kind:
		return false
	case e.Kind == Regular:
		return e.Digest == o.Digest && e.Mode == o.Mode && (e.Digest != "" || e.Size == o.Size)
	}
	return e.Target == o.Target
}

// choose takes the list and refuses one that no tree can follow.
func (r *restorer) choose(list []Restoration) error {
	r.byPath = make(map[string]*restored, len(list))
	for _, one := range list {
		if err := one.check(); err != nil {
			return err
		}
		if r.byPath[one.Path] != nil {
			return fmt.Errorf("%s is in the list twice", display(one.Path))
		}
		it := &restored{Restoration: one}
		r.byPath[one.Path] = it
		r.items = append(r.items, it)
	}
	slices.SortFunc(r.items, func(a, b *restored) int { return strings.Compare(a.Path, b.Path) })
	for _, it := range r.items {
		for dir := parentOf(it.Path); dir != "" && !it.removal(); dir = parentOf(dir) {
			if above := r.byPath[dir]; above != nil && !above.removal() {
				return fmt.Errorf("%s shall be there, and %s below it", display(dir), display(it.Path))
			}
		}
	}
	return nil
}

// check refuses a path that Files never lists, and contents that are not known.
func (one Restoration) check() error {
	if p := one.Path; p == "." || !fs.ValidPath(toValid(p)) || strings.ContainsRune(p, 0) {
		return refuse(p, "it is no path of a tree")
	}
	if hidden(one.Path) {
		return refuse(one.Path, "git's and hone's own files are never restored")
	}
	if runtime.GOOS == "windows" {
		if err := checkWindows(one.Path, one.Path); err != nil {
			return err
		}
	}
	if one.Want.Kind == Regular && one.Want.Digest == "" {
		return refuse(one.Path, "its contents were never read")
	}
	return nil
}

// run goes through the stages.
func (r *restorer) run(ctx context.Context) (changed []string, err error) {
	if err := r.lookAtAll(ctx); err != nil {
		return nil, err
	}
	if err = r.stage(ctx); err == nil {
		err = r.lookAgain()
	}
	if err != nil {
		return nil, errors.Join(err, r.takeBack())
	}
	if err := r.place(); err != nil {
		return nil, r.putBack(err)
	}
	for _, it := range r.items {
		if !it.done {
			changed = append(changed, it.Path)
		}
	}
	if err := r.sweep(); err != nil {
		return changed, err
	}
	return changed, r.pins.sync(r.step)
}

// step lets a test stop here.
func (r *restorer) step(format string, args ...any) error {
	if r.tree.fault == nil {
		return nil
	}
	return r.tree.fault(fmt.Sprintf(format, args...))
}
