// Package putback protects the paths of a policy that a wall cannot protect by
// itself while a command runs.
//
// A path that exists, or must not exist, is restored after the command: [Guard]
// says what is kept of it. A path that must not exist and whose placeholder is
// harmless gets that placeholder before the command, because a wall can mount only
// what exists.
//
// Both are recorded first, outside of what commands may write: [Settle] and
// [SettlePlaceholders] finish the work of a process that was killed.
package putback

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"hone/sandbox"
)

// Guard restores what commands change of the read-only paths in writable directories
// (rulings G9 and S6). Before a command it inspects them, and keeps what it needs to
// restore them in memory and in a record. After the command it compares. It keeps:
//
//   - of a file or symlink: its contents, mode and owner; of a directory: the same of
//     everything in it, and that it contains nothing else;
//   - of a path that does not exist: that it does not exist;
//   - of a parent directory of such a path: that it is a directory at its path,
//     and its owner's permissions. Its other contents are not protected.
//
// It keeps files of at most maxFile bytes, and of each writable directory maxKept; of
// the others it only reports that they changed. It does not keep times, extended
// attributes, access control lists, FIFOs, sockets, devices and the owners of
// directories that still exist. A file is restored under its protected name only.
//
// Commands that run at the same time share one inspection, made before the first
// of them, and each one's end restores what any of them changed until then. Two
// guards of the same paths must not be used at the same time.
//
// A nil Guard protects nothing.
type Guard struct {
	trees        []*tree
	placeholders []*placeholders
	aside        string
	temporary    string // aside, if Close removes it
	record       string // the path of the record, without its ending

	mu     sync.Mutex
	active int
	owed   bool // the last restoration failed; the inspection before it is still valid
}

// Config is what a Guard protects.
type Config struct {
	// Entries are those of a policy that the wall cannot protect.
	Entries []sandbox.Entry
	// Aside is the Aside of the policy; if it is empty, a temporary directory.
	Aside string
	// Placeholders are the placeholders to create by their path, and these by a
	// writable directory around them. Something may exist at a path.
	Placeholders map[string]map[string]sandbox.Placeholder
	// Records is the Records of the policy.
	Records string
}

// The record of a guard is armed while a command runs. Between commands it is idle,
// and stays so that it is written only if the protected paths have changed.
const (
	recordPrefix = "protected-"
	armed        = ".armed"
	idle         = ".idle"
)

// New returns a guard. Its error means that Aside or Records is unfit.
func New(c Config) (*Guard, error) {
	g := &Guard{trees: treesOf(c.Entries)}
	for root, files := range c.Placeholders {
		p, err := newPlaceholders(c.Records, root, files)
		if err != nil {
			return nil, err
		}
		g.placeholders = append(g.placeholders, p)
	}
	if len(g.trees) == 0 {
		return g, nil
	}
	if err := g.openAside(c.Aside); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	g.record = filepath.Join(g.aside, recordPrefix+rand.Text())
	return g, nil
}

// openAside makes the directory for what commands leave. It must be where they cannot
// write.
func (g *Guard) openAside(aside string) (err error) {
	if aside == "" {
		g.temporary, err = os.MkdirTemp("", "hone-aside-*")
		aside = g.temporary
	}
	if err == nil {
		err = os.MkdirAll(aside, 0o700)
	}
	if err == nil {
		g.aside, err = filepath.EvalSymlinks(aside)
	}
	if err != nil {
		return fmt.Errorf("make the directory for replaced files: %w", err)
	}
	for _, t := range g.trees {
		if sandbox.Within(t.Path, g.aside) {
			return fmt.Errorf("the directory %s, for files that commands put in place of protected ones, is in %s, which commands may write", aside, t.Path)
		}
	}
	return nil
}

// treesOf returns the outermost writable directories with protected paths.
func treesOf(entries []sandbox.Entry) []*tree {
	var trees []*tree
	for _, e := range entries { // outer ones first
		i := slices.IndexFunc(trees, func(t *tree) bool { return sandbox.Within(t.Path, e.Path) })
		switch {
		case i < 0 && e.Access == sandbox.AccessWrite:
			trees = append(trees, &tree{Path: e.Path, Named: map[string]kind{}})
		case i < 0 || e.Access == sandbox.AccessNone:
		default:
			rel := strings.TrimLeft(e.Path[len(trees[i].Path):], string(filepath.Separator))
			trees[i].name(rel, e.Access == sandbox.AccessRead)
		}
	}
	return slices.DeleteFunc(trees, func(t *tree) bool { return !slices.Contains(slices.Collect(maps.Values(t.Named)), present) })
}

