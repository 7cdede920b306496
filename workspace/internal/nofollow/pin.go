package nofollow

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"hone/internal/transient"
	"hone/workspace/treepath"
)

// MaxOpen is the maximum number of directories held open at once.
const MaxOpen = 512

// Pins are the directories that one change works in. Root must be set. They are
// remembered from the first inspection to the last sync, so that names change
// only in the very directories that were inspected. Up to MaxOpen stay open;
// the others are reopened when needed and must still be the same.
type Pins struct {
	Root *os.Root
	// Scratch means that no change has to survive a crash: nothing is synced.
	Scratch bool

	byPath map[string]*Pin
	open   int
}

// Pin is one directory.
type Pin struct {
	Path    string
	Root    *os.Root // nil while closed; valid until the next call of At
	info    fs.FileInfo
	parent  *Pin // nil for the root
	Created bool // by At
	Changed bool // names in it were changed
	scratch bool // as in Pins
}

// At returns the directory at a path. With create, it creates a missing
// directory; otherwise the error wraps fs.ErrNotExist.
func (s *Pins) At(path string, create bool) (*Pin, error) {
	if p := s.byPath[path]; p != nil {
		return p, s.reopen(p)
	}
	if path == "" {
		return s.add(&Pin{Root: s.Root}), nil
	}
	parent, err := s.At(treepath.Parent(path), create)
	if err != nil {
		return nil, err
	}
	p := &Pin{Path: path, parent: parent}
	p.Root, p.info, err = OpenDir(parent.Root, treepath.Base(path), path)
	if create && errors.Is(err, fs.ErrNotExist) {
		err = p.create()
	}
	var refused *treepath.RefusedError
	if err != nil && !errors.As(err, &refused) {
		err = fmt.Errorf("directory %s: %w", treepath.Display(path), WithoutPath(err))
	}
	if err != nil {
		return nil, err
	}
	return s.add(p), nil
}

func (s *Pins) add(p *Pin) *Pin {
	if s.byPath == nil {
		s.byPath = map[string]*Pin{}
	}
	s.byPath[p.Path], p.scratch = p, s.Scratch
	s.countOpen(p)
	return p
}

func (s *Pins) countOpen(p *Pin) {
	if s.open++; s.open <= MaxOpen {
		return
	}
	for _, other := range s.byPath {
		if other.parent != nil && !treepath.Contains(other.Path, p.Path) {
			s.release(other)
		}
	}
}

func (s *Pins) release(p *Pin) {
	if p.Root != nil {
		p.Root.Close()
		p.Root = nil
		s.open--
	}
}

func (s *Pins) reopen(p *Pin) error {
	if p.Root != nil {
		return nil
	}
	parent, err := s.At(p.parent.Path, false)
	if err != nil {
		return err
	}
	dir, info, err := OpenDir(parent.Root, treepath.Base(p.Path), p.Path)
	if err == nil && !os.SameFile(info, p.info) {
		dir.Close()
		err = treepath.Refuse(p.Path, "another process replaced the directory")
	}
	if err != nil {
		return fmt.Errorf("directory %s: %w", treepath.Display(p.Path), WithoutPath(err))
	}
	p.Root = dir
	s.countOpen(p)
	return nil
}

// IsPinned reports whether the directory at a path is remembered.
func (s *Pins) IsPinned(path string) bool { return s.byPath[path] != nil }

// Forget closes a directory that is about to be removed or renamed and that
// contains no other pin.
func (s *Pins) Forget(path string) {
	if p := s.byPath[path]; p != nil && p.parent != nil {
		s.release(p)
		delete(s.byPath, path)
	}
}

func (p *Pin) create() (err error) {
	if err := p.parent.Root.Mkdir(treepath.Base(p.Path), 0o755); err != nil {
		return err
	}
	p.Created, p.parent.Changed = true, true
	p.Root, p.info, err = OpenDir(p.parent.Root, treepath.Base(p.Path), p.Path)
	if err != nil {
		_ = p.parent.Root.Remove(treepath.Base(p.Path))
		return err
	}
	if f, err := p.Root.Open("."); err == nil {
		giveOwner(f, p.parent.Root, nil)
		f.Close()
	}
	return nil
}

