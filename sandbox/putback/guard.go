// Package putback restores the protected paths of a policy that a wall cannot
// protect while a command runs.
//
// [New] returns a [Guard] for the entries of a policy, [Guard.Around] runs a
// command and restores what it changed, and [Settle] restores after a process that
// was killed before it could. The comment on [Guard] says what is kept of files.
package putback

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"hone/sandbox"
)

// Guard restores the protected paths of a policy that commands changed and that
// their wall cannot protect (rulings G9 and S6): read-only paths in writable
// directories. Before a command it inspects them, and keeps what it needs to
// restore them in memory and in the policy's Aside. After the command it compares.
// It keeps:
//
//   - of a file or symlink: contents, mode, owner and time of change; of a
//     directory: the same of everything in it, and that it contains nothing else;
//   - of a path that does not exist: that it does not exist;
//   - of a parent directory of such a path: that it is a directory at its path,
//     and its owner's permissions. Its other contents are not protected and never
//     changed.
//
// It keeps at most mostKept bytes of files, small files first; of the others it
// only reports that they changed. It does not keep extended attributes, access
// control lists, FIFOs, sockets and devices. A file with several hard links is
// restored only under the protected name. A command that can falsify times (root
// can set the clock) can hide a change.
//
// Commands that run at the same time share one inspection, made before the first
// of them, and each one's end restores what any of them changed until then. Two
// guards of the same paths must not be used at the same time.
//
// A nil Guard protects nothing.
type Guard struct {
	plots []*plot
	form  form

	mu     sync.Mutex
	active int
	owed   bool // the last restoration failed; the inspection before it is still valid
}

// plot is an outermost writable directory and what is protected in it.
type plot struct {
	path string
	spot *spot
	node *node    // the result of the last inspection
	root *os.Root // open from the first command's start to the last one's end
	self *os.File // the same directory, to change its mode when it can no longer be searched
}

// spot is a path that a policy names, or a parent directory of one.
type spot struct {
	named  bool
	closed bool // it is read-only; otherwise only the parents of inner ones are protected
	inner  map[string]*spot
}

// guarded returns the entries that New needs: the read-only ones in writable
// directories, and the writable ones around or in these.
func guarded(entries []sandbox.Entry) []sandbox.Entry {
	around := func(e sandbox.Entry) bool {
		return slices.ContainsFunc(entries, func(o sandbox.Entry) bool {
			return o.Access == sandbox.AccessWrite && o.Path != e.Path && sandbox.Within(o.Path, e.Path)
		})
	}
	kept := slices.DeleteFunc(slices.Clone(entries), func(e sandbox.Entry) bool {
		return e.Access == sandbox.AccessNone || e.Access == sandbox.AccessRead && !around(e)
	})
	if !slices.ContainsFunc(kept, func(e sandbox.Entry) bool { return e.Access == sandbox.AccessRead }) {
		return nil
	}
	return kept
}

// New returns a guard for the protected paths among the entries of a policy. If
// aside is empty nothing survives the end of this process, and what commands put
// in place of protected paths is deleted. Its error means that aside is unfit.
func New(entries []sandbox.Entry, aside string) (*Guard, error) {
	g := &Guard{}
	entries = guarded(entries)
	for _, e := range entries {
		if e.Access == sandbox.AccessWrite && !slices.ContainsFunc(entries, func(o sandbox.Entry) bool {
			return o.Access == sandbox.AccessWrite && o.Path != e.Path && sandbox.Within(o.Path, e.Path)
		}) {
			g.plots = append(g.plots, &plot{path: e.Path, spot: &spot{}})
		}
	}
	for _, p := range g.plots {
		for _, e := range entries {
			if e.Path != p.path && sandbox.Within(p.path, e.Path) {
				p.spot.name(strings.TrimLeft(e.Path[len(p.path):], string(filepath.Separator)), e.Access == sandbox.AccessRead)
			}
		}
		p.spot.spread(false)
	}
	g.plots = slices.DeleteFunc(g.plots, func(p *plot) bool { return !p.spot.guards() })
	if len(g.plots) == 0 || aside == "" {
		return g, nil
	}
	real, err := openAside(aside)
	if err != nil {
		return nil, err
	}
	for _, p := range g.plots {
		if sandbox.Within(p.path, real) {
			return nil, fmt.Errorf("the directory %s, for files that commands put in place of protected ones, is in %s, which commands may write", aside, p.path)
		}
	}
	g.form.aside = real
	return g, nil
}

