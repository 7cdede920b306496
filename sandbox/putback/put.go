package putback

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"hone/sandbox"
)

// mostReported is how many changes are reported one by one.
const mostReported = 100

// putter restores the state that an inspection found, and reports the changes.
type putter struct {
	left     *leftovers
	restored []sandbox.Restored
	more     int
	errs     []error
}

// putBack restores what is protected in all plots.
func putBack(plots []*plot, left *leftovers) ([]sandbox.Restored, error) {
	p := &putter{left: left}
	for _, plot := range plots {
		if err := p.plot(plot); err != nil {
			p.fail(plot.path, err)
		}
	}
	if p.more > 0 {
		last := &p.restored[len(p.restored)-1]
		*last = sandbox.Restored{Path: filepath.Dir(last.Path), MovedTo: left.folder, NotRestored: last.NotRestored}
	}
	return p.restored, errors.Join(p.errs...)
}

// plot restores the contents of a pinned directory, whose owner may have lost its
// permissions.
func (p *putter) plot(plot *plot) error {
	info, err := plot.self.Stat()
	if err != nil {
		return err
	}
	if lost := plot.node.Mode & 0o700 &^ info.Mode(); lost != 0 {
		if err := plot.self.Chmod(plot.node.Mode.Perm()); err != nil {
			return err
		}
		p.tell(sandbox.Restored{Path: plot.path})
	}
	if plot.node.sameInner(plot.root) {
		return nil
	}
	if info, err = plot.self.Stat(); err != nil {
		return err
	}
	if info.Mode()&0o700 == 0o700 {
		p.inner(plot.root, plot.path, plot.node, false)
		return nil
	}
	if err := plot.self.Chmod(info.Mode() | 0o700); err != nil {
		return err
	}
	p.inner(plot.root, plot.path, plot.node, false)
	return plot.self.Chmod(info.Mode())
}

// tell reports a change.
func (p *putter) tell(r sandbox.Restored) {
	if len(p.restored) < mostReported {
		p.restored = append(p.restored, r)
		return
	}
	p.more++
	if r.NotRestored != "" {
		p.restored[mostReported-1].NotRestored = r.NotRestored
	}
}

// fail reports a path that could not be restored because of an error.
func (p *putter) fail(path string, err error) {
	p.errs = append(p.errs, fmt.Errorf("restore %s: %w", path, err))
	p.tell(sandbox.Restored{Path: path, NotRestored: err.Error()})
}

// inner restores the contents of an open directory. Quiet means that the directory
// is reported as a whole.
func (p *putter) inner(dir *os.Root, path string, n *node, quiet bool) {
	if n.Kind == isFolder && n.Unkept == "" {
		if err := p.sweep(dir, path, n); err != nil {
			p.fail(path, err)
		}
	}
	for _, inner := range n.Inner {
		at := filepath.Join(path, inner.Name)
		if inner.same(dir) {
			continue
		}
		if err := p.put(dir, at, inner, quiet); err != nil {
			p.fail(at, err)
		}
	}
}

