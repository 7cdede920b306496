// Package putback protects the paths of a policy that a wall alone cannot protect while a
// command runs: it restores them afterwards, and puts placeholders where nothing may be.
// It records what was there outside of what commands may write:
// [Recover] and [RecoverPlaceholders] finish the work of a process that was killed.
package putback

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"hone/sandbox"
)

// Guard restores what commands change of the read-only paths in writable directories
// (rulings G9 and S6). It keeps:
//
//   - of a file or symlink: its contents, mode and owner; of a directory: the same of
//     everything in it, and that it contains nothing else;
//   - of a path that does not exist: that it does not exist;
//   - of a parent directory of such a path: that it is a directory at its path,
//     and its owner's permissions. Its other contents are not protected.
//
// It keeps at most maxKept bytes; of other files it only reports that they changed. It
// does not keep times, extended attributes, access control lists, FIFOs, sockets,
// devices and the owners of directories that still exist. A file is restored under its
// protected name only.
//
// Commands that run at the same time share one inspection, made before the first
// of them, and each one's end restores what any of them changed until then. Two
// guards of the same paths must not be used at the same time.
//
// A nil Guard protects nothing.
type Guard struct {
	entries []*entry
	walled  []*entry // what a wall protects as long as it exists: once it is removed, it is one of entries
	aside   string
	record  string // its path; it exists while a command runs
	dirs    []*dir // those with placeholders

	mu     sync.Mutex
	active int
	failed error // of a restoration; no other command may run
}

const recordPrefix = "protected-"

// New returns a guard of what the wall of a policy alone cannot protect, and the entries of the
// policy as commands find them: where nothing exists and a placeholder can be created, the wall
// protects that like other files.
func New(entries []sandbox.Entry, p sandbox.Policy) (*Guard, []sandbox.Entry, error) {
	g := &Guard{}
	entries = slices.Clone(entries)
	placeholders := g.find(entries, p)
	for _, root := range slices.Sorted(maps.Keys(placeholders)) {
		if err := os.MkdirAll(p.Records, 0o700); err != nil {
			return nil, nil, fmt.Errorf("make the directory for records of placeholders: %w", err)
		}
		d, err := newDir(p.Records, root, placeholders[root])
		if err != nil {
			return nil, nil, err
		}
		g.dirs = append(g.dirs, d)
	}
	all := slices.Concat(g.entries, g.walled)
	if len(all) == 0 {
		return g, entries, nil
	}
	err := os.MkdirAll(p.Aside, 0o700)
	if err == nil {
		g.aside, err = filepath.EvalSymlinks(p.Aside)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make the directory for replaced files: %w", err)
	}
	for _, e := range all {
		if sandbox.Within(e.Dir, g.aside) {
			return nil, nil, fmt.Errorf("the directory %s, for files that commands put in place of protected ones, is in %s, which commands may write", p.Aside, e.Dir)
		}
	}
	g.record = filepath.Join(g.aside, recordPrefix+rand.Text())
	return g, entries, nil
}

// find finds what the wall does not protect, and returns the placeholders by the directory that commands
// may write and their path. The entries that get one exist from now on.
func (g *Guard) find(entries []sandbox.Entry, p sandbox.Policy) map[string]map[string]sandbox.Placeholder {
	placeholders := map[string]map[string]sandbox.Placeholder{}
	for i, e := range entries {
		root, direct := writableAround(entries, e.Path)
		filled := e.Placeholder != nil && direct && p.Records != "" && p.Wall.Namespaces() && (!e.Absent || creatable(e.Path))
		if filled {
			if placeholders[root] == nil {
				placeholders[root] = map[string]sandbox.Placeholder{}
			}
			placeholders[root][e.Path] = *e.Placeholder
		}
		switch {
		case filled && e.Absent:
			entries[i].Absent, entries[i].Dir = false, e.Placeholder.Dir
		case root != "" && e.Access == sandbox.AccessRead && (!p.Wall.Mounts() || e.Absent || e.Link != ""):
			g.entries = append(g.entries, newEntry(entries, root, e.Path))
		case root != "" && e.Access == sandbox.AccessRead && !filled:
			g.walled = append(g.walled, newEntry(entries, root, e.Path))
		}
	}
	return placeholders
}

// writableAround returns the outermost writable directory around a path; empty if there is none. direct
// means that the innermost one is writable, too. Entries are sorted, outer ones first.
func writableAround(entries []sandbox.Entry, path string) (root string, direct bool) {
	for _, e := range entries {
		if e.Absent || e.Link != "" || e.Path == path || !sandbox.Within(e.Path, path) {
			continue
		}
		if direct = e.Access == sandbox.AccessWrite; direct && root == "" {
			root = e.Path
		}
	}
	return root, direct
}