// name adds a path of the policy below a spot.
func (s *spot) name(path string, closed bool) {
	for part := range strings.SplitSeq(path, string(filepath.Separator)) {
		if s.inner[part] == nil {
			if s.inner == nil {
				s.inner = map[string]*spot{}
			}
			s.inner[part] = &spot{}
		}
		s = s.inner[part]
	}
	s.named, s.closed = true, closed
}

// spread gives spots that no entry names the access of the spot around them.
func (s *spot) spread(closed bool) {
	if !s.named {
		s.closed = closed
	}
	for _, inner := range s.inner {
		inner.spread(s.closed)
	}
}

// guards reports whether anything is protected at a spot or in it.
func (s *spot) guards() bool {
	if s.closed {
		return true
	}
	for _, inner := range s.inner {
		if inner.guards() {
			return true
		}
	}
	return false
}

// protection is the use of a guard by one command.
type protection struct {
	guard   *Guard
	earlier []sandbox.Restored
	over    bool
}

// protect inspects the protected paths before a command starts. Its error means
// that they cannot be inspected, or that an earlier command's changes cannot be
// restored: the command must not start then.
func (g *Guard) protect() (*protection, error) {
	p := &protection{guard: g}
	if g == nil || len(g.plots) == 0 {
		p.over = true
		return p, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.owed {
		restored, err := g.putBack()
		if err != nil {
			return nil, err
		}
		p.earlier = restored
		g.leave()
	}
	if g.active == 0 {
		if err := g.enter(); err != nil {
			g.leave()
			return nil, err
		}
	}
	g.active++
	return p, nil
}

// Around inspects the protected paths, runs a command, and restores what changed.
func (g *Guard) Around(run func() (sandbox.Result, error)) (sandbox.Result, error) {
	p, err := g.protect()
	if err != nil {
		return sandbox.Result{}, err
	}
	result, err := run()
	restored, undone := p.restore()
	result.Restored = restored
	if undone != nil {
		err = errors.Join(err, undone)
	}
	return result, err
}

// enter opens the directories, inspects the protected paths, and records them.
func (g *Guard) enter() error {
	budget := &keeping{}
	for _, p := range g.plots {
		if err := p.pin(); err != nil {
			return fmt.Errorf("protect files in %s: %w", p.path, err)
		}
		node, err := look(p.root, p.path, p.spot, p.node, budget)
		if err != nil {
			return fmt.Errorf("protect files in %s: %w", p.path, err)
		}
		p.node = node
	}
	budget.keep()
	return g.form.arm(g.plots)
}

// pin opens the directory of a plot, which stays open if it is renamed.
func (p *plot) pin() (err error) {
	if p.root, err = os.OpenRoot(p.path); err != nil {
		return err
	}
	p.self, err = p.root.Open(".")
	return err
}

// leave closes the directories.
func (g *Guard) leave() {
	g.owed = false
	for _, p := range g.plots {
		if p.self != nil {
			p.self.Close()
		}
		if p.root != nil {
			p.root.Close()
		}
		p.root, p.self = nil, nil
	}
}

// restore restores the protected paths after a command and all that it started
// have ended. It also returns the changes that it could not undo. After an error
// the next command or the next process tries again.
func (p *protection) restore() ([]sandbox.Restored, error) {
	if p.over {
		return nil, nil
	}
	p.over = true
	return p.guard.restore(p.earlier)
}

// restore restores for one command, and closes the directories after the last.
func (g *Guard) restore(earlier []sandbox.Restored) ([]sandbox.Restored, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	restored, err := g.putBack()
	restored = append(earlier, restored...)
	if g.active--; g.active > 0 {
		return restored, err
	}
	if err != nil {
		g.owed = true
		return restored, err
	}
	g.leave()
	return restored, g.form.disarm()
}

// putBack compares all protected paths and restores them.
func (g *Guard) putBack() ([]sandbox.Restored, error) {
	left := &leftovers{aside: g.form.aside}
	return putBack(g.plots, left)
}

// Close removes the guard's files from Aside. If a restoration failed it leaves
// them there for [Settle].
func (g *Guard) Close() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.active > 0 {
		return errors.New("cannot stop protecting paths while a command runs")
	}
	owed := g.owed
	g.leave()
	return g.form.close(owed)
}

// openAside makes the directory for what commands left, and returns its real path.
func openAside(aside string) (string, error) {
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return "", fmt.Errorf("make the directory for replaced files: %w", err)
	}
	real, err := filepath.EvalSymlinks(aside)
	if err != nil {
		return "", fmt.Errorf("make the directory for replaced files: %w", err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("make the directory for replaced files: %w", err)
	}
	if !info.IsDir() || sharesModes && info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s, for files that commands put in place of protected ones, is writable for other users; chmod 700 it, or name another directory: %w", aside, fs.ErrPermission)
	}
	return real, nil
}
