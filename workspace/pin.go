package workspace

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
)

// maxOpen is the maximum number of directories held open at once.
const maxOpen = 512

// pins are the directories that one Apply or Restore works in. They are
// remembered from the first inspection to the last sync, so that names change
// only in the very directories that were inspected. Up to maxOpen stay open;
// the others are reopened when needed and must still be the same.
type pins struct {
	root   *os.Root
	byPath map[string]*pin
	open   int
}

// pin is one directory.
type pin struct {
	path    string
	dir     *os.Root // nil while closed; valid until the next call of at
	info    fs.FileInfo
	parent  *pin // nil for the root
	created bool // by this call
	changed bool // names in it were changed
}

// at returns the directory at a path. With create, it creates a missing
// directory; otherwise the error wraps fs.ErrNotExist.
func (s *pins) at(path string, create bool) (*pin, error) {
	if p := s.byPath[path]; p != nil {
		return p, s.reopen(p)
	}
	if path == "" {
		return s.add(&pin{dir: s.root}), nil
	}
	parent, err := s.at(parentOf(path), create)
	if err != nil {
		return nil, err
	}
	p := &pin{path: path, parent: parent}
	p.dir, p.info, err = openDir(parent.dir, base(path), path)
	if create && errors.Is(err, fs.ErrNotExist) {
		err = p.create()
	}
	var refused *RefusedError
	if err != nil && !errors.As(err, &refused) {
		err = fmt.Errorf("directory %s: %w", display(path), withoutPath(err))
	}
	if err != nil {
		return nil, err
	}
	return s.add(p), nil
}

// add remembers a directory that was just opened.
func (s *pins) add(p *pin) *pin {
	if s.byPath == nil {
		s.byPath = map[string]*pin{}
	}
	s.byPath[p.path] = p
	s.countOpen(p)
	return p
}

// countOpen counts p as open. Above the limit it closes all directories that
// are not ancestors of p.
func (s *pins) countOpen(p *pin) {
	if s.open++; s.open <= maxOpen {
		return
	}
	for _, other := range s.byPath {
		if other.parent != nil && !contains(other.path, p.path) {
			s.release(other)
		}
	}
}

// release closes a directory and keeps its pin.
func (s *pins) release(p *pin) {
	if p.dir != nil {
		p.dir.Close()
		p.dir = nil
		s.open--
	}
}

// reopen opens a released directory again.
func (s *pins) reopen(p *pin) error {
	if p.dir != nil {
		return nil
	}
	parent, err := s.at(p.parent.path, false)
	if err != nil {
		return err
	}
	dir, info, err := openDir(parent.dir, base(p.path), p.path)
	if err == nil && !os.SameFile(info, p.info) {
		dir.Close()
		err = refusal(p.path, "another process replaced the directory")
	}
	if err != nil {
		return fmt.Errorf("directory %s: %w", display(p.path), withoutPath(err))
	}
	p.dir = dir
	s.countOpen(p)
	return nil
}

// forget closes a directory that is about to be removed or renamed and that
// contains no other pin.
func (s *pins) forget(path string) {
	if p := s.byPath[path]; p != nil && p.parent != nil {
		s.release(p)
		delete(s.byPath, path)
	}
}

// create makes and opens the directory.
func (p *pin) create() (err error) {
	if err := p.parent.dir.Mkdir(base(p.path), 0o755); err != nil {
		return err
	}
	p.created, p.parent.changed = true, true
	p.dir, p.info, err = openDir(p.parent.dir, base(p.path), p.path)
	if err != nil {
		_ = p.parent.dir.Remove(base(p.path))
	}
	return err
}

// sorted returns the pins, parents first.
func (s *pins) sorted() []*pin {
	all := make([]*pin, 0, len(s.byPath))
	for _, p := range s.byPath {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *pin) int { return strings.Compare(a.path, b.path) })
	return all
}

// checkAll returns an error if a directory is no longer where it was opened.
func (s *pins) checkAll() error {
	for _, p := range s.sorted() {
		if p.parent == nil {
			continue
		}
		if err := s.checkInPlace(p); err != nil {
			return err
		}
	}
	return nil
}