// sweep moves away what was added to a directory.
func (p *putter) sweep(dir *os.Root, path string, n *node) error {
	names, err := namesIn(dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	var errs []error
	for _, name := range names {
		if n.inner(name) != nil || slices.Contains(n.Free, name) {
			continue
		}
		kept, err := p.left.take(dir, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.tell(sandbox.Restored{Path: filepath.Join(path, name), MovedTo: kept})
	}
	return errors.Join(errs...)
}

// put restores a path that has changed.
func (p *putter) put(dir *os.Root, path string, n *node, quiet bool) error {
	info, err := dir.Lstat(n.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch n.Kind {
	case isGone:
		return p.remove(dir, path, n)
	case isWay:
		return p.way(dir, path, n, info)
	case isFolder:
		return p.folder(dir, path, n, info, quiet)
	}
	if n.Unkept != "" {
		return p.unkept(dir, path, n, info, quiet)
	}
	same := n.Kind == isFile && info != nil && info.Mode().IsRegular() && sameData(dir, n, info)
	if same && stampOf(info).Links <= n.Stamp.Links {
		lost, err := attributes(dir, n, info)
		p.tellUnless(quiet, sandbox.Restored{Path: path, NotRestored: lost})
		return err
	}
	temp, lost, err := build(dir, n)
	if err != nil {
		return err
	}
	kept := ""
	if !same {
		kept, err = p.clear(dir, n.Name, info)
	}
	if err == nil {
		err = dir.Rename(temp, n.Name)
	}
	if err != nil {
		return errors.Join(err, dir.Remove(temp))
	}
	p.tellUnless(quiet && kept == "" && lost == "", sandbox.Restored{Path: path, MovedTo: kept, NotRestored: lost})
	return nil
}

// tellUnless reports a change, unless it is reported with its directory.
func (p *putter) tellUnless(quiet bool, r sandbox.Restored) {
	if !quiet || r.NotRestored != "" {
		p.tell(r)
	}
}

// clear moves away the file at a name, if it exists.
func (p *putter) clear(dir *os.Root, name string, info fs.FileInfo) (kept string, err error) {
	if info == nil {
		return "", nil
	}
	return p.left.take(dir, name)
}

// remove moves away a file that must not exist.
func (p *putter) remove(dir *os.Root, path string, n *node) error {
	kept, err := p.left.take(dir, n.Name)
	if err == nil {
		p.tell(sandbox.Restored{Path: path, MovedTo: kept})
	}
	return err
}

// way restores a parent directory of protected paths. If none of these existed it
// may be missing, but it must not be a symlink: the protected paths might exist at
// its target.
func (p *putter) way(dir *os.Root, path string, n *node, info fs.FileInfo) error {
	if info != nil && !info.IsDir() && (n.exists() || info.Mode()&fs.ModeSymlink != 0) {
		kept, err := p.left.take(dir, n.Name)
		if err != nil {
			return err
		}
		p.tell(sandbox.Restored{Path: path, MovedTo: kept})
		info = nil
	}
	if info == nil && !n.exists() || info != nil && !info.IsDir() {
		return nil
	}
	if info == nil {
		if err := dir.Mkdir(n.Name, 0o700); err != nil {
			return err
		}
	}
	mode := n.Mode.Perm()
	if info != nil {
		mode = info.Mode().Perm()
		if n.Mode&0o700&^mode != 0 {
			mode = n.Mode.Perm()
			p.tell(sandbox.Restored{Path: path})
		}
	}
	return p.within(dir, path, n, mode, false)
}

// folder restores a directory with everything in it.
func (p *putter) folder(dir *os.Root, path string, n *node, info fs.FileInfo, quiet bool) error {
	if n.Unkept != "" && (info == nil || !info.IsDir()) {
		return p.unkept(dir, path, n, info, quiet)
	}
	whole := info == nil || !info.IsDir()
	if whole {
		kept, err := p.clear(dir, n.Name, info)
		if err != nil {
			return err
		}
		if err := dir.Mkdir(n.Name, 0o700); err != nil {
			return err
		}
		p.tellUnless(quiet && kept == "", sandbox.Restored{Path: path, MovedTo: kept})
		if info, err = dir.Lstat(n.Name); err != nil {
			return err
		}
	}
	s := stampOf(info)
	if owner := s.UID != n.Stamp.UID || s.GID != n.Stamp.GID; owner || info.Mode() != n.Mode {
		lost := ""
		if owner && dir.Lchown(n.Name, n.Stamp.UID, n.Stamp.GID) != nil {
			lost = notOwner
		}
		p.tellUnless(quiet || whole, sandbox.Restored{Path: path, NotRestored: lost})
	}
	if n.Unkept != "" {
		return dir.Chmod(n.Name, n.Mode)
	}
	return p.within(dir, path, n, n.Mode, quiet || whole)
}

// within restores the contents of a directory, and then its mode.
func (p *putter) within(dir *os.Root, path string, n *node, mode fs.FileMode, quiet bool) error {
	info, err := dir.Lstat(n.Name)
	if err != nil {
		return err
	}
	const special = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	open := info.Mode() | 0o700
	if info.Mode() != open {
		if err := dir.Chmod(n.Name, open&(fs.ModePerm|special)); err != nil {
			return err
		}
	}
	sub, err := openFolder(dir, n.Name)
	if err != nil {
		return err
	}
	defer sub.Close()
	p.inner(sub, path, n, quiet)
	if n.Kind == isWay {
		mode |= open & special
	}
	if (open^mode)&(fs.ModePerm|special) == 0 {
		return nil
	}
	return dir.Chmod(n.Name, mode&(fs.ModePerm|special))
}

// unkept reports a path that cannot be restored, and restores as much as possible.
func (p *putter) unkept(dir *os.Root, path string, n *node, info fs.FileInfo, quiet bool) error {
	r := sandbox.Restored{Path: path, NotRestored: n.Unkept}
	if info == nil {
		p.tell(r)
		return nil
	}
	var err error
	if info.Mode().Type() == n.Mode.Type() {
		_, err = attributes(dir, n, info)
	} else {
		r.MovedTo, err = p.left.take(dir, n.Name)
	}
	if err == nil {
		p.tell(r)
	}
	return err
}

const notOwner = "its owner could not be restored"

// attributes restores the mode, owner and time of a file. lost says what could not
// be restored.
func attributes(dir *os.Root, n *node, info fs.FileInfo) (lost string, err error) {
	if s := stampOf(info); s.UID != n.Stamp.UID || s.GID != n.Stamp.GID {
		if dir.Lchown(n.Name, n.Stamp.UID, n.Stamp.GID) != nil {
			lost = notOwner
		}
	}
	if n.Kind == isLink {
		return lost, nil
	}
	if err := dir.Chmod(n.Name, n.Mode); err != nil {
		return lost, err
	}
	if n.Unkept == "" {
		err = dir.Chtimes(n.Name, time.Time{}, time.Unix(0, n.Stamp.Changed))
	}
	return lost, err
}

// build makes a file or a symlink under a temporary name, and returns the name.
func build(dir *os.Root, n *node) (temp, lost string, err error) {
	built := *n
	built.Name = ".hone-" + rand.Text()
	if n.Kind == isLink {
		err = dir.Symlink(n.Link, built.Name)
	} else {
		err = writeFile(dir, built.Name, n.Data)
	}
	if err != nil {
		return "", "", errors.Join(err, ignoreGone(dir.Remove(built.Name)))
	}
	info, err := dir.Lstat(built.Name)
	if err == nil {
		lost, err = attributes(dir, &built, info)
	}
	if err != nil {
		return "", "", errors.Join(err, dir.Remove(built.Name))
	}
	return built.Name, lost, nil
}

// ignoreGone returns err unless it means that a file does not exist.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeFile makes a new file and syncs it to the disk.
func writeFile(dir *os.Root, name string, data []byte) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// exists reports whether a node, or a protected one in it, existed.
func (n *node) exists() bool {
	if n.Kind != isWay {
		return n.Kind != isGone
	}
	return slices.ContainsFunc(n.Inner, (*node).exists)
}

// same reports whether a path is unchanged since the inspection. False may also
// mean that it is unknown.
func (n *node) same(dir *os.Root) bool {
	info, err := dir.Lstat(n.Name)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) && (n.Kind == isGone || n.Kind == isWay && !n.exists())
	}
	switch n.Kind {
	case isGone:
		return false
	case isWay:
		return n.sameWay(dir, info)
	case isFolder:
		return n.sameFolder(dir, info)
	}
	if info.Mode() != n.Mode {
		return false
	}
	s := stampOf(info)
	if s == n.Stamp && !n.Doubt {
		return true
	}
	if n.Unkept != "" {
		return s.Size == n.Stamp.Size && s.Changed == n.Stamp.Changed && s.Touched == n.Stamp.Touched && s.Ino == n.Stamp.Ino
	}
	return s.UID == n.Stamp.UID && s.GID == n.Stamp.GID && s.Links <= n.Stamp.Links && sameData(dir, n, info)
}

// sameWay is same for a parent directory of protected paths.
func (n *node) sameWay(dir *os.Root, info fs.FileInfo) bool {
	if !info.IsDir() {
		return !n.exists() && info.Mode()&fs.ModeSymlink == 0
	}
	if n.Mode&0o700&^info.Mode() != 0 {
		return false
	}
	sub, err := openFolder(dir, n.Name)
	if err != nil {
		return false
	}
	defer sub.Close()
	return n.sameInner(sub)
}

// sameFolder is same for a directory that is protected with everything in it.
func (n *node) sameFolder(dir *os.Root, info fs.FileInfo) bool {
	s := stampOf(info)
	if info.Mode() != n.Mode || s.UID != n.Stamp.UID || s.GID != n.Stamp.GID {
		return false
	}
	if n.Unkept != "" {
		return true
	}
	sub, err := openFolder(dir, n.Name)
	if err != nil {
		return false
	}
	defer sub.Close()
	return (s == n.Stamp && !n.Doubt || n.sameNames(sub)) && n.sameInner(sub)
}

// sameNames reports whether nothing was added to a directory.
func (n *node) sameNames(dir *os.Root) bool {
	names, err := namesIn(dir)
	return err == nil && !slices.ContainsFunc(names, func(name string) bool {
		return n.inner(name) == nil && !slices.Contains(n.Free, name)
	})
}

// sameInner reports whether the contents of a directory are unchanged.
func (n *node) sameInner(dir *os.Root) bool {
	return !slices.ContainsFunc(n.Inner, func(inner *node) bool { return !inner.same(dir) })
}

// sameData reports whether a file or symlink has the contents that were kept.
func sameData(dir *os.Root, n *node, info fs.FileInfo) bool {
	if n.Kind == isLink {
		target, err := dir.Readlink(n.Name)
		return err == nil && target == n.Link
	}
	if info.Size() != n.Stamp.Size {
		return false
	}
	data, err := readFile(dir, n.Name, n.Stamp.Size)
	if errors.Is(err, fs.ErrPermission) && dir.Chmod(n.Name, 0o600) == nil {
		data, err = readFile(dir, n.Name, n.Stamp.Size)
		err = errors.Join(err, dir.Chmod(n.Name, info.Mode())) // it may have another, unprotected name
	}
	return err == nil && bytes.Equal(data, n.Data)
}