func (s *Pins) sorted() []*Pin {
	all := make([]*Pin, 0, len(s.byPath))
	for _, p := range s.byPath {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Pin) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// CheckAll returns an error if a directory is no longer where it was opened.
func (s *Pins) CheckAll() error {
	for _, p := range s.sorted() {
		if p.parent == nil {
			continue
		}
		if err := s.CheckInPlace(p); err != nil {
			return err
		}
	}
	return nil
}

// CheckInPlace returns an error if the directory is no longer where it was
// opened.
func (s *Pins) CheckInPlace(p *Pin) error {
	parent, err := s.At(p.parent.Path, false)
	if err != nil {
		return err
	}
	info, err := parent.Root.Lstat(treepath.Base(p.Path))
	if transient.Is(err) {
		return ReadError(p.Path, err)
	}
	if err != nil || !os.SameFile(info, p.info) {
		return treepath.Refuse(p.Path, "another process replaced the directory")
	}
	return nil
}

// RemoveCreated removes the directories that this call created, deepest first.
// Directories that are not empty stay.
func (s *Pins) RemoveCreated() error {
	var errs []error
	for _, p := range slices.Backward(s.sorted()) {
		if !p.Created {
			continue
		}
		if err := s.RemoveEmpty(p); err != nil && !IsAbsent(err) {
			errs = append(errs, fmt.Errorf("remove %s: %w", treepath.Display(p.Path), WithoutPath(err)))
		}
	}
	return errors.Join(errs...)
}

// RemoveEmpty removes a directory if it is empty and still where it was opened.
// Any other directory stays.
func (s *Pins) RemoveEmpty(p *Pin) error {
	if err := s.CheckInPlace(p); err != nil {
		return err
	}
	if _, err := s.At(p.Path, false); err != nil {
		return err
	}
	if empty, err := p.Empty(); err != nil || !empty {
		return err
	}
	parent, err := s.At(p.parent.Path, false)
	if err != nil {
		return err
	}
	s.Forget(p.Path)
	parent.Changed = true
	return parent.Root.Remove(treepath.Base(p.Path))
}

// Unchanged reports whether a path still has the file info was; nil means that
// it did not exist. For a directory it checks only identity, because this
// package changes its contents. An error may pass.
func (s *Pins) Unchanged(path string, was fs.FileInfo) (bool, error) {
	var now fs.FileInfo
	dir, err := s.At(treepath.Parent(path), false)
	if err == nil {
		if now, err = dir.Root.Lstat(treepath.Base(path)); IsNotExist(err) {
			return was == nil, nil
		}
	}
	switch {
	case transient.Is(err):
		return false, ReadError(path, err)
	case err != nil, was == nil, !os.SameFile(now, was), now.Mode() != was.Mode():
		return false, nil
	}
	return now.IsDir() || now.Size() == was.Size() && now.ModTime().Equal(was.ModTime()), nil
}

// Empty reports whether the directory is empty. One that may not be read is not. An error may pass.
func (p *Pin) Empty() (bool, error) {
	f, err := p.Root.Open(".")
	if err == nil {
		defer f.Close()
		_, err = f.Readdirnames(1)
	}
	if transient.Is(err) {
		return false, ReadError(p.Path, err)
	}
	return errors.Is(err, io.EOF), nil
}

// Sync makes the changed names durable, except in a scratch tree.
func (s *Pins) Sync(step func(string, ...any) error) error {
	if s.Scratch {
		return nil
	}
	for _, p := range s.sorted() {
		if !p.Changed {
			continue
		}
		if err := step("sync %s", p.Path); err != nil {
			return err
		}
		p, err := s.At(p.Path, false)
		if err == nil {
			err = p.Sync()
		}
		if err != nil {
			return fmt.Errorf("sync %s: %w", treepath.Display(p.Path), WithoutPath(err))
		}
	}
	return nil
}

// Sync makes the names in the directory durable, except in a scratch tree.
func (p *Pin) Sync() error {
	if p.scratch {
		return nil
	}
	return syncDir(p.Root)
}

// Close closes all directories except the root.
func (s *Pins) Close() {
	for _, p := range s.byPath {
		if p.parent != nil {
			s.release(p)
		}
	}
}

// TempName returns the name of a path's temporary file. It depends only on the
// path and the target state, so that a repeated change finds what a crash left.
func TempName(path, target string) string {
	sum := sha256.Sum256([]byte(path + "\x00" + target))
	return treepath.TempPrefix + hex.EncodeToString(sum[:12])
}

// Temp describes a temporary file to write.
type Temp struct {
	Name     string
	Path     string      // of the target, for errors
	Mode     fs.FileMode // permission bits
	Replaces fs.FileInfo // the file that it replaces; nil if there is none
}

// WriteTemp writes a temporary file in the directory, and syncs it except in a
// scratch tree. After an error a part of it may remain.
func (p *Pin) WriteTemp(t Temp, fill func(io.Writer) error) error {
	f, err := p.Root.OpenFile(t.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", treepath.Display(t.Path), WithoutPath(err))
	}
	giveOwner(f, p.Root, t.Replaces)
	err = fill(f)
	if err == nil {
		err = f.Chmod(t.Mode)
	}
	if err == nil && !p.scratch {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", treepath.Display(t.Path), WithoutPath(err))
	}
	return nil
}

// Place gives a name the contents of a temporary file, by renaming that. A mount point, such
// as a file that a container binds, cannot be replaced: it is written in place. Then a crash
// can leave it with a part of each contents, and other processes can see that.
func (p *Pin) Place(temp, name string) error {
	err := p.Root.Rename(temp, name)
	if !isBusy(err) {
		return err
	}
	from, err := p.Root.Open(temp)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := p.Root.OpenFile(name, os.O_WRONLY|openNonblock, 0)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, from)
	if err == nil {
		err = to.Truncate(n)
	}
	if err == nil && !p.scratch {
		err = to.Sync()
	}
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	return p.Root.Remove(temp)
}

// RemoveTemp removes the temporary file of that name if it exists. The path of
// the target is used only in errors.
func (p *Pin) RemoveTemp(name, path string) error {
	err := p.Root.Remove(name)
	if err != nil && !IsNotExist(err) {
		return fmt.Errorf("remove the temporary file of %s: %w", treepath.Display(path), WithoutPath(err))
	}
	return nil
}