// checkInPlace returns an error if the directory is no longer where it was
// opened.
func (s *pins) checkInPlace(p *pin) error {
	parent, err := s.at(p.parent.path, false)
	if err != nil {
		return err
	}
	info, err := parent.dir.Lstat(base(p.path))
	if err != nil || !os.SameFile(info, p.info) {
		return refusal(p.path, "another process replaced the directory")
	}
	return nil
}

// removeCreated removes the directories that this call created, deepest first.
// Directories that are not empty stay.
func (s *pins) removeCreated() error {
	var errs []error
	for _, p := range slices.Backward(s.sorted()) {
		if !p.created {
			continue
		}
		if err := s.removeEmpty(p); err != nil && !isAbsent(err) {
			errs = append(errs, fmt.Errorf("remove %s: %w", display(p.path), withoutPath(err)))
		}
	}
	return errors.Join(errs...)
}

// removeEmpty removes a directory if it is empty and still where it was opened.
// Any other directory stays.
func (s *pins) removeEmpty(p *pin) error {
	if err := s.checkInPlace(p); err != nil {
		return err
	}
	if _, err := s.at(p.path, false); err != nil || !p.empty() {
		return err
	}
	parent, err := s.at(p.parent.path, false)
	if err != nil {
		return err
	}
	s.forget(p.path)
	parent.changed = true
	return parent.dir.Remove(base(p.path))
}

// unchanged reports whether a name still has the file info was; nil means that
// it did not exist. For a directory it checks only identity, because this
// package changes its contents.
func (p *pin) unchanged(name string, was fs.FileInfo) bool {
	now, err := p.dir.Lstat(name)
	if err != nil {
		return was == nil && isNotExist(err)
	}
	if was == nil || !os.SameFile(now, was) || now.Mode() != was.Mode() {
		return false
	}
	return now.IsDir() || now.Size() == was.Size() && now.ModTime().Equal(was.ModTime())
}

// empty reports whether the directory is empty.
func (p *pin) empty() bool {
	f, err := p.dir.Open(".")
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// sync makes the changed names durable.
func (s *pins) sync(step func(string, ...any) error) error {
	for _, p := range s.sorted() {
		if !p.changed {
			continue
		}
		if err := step("sync %s", p.path); err != nil {
			return err
		}
		p, err := s.at(p.path, false)
		if err == nil {
			err = syncDir(p.dir)
		}
		if err != nil {
			return fmt.Errorf("sync %s: %w", display(p.path), withoutPath(err))
		}
	}
	return nil
}

// close closes all directories except the root.
func (s *pins) close() {
	for _, p := range s.byPath {
		if p.parent != nil {
			s.release(p)
		}
	}
}

// tempName returns the name of a path's temporary file. It depends only on the
// path and the target state, so that a repeated change finds what a crash left.
func tempName(path, target string) string {
	sum := sha256.Sum256([]byte(path + "\x00" + target))
	return tempPrefix + hex.EncodeToString(sum[:12])
}

// temp describes a temporary file to write.
type temp struct {
	name string
	path string      // of the target, for errors
	mode fs.FileMode // permission bits
	old  fs.FileInfo // the file that it replaces; nil if there is none
}

// writeTemp writes and syncs a temporary file in the directory. After an error
// a part of it may remain.
func (p *pin) writeTemp(t temp, fill func(io.Writer) error) error {
	f, err := p.dir.OpenFile(t.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", display(t.path), withoutPath(err))
	}
	if t.old != nil {
		copyOwner(f, t.old)
	}
	err = fill(f)
	if err == nil {
		err = f.Chmod(t.mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", display(t.path), withoutPath(err))
	}
	return nil
}

// removeTemp removes the temporary file of that name if it exists. The path of
// the target is used only in errors.
func (p *pin) removeTemp(name, path string) error {
	err := p.dir.Remove(name)
	if err != nil && !isNotExist(err) {
		return fmt.Errorf("remove the temporary file of %s: %w", display(path), withoutPath(err))
	}
	return nil
}

// withoutPath strips from an error the path given to the system, which is
// relative to a directory that the reader does not know.
func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}