// Around creates the placeholders, inspects the protected paths, runs a command, restores what
// changed and removes the placeholders. If it fails before the command, that does not run. If it
// cannot restore something afterwards, no other command runs, and [Recover] tries again in the next process.
func (g *Guard) Around(run func() (sandbox.Result, error)) (sandbox.Result, error) {
	if g == nil || len(g.entries)+len(g.walled)+len(g.dirs) == 0 {
		return run()
	}
	if err := g.enter(); err != nil {
		return sandbox.Result{}, err
	}
	result, err := run()
	restored, failed := g.leave()
	result.Restored = restored
	if failed != nil {
		err = errors.Join(err, failed)
	}
	return result, err
}

func (g *Guard) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed != nil {
		return g.failed
	}
	removed := g.removed()
	if g.active == 0 {
		if err := g.begin(); err != nil {
			return errors.Join(err, g.empty())
		}
	} else if len(removed) > 0 {
		if err := g.inspect(removed); err != nil {
			return err
		}
	}
	g.active++
	return nil
}

// removed returns what a wall has protected and no longer exists. From now on it is protected as what did not exist
// when the walls were built.
func (g *Guard) removed() (removed []*entry) {
	g.walled = slices.DeleteFunc(g.walled, func(e *entry) bool {
		_, err := os.Lstat(filepath.Join(e.Dir, e.Path))
		gone := errors.Is(err, fs.ErrNotExist)
		if gone {
			removed = append(removed, e)
		}
		return gone
	})
	if g.entries = append(g.entries, removed...); len(removed) > 0 {
		slices.SortFunc(g.entries, func(a, b *entry) int { // outer ones first
			return strings.Compare(filepath.Join(a.Dir, a.Path), filepath.Join(b.Dir, b.Path))
		})
	}
	return removed
}

func (g *Guard) begin() error {
	for _, d := range g.dirs {
		if err := d.fill(); err != nil {
			return fmt.Errorf("protect files in %s: %w", d.root, err)
		}
	}
	if len(g.entries) == 0 {
		return nil
	}
	return g.inspect(g.entries)
}

// It records all entries.
func (g *Guard) inspect(entries []*entry) error {
	room := int64(maxKept)
	for _, e := range entries {
		if err := e.inspect(&room); err != nil {
			return fmt.Errorf("protect %s: %w", filepath.Join(e.Dir, e.Path), err)
		}
	}
	if err := writeRecord(g.record, g.entries); err != nil {
		return fmt.Errorf("record the protected paths: %w", err)
	}
	return nil
}

// The command and all that it started have ended. The record is removed after the last one. The changes that could not be
// undone are returned too.
func (g *Guard) leave() ([]sandbox.Restored, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
	restored, err := restore(g.entries, g.aside)
	g.failed = errors.Join(g.failed, err)
	if g.active > 0 {
		return restored, g.failed
	}
	if g.failed == nil && len(g.entries) > 0 {
		g.failed = os.Remove(g.record)
	}
	return restored, errors.Join(g.failed, g.empty())
}

func (g *Guard) empty() error {
	var errs []error
	for _, d := range g.dirs {
		if err := d.empty(); err != nil {
			errs = append(errs, fmt.Errorf("remove placeholders in %s: %w", d.root, err))
		}
	}
	return errors.Join(errs...)
}

// Close removes the records of placeholders, unless another process needs them. No command may be running.
func (g *Guard) Close() error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, d := range g.dirs {
		errs = append(errs, d.forget())
	}
	return errors.Join(errs...)
}

// Recover restores the protected paths that commands of earlier processes changed,
// from the records in aside, which is the Aside of their policy and which no living process may use.
// Call it before anything is read that a command may have changed: a configuration, and what the
// next policy names. It leaves a record that it cannot read or restore unchanged, and returns an
// error that names it.
func Recover(aside string) ([]sandbox.Restored, error) {
	files, err := os.ReadDir(aside)
	err = ignoreMissing(err)
	var all []sandbox.Restored
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), recordPrefix) {
			continue
		}
		path := filepath.Join(aside, f.Name())
		var entries []*entry
		var failed error
		if filepath.Ext(path) == "" { // the temporary file of a record is only removed
			failed = readRecord(path, &entries)
		}
		if failed == nil {
			var restored []sandbox.Restored
			restored, failed = restore(entries, aside)
			all = append(all, restored...)
		}
		if failed == nil {
			failed = os.Remove(path)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("restore what a command changed before hone was stopped: %s: %w; check the paths that it names, then move the file away", path, failed))
		}
	}
	return all, err
}
