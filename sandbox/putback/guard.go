// Package putback puts back the protected paths of a policy that a wall cannot
// hold in place while a command runs.
//
// [New] makes a [Guard] for a policy's entries, [Guard.Around] runs a command
// and puts back what it changed, and [Settle] does so after a process that was
// killed before it could. What is kept of files, and what is not, is in the
// comment on [Guard].
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

// Guard puts back what commands did to the protected paths of a policy that
// their wall cannot hold in place (rulings G9 and S6): those that may only be
// read and lie in what may be written. Before a command it looks at them, and
// keeps what is needed to bring them back in memory and in the policy's Aside;
// after the command it compares. What is kept:
//
//   - of a file or symlink its contents, mode, owner and time of change; of a
//     folder the same of all that it holds, and that it holds nothing else;
//   - of a path that does not exist, that it does not;
//   - of a folder on the way to one of these that it is a folder, at its place,
//     and that its owner may do with it what he could. What else it holds is
//     not protected, and is never touched.
//
// Files are kept up to mostKept bytes a policy, small ones first; of the others
// it is only told that they changed. Not kept are extended attributes, access
// control lists, and what FIFOs, sockets and devices stand for; a file that had
// a second name before is put back under the protected one alone. On file
// systems and clocks that the command can lie with (as root it can set the
// clock) a change can be hidden.
//
// Commands that run at the same time share one look, taken before the first of
// them, and each one's end puts back what any of them did so far. Two guards
// over the same paths must not be at work at the same time.
//
// A nil guard protects nothing.
type Guard struct {
	plots []*plot
	form  form

	mu     sync.Mutex
	active int
	owed   bool // the last restoration failed, and the look before it still stands
}

// plot is an outermost folder that may be written, and what is protected in it.
type plot struct {
	path string
	spot *spot
	node *node    // as the last look found it
	root *os.Root // open from the first command's start to the last one's end
	self *os.File // the same folder, which can be changed when it can no longer be searched
}

// spot is a path that a policy names, or one on the way to it.
type spot struct {
	named  bool
	closed bool // it may only be read; otherwise only its way to inner ones is protected
	inner  map[string]*spot
}

// guarded are the entries of a policy that lie in what may be written, but may
// only be read, and those that may be written and lie around or in these: what
// [New] needs.
func guarded(entries []sandbox.Entry) []sandbox.Entry {
	around := func(e sandbox.Entry) bool {
		return slices.ContainsFunc(entries, func(o sandbox.Entry) bool {
			return o.Access == sandbox.AccessWrite && o.Path != e.Path && sandbox.Holds(o.Path, e.Path)
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

// New guards the entries of a policy, of which it takes what [guarded]
// does. Where aside is empty nothing outlives this process, and what commands
// left is lost. Its error says that aside is not fit for what it is for.
func New(entries []sandbox.Entry, aside string) (*Guard, error) {
	g := &Guard{}
	entries = guarded(entries)
	for _, e := range entries {
		if e.Access == sandbox.AccessWrite && !slices.ContainsFunc(entries, func(o sandbox.Entry) bool {
			return o.Access == sandbox.AccessWrite && o.Path != e.Path && sandbox.Holds(o.Path, e.Path)
		}) {
			g.plots = append(g.plots, &plot{path: e.Path, spot: &spot{}})
		}
	}
	for _, p := range g.plots {
		for _, e := range entries {
			if e.Path != p.path && sandbox.Holds(p.path, e.Path) {
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
		if sandbox.Holds(p.path, real) {
			return nil, fmt.Errorf("the folder %s is for what commands left in the place of protected files, and lies in %s, which they may write", aside, p.path)
		}
	}
	g.form.aside = real
	return g, nil
}

// name puts a path of the policy below a spot.
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

// spread gives the spots that no entry names what holds around them.
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

// protection is a command's share in a guard.
type protection struct {
	guard   *Guard
	earlier []sandbox.Restored
	over    bool
}

// protect looks at the protected paths, before a command starts. Its error says
// that they cannot be seen, or that an earlier command's changes to them could
// not be put back: the command must not start then.
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

// Around runs a command with what is protected looked at before and put back
// after.
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

// enter opens the folders, looks at what is protected, and writes it down.
func (g *Guard) enter() error {
	budget := &keeping{}
	for _, p := range g.plots {
		if err := p.pin(); err != nil {
			return fmt.Errorf("protect what is in %s: %w", p.path, err)
		}
		node, err := look(p.root, p.path, p.spot, p.node, budget)
		if err != nil {
			return fmt.Errorf("protect what is in %s: %w", p.path, err)
		}
		p.node = node
	}
	budget.keep()
	return g.form.arm(g.plots)
}

// pin opens the folder of a plot, whatever it is called later.
func (p *plot) pin() (err error) {
	if p.root, err = os.OpenRoot(p.path); err != nil {
		return err
	}
	p.self, err = p.root.Open(".")
	return err
}

// leave closes the folders.
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

// restore puts back what is protected, when a command and all that it started
// have ended. It tells what was changed also where that could not be put back;
// its error says that something went wrong with it, and that the next command,
// or the next process, has to try again.
func (p *protection) restore() ([]sandbox.Restored, error) {
	if p.over {
		return nil, nil
	}
	p.over = true
	return p.guard.restore(p.earlier)
}

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

// putBack compares all that is protected, and puts it back.
func (g *Guard) putBack() ([]sandbox.Restored, error) {
	left := &leftovers{aside: g.form.aside}
	return putBack(g.plots, left)
}

// Close removes what the guard keeps in Aside. A guard that still owes a
// restoration leaves it there, for [Settle].
func (g *Guard) Close() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.active > 0 {
		return errors.New("protected paths cannot be let go of while a command runs")
	}
	owed := g.owed
	g.leave()
	return g.form.close(owed)
}

// openAside makes the folder for what commands left, and says what it is
// really called.
func openAside(aside string) (string, error) {
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return "", fmt.Errorf("the folder for what commands left in the place of protected files: %w", err)
	}
	real, err := filepath.EvalSymlinks(aside)
	if err != nil {
		return "", fmt.Errorf("the folder for what commands left in the place of protected files: %w", err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("the folder for what commands left in the place of protected files: %w", err)
	}
	if !info.IsDir() || sharesModes && info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s is for what commands left in the place of protected files, and others may write it: chmod 700 it, or name another folder: %w", aside, fs.ErrPermission)
	}
	return real, nil
}
