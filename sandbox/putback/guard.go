// Package putback restores the paths of a policy that a wall cannot protect while a
// command runs. It records what was there outside of what commands may write:
// [Settle] finishes the work of a process that was killed.
package putback

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	"hone/sandbox"
	"hone/sandbox/internal/record"
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
// It keeps at most maxKept bytes of each writable directory; of other files it only
// reports that they changed. It does not keep times, extended attributes, access
// control lists, FIFOs, sockets, devices and the owners of directories that still
// exist. A file is restored under its protected name only.
//
// Commands that run at the same time share one inspection, made before the first
// of them, and each one's end restores what any of them changed until then. Two
// guards of the same paths must not be used at the same time.
//
// A nil Guard protects nothing.
type Guard struct {
	trees  []*tree
	aside  string
	record string // its path, without its ending

	mu       sync.Mutex
	active   int
	recorded bool  // the record contains the last inspection
	failed   error // of a restoration; no other command may run
}

// The record of a guard is armed while a command runs. Between commands it is idle,
// and stays so that it is written only if the protected paths have changed.
const (
	recordPrefix = "protected-"
	armed        = ".armed"
	idle         = ".idle"
)

// New returns a guard of the entries of a policy that its wall cannot protect. Aside
// is that of the policy.
func New(entries []sandbox.Entry, aside string) (*Guard, error) {
	g := &Guard{trees: treesOf(entries)}
	if len(g.trees) == 0 {
		return g, nil
	}
	if aside == "" {
		return nil, errors.New("the policy names no directory for replaced files")
	}
	err := os.MkdirAll(aside, 0o700)
	if err == nil {
		g.aside, err = filepath.EvalSymlinks(aside)
	}
	if err != nil {
		return nil, fmt.Errorf("make the directory for replaced files: %w", err)
	}
	for _, t := range g.trees {
		if sandbox.Within(t.Path, g.aside) {
			return nil, fmt.Errorf("the directory %s, for files that commands put in place of protected ones, is in %s, which commands may write", aside, t.Path)
		}
	}
	g.record = filepath.Join(g.aside, recordPrefix+rand.Text())
	return g, nil
}

// Around inspects the protected paths, runs a command, and restores what changed. If
// it fails before the command, that does not run. If it fails afterwards, no other
// command runs, and [Settle] tries again in the next process.
func (g *Guard) Around(run func() (sandbox.Result, error)) (sandbox.Result, error) {
	if g == nil || len(g.trees) == 0 {
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

// enter inspects the paths before the first command.
func (g *Guard) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.failed
	if err == nil && g.active == 0 {
		err = g.inspect()
	}
	if err == nil {
		g.active++
	}
	return err
}

// inspect inspects and records the protected paths.
func (g *Guard) inspect() error {
	for _, t := range g.trees {
		found, err := t.inspect()
		if err != nil {
			return fmt.Errorf("protect files in %s: %w", t.Path, err)
		}
		g.recorded = g.recorded && reflect.DeepEqual(found, t.Items)
		t.Items = found
	}
	if g.recorded && os.Rename(g.record+idle, g.record+armed) == nil {
		return nil
	}
	if err := record.Write(g.record+armed, g.trees); err != nil {
		return fmt.Errorf("record the protected paths: %w", err)
	}
	g.recorded = true
	return nil
}

// leave restores the protected paths after a command and all that it started have
// ended. It also returns the changes that it could not undo.
func (g *Guard) leave() ([]sandbox.Restored, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
	return g.putBack()
}

// putBack restores all protected paths, and disarms the record if no command runs.
func (g *Guard) putBack() ([]sandbox.Restored, error) {
	r := &restorer{aside: g.aside}
	for _, t := range g.trees {
		r.all(t)
	}
	g.failed = errors.Join(append(r.errs, g.failed)...)
	if g.failed == nil && g.active == 0 {
		g.failed = os.Rename(g.record+armed, g.record+idle)
	}
	return r.restored, g.failed
}

// Close removes the record. If a restoration failed it leaves that for [Settle].
func (g *Guard) Close() error {
	if g == nil || len(g.trees) == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.active > 0 {
		return errors.New("cannot stop protecting paths while a command runs")
	}
	return record.IgnoreMissing(os.Remove(g.record + idle))
}

// Settle restores the protected paths that commands of earlier processes changed,
// from the records in aside, which no living process may use. It leaves a record that
// it cannot read or restore unchanged, and returns an error that names it.
func Settle(aside string) ([]sandbox.Restored, error) {
	files, err := os.ReadDir(aside)
	errs := []error{record.IgnoreMissing(err)}
	var restored []sandbox.Restored
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), recordPrefix) {
			continue
		}
		path := filepath.Join(aside, f.Name())
		changes, err := settle(path)
		restored = append(restored, changes...)
		if err != nil {
			err = fmt.Errorf("restore what a command changed before hone was stopped: %s: %w; check the paths that it names, then move the file away", path, err)
		}
		errs = append(errs, err)
	}
	return restored, errors.Join(errs...)
}

// settle restores from a record, if it is armed, and removes it.
func settle(path string) (restored []sandbox.Restored, err error) {
	name, isArmed := strings.CutSuffix(path, armed)
	if !isArmed {
		return nil, record.IgnoreMissing(os.Remove(path)) // another record of the guard may have been settled
	}
	g := &Guard{aside: filepath.Dir(path), record: name}
	if err = record.Read(path, &g.trees); err == nil {
		restored, err = g.putBack()
	}
	if err == nil {
		err = g.Close()
	}
	return restored, err
}
