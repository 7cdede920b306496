// Package putback protects the paths of a policy that a wall alone cannot protect while a
// command runs: it restores them afterwards, and puts placeholders where nothing may be.
// What it owes is recorded before a command starts, outside of what commands may write:
// [Recover] finishes the work of a process that was killed.
//
// Each guard has a record of its own, which is on the disk before its first placeholder is created and
// until everything is restored after its last command. Its process locks the record meanwhile: one that is not locked
// is of a process that was killed, or could not do all it owes. A mutex orders the starts and ends of
// commands and the recoveries of all processes of the user, so that each sees which placeholders the others need.
package putback

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
// guards that restore the same paths must not be used at the same time.
//
// Where a wall can protect a file that exists, a placeholder stands for a missing one instead. It
// is created before the first command, and removed after the last one of all guards and
// processes that need it. What others put in its place meanwhile stays.
//
// A nil Guard protects nothing.
type Guard struct {
	entries      []*entry      // outer ones first
	placeholders []placeholder // outer ones first
	aside        string
	record       string // its path; it exists while a command runs

	mu     sync.Mutex
	active int
	made   []placeholder // those that stand for this guard
	lock   func()        // unlocks the record; nil if it is not locked
	failed error         // of a restoration; no other command may run
}

// New returns a guard of what the wall of a policy alone cannot protect, and the entries of the
// policy as commands find them: where nothing exists and a placeholder can be created, the wall
// protects that like other files.
func New(entries []sandbox.Entry, p sandbox.Policy) (*Guard, []sandbox.Entry, error) {
	g := &Guard{}
	entries = slices.Clone(entries)
	g.find(entries, p)
	if g.idle() {
		return g, entries, nil
	}
	err := os.MkdirAll(p.Aside, 0o700)
	if err == nil {
		g.aside, err = filepath.EvalSymlinks(p.Aside)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make the directory for replaced files: %w", err)
	}
	for _, e := range g.entries {
		if sandbox.Within(e.Dir, g.aside) {
			return nil, nil, fmt.Errorf("the directory %s, for files that commands put in place of protected ones, is in %s, which commands may write", p.Aside, e.Dir)
		}
	}
	g.record = filepath.Join(g.aside, recordPrefix+rand.Text())
	return g, entries, nil
}

func (g *Guard) idle() bool { return len(g.entries)+len(g.placeholders) == 0 }

// find finds what the wall does not protect. The entries that get a placeholder exist from now on.
func (g *Guard) find(entries []sandbox.Entry, p sandbox.Policy) {
	for i, e := range entries {
		root, direct := writableAround(entries, e.Path)
		switch {
		case e.Placeholder != nil && direct && p.Wall.Namespaces() && (!e.Absent || creatable(e.Path)):
			g.placeholders = addPlaceholder(g.placeholders, root, e)
			if e.Absent {
				entries[i].Absent, entries[i].Dir = false, e.Placeholder.Dir
			}
		case root != "" && e.Access == sandbox.AccessRead:
			added := newEntry(entries, root, e.Path)
			added.walled = p.Wall.Mounts() && !e.Absent && e.Link == ""
			g.entries = append(g.entries, added)
		}
	}
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
	if g == nil || g.idle() {
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
	if g.active == 0 {
		g.made = nil
		for _, e := range g.entries {
			e.Found = nil
		}
	}
	var next []*entry
	for _, e := range g.entries {
		if e.Found == nil && !e.isWalled() {
			next = append(next, e)
		}
	}
	if g.active > 0 && len(next) == 0 {
		g.active++
		return nil
	}
	others, err := openBook(g.aside, g.record)
	if err != nil {
		return err
	}
	defer others.unlock()
	if err = g.begin(next, others.standing); err == nil {
		g.active++
	} else if g.active == 0 {
		err = errors.Join(err, g.end(others.needed))
	}
	return err
}

// It records what was found before it creates a placeholder.
func (g *Guard) begin(next []*entry, s standing) (err error) {
	if g.active == 0 {
		if g.made, err = missing(g.placeholders, s); err != nil {
			return err
		}
	}
	s.add(g.made)
	if len(g.made)+len(next) == 0 { // nothing is owed
		return nil
	}
	room := int64(maxKept)
	for _, e := range next {
		e.standing = s
		if err := e.inspect(&room); err != nil {
			e.Found = nil
			return fmt.Errorf("protect %s: %w", filepath.Join(e.Dir, e.Path), err)
		}
	}
	if err := g.write(); err != nil {
		return fmt.Errorf("record the protected paths: %w", err)
	}
	for _, p := range g.made {
		if err := p.create(); err != nil {
			return fmt.Errorf("protect files in %s: %w", p.Root, err)
		}
	}
	return nil
}

func (g *Guard) write() error {
	inspected := slices.DeleteFunc(slices.Clone(g.entries), func(e *entry) bool { return e.Found == nil })
	if err := writeRecord(g.record, record{inspected, g.made}); err != nil {
		return err
	}
	g.release()
	var err error
	if g.lock, err = sandbox.Lock(g.record); errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

func (g *Guard) release() {
	if g.lock != nil {
		g.lock()
		g.lock = nil
	}
}

// The command and all that it started have ended. The changes that could not be undone are returned too. If the
// records were removed, this process still does what it owes, and says so.
func (g *Guard) leave() ([]sandbox.Restored, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
	others, err := openBook(g.aside, g.record)
	g.failed = errors.Join(g.failed, err)
	switch {
	case ignoreMissing(err) != nil:
		return nil, g.failed
	case err != nil:
		others = &book{unlock: func() {}, standing: standing{}}
	}
	defer others.unlock()
	others.standing.add(g.made)
	restored, err := restore(g.entries, g.aside, others.standing)
	g.failed = errors.Join(g.failed, err)
	if g.active == 0 {
		g.failed = errors.Join(g.failed, g.end(others.needed))
	}
	return restored, g.failed
}

// The record stays if something is owed.
func (g *Guard) end(needed standing) error {
	defer g.release()
	err := remove(g.made, needed)
	if err == nil && g.failed == nil {
		err = ignoreMissing(os.Remove(g.record))
	}
	return err
}