// Around inspects the protected paths and creates the placeholders, runs a command,
// and restores what changed. If it fails before the command, that does not run. If
// it fails afterwards, the next command or the next process tries again.
func (g *Guard) Around(run func() (sandbox.Result, error)) (sandbox.Result, error) {
	if g == nil || len(g.trees)+len(g.placeholders) == 0 {
		return run()
	}
	earlier, err := g.enter()
	if err != nil {
		return sandbox.Result{}, err
	}
	result, err := run()
	restored, failed := g.leave()
	result.Restored = append(earlier, restored...)
	if failed != nil {
		err = errors.Join(err, failed)
	}
	return result, err
}

// enter protects the paths before a command. It returns what an earlier command
// changed and could not be restored then.
func (g *Guard) enter() (earlier []sandbox.Restored, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.owed {
		if earlier, err = g.putBack(); err == nil {
			err = g.end()
		}
	}
	if err == nil && g.active == 0 {
		if err = g.begin(); err != nil {
			err = errors.Join(err, g.end())
			for _, t := range g.trees {
				t.Items = nil // they may not be recorded
			}
		}
	}
	if err == nil {
		g.active++
	}
	return earlier, err
}

// begin protects the paths before the first command.
func (g *Guard) begin() error {
	changed := false
	for _, t := range g.trees {
		err := t.open()
		var found map[string]*item
		if err == nil {
			found, err = t.inspect(false)
		}
		if err != nil {
			return fmt.Errorf("protect files in %s: %w", t.Path, err)
		}
		changed = changed || !reflect.DeepEqual(found, t.Items)
		t.Items = found
	}
	if err := g.arm(changed); err != nil {
		return fmt.Errorf("record the protected paths: %w", err)
	}
	for _, p := range g.placeholders {
		if err := p.fill(); err != nil {
			return fmt.Errorf("protect files in %s: %w", p.root, err)
		}
	}
	return nil
}

// arm records the inspection.
func (g *Guard) arm(changed bool) error {
	if len(g.trees) == 0 || !changed && os.Rename(g.record+idle, g.record+armed) == nil {
		return nil
	}
	return writeRecord(g.record+armed, g.trees)
}

// end stops protecting paths after the last command.
func (g *Guard) end() error {
	g.owed = false
	err := g.removePlaceholders()
	for _, t := range g.trees {
		t.close()
	}
	if len(g.trees) > 0 {
		err = errors.Join(err, ignoreMissing(os.Rename(g.record+armed, g.record+idle)))
	}
	return err
}

func (g *Guard) removePlaceholders() error {
	var errs []error
	for _, p := range g.placeholders {
		if err := p.empty(); err != nil {
			errs = append(errs, fmt.Errorf("remove placeholders in %s: %w", p.root, err))
		}
	}
	return errors.Join(errs...)
}

// leave restores the protected paths after a command and all that it started have
// ended. It also returns the changes that it could not undo.
func (g *Guard) leave() ([]sandbox.Restored, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
	restored, err := g.putBack()
	if g.active > 0 {
		return restored, err
	}
	if err != nil {
		g.owed = true
		return restored, errors.Join(err, g.removePlaceholders())
	}
	return restored, g.end()
}

// putBack compares all protected paths and restores them.
func (g *Guard) putBack() ([]sandbox.Restored, error) {
	r := &restorer{aside: g.aside}
	for _, t := range g.trees {
		r.all(t)
	}
	return r.restored, errors.Join(r.errs...)
}

// Close removes the records. If a restoration failed it leaves that for [Settle].
func (g *Guard) Close() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.active > 0 {
		return errors.New("cannot stop protecting paths while a command runs")
	}
	for _, t := range g.trees {
		t.close()
	}
	var errs []error
	if len(g.trees) > 0 {
		errs = append(errs, ignoreMissing(os.Remove(g.record+idle)))
	}
	if g.temporary != "" {
		errs = append(errs, os.RemoveAll(g.temporary))
	}
	for _, p := range g.placeholders {
		errs = append(errs, p.forget())
	}
	return errors.Join(errs...)
}
