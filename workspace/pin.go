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

// maxOpen is how many directories are held open at once.
const maxOpen = 512

// pins are the directories that one Apply or Restore works in, known from the
// first look to the last sync, so that names are changed in the very
// directories that were looked at. As many as descriptors allow are held open;
// the others are opened again, and have to be the same.
type pins struct {
	root *os.Root
	held map[string]*pin
	open int
}

// pin is one directory.
type pin struct {
	path    string
	dir     *os.Root // nil while it is not open; open until the next call of at
	info    fs.FileInfo
	parent  *pin // nil for the root
	made    bool // by this run
	changed bool // its names were changed
}

// at returns the directory of that path. A missing one is made, or is
// fs.ErrNotExist.
func (s *pins) at(path string, create bool) (*pin, error) {
	if p := s.held[path]; p != nil {
		return p, s.reopen(p)
	}
	if path == "" {
		return s.hold(&pin{dir: s.root}), nil
	}
	parent, err := s.at(parentOf(path), create)
	if err != nil {
		return nil, err
	}
	p := &pin{path: path, parent: parent}
	p.dir, p.info, err = openDir(parent.dir, base(path), path)
	if create && errors.Is(err, fs.ErrNotExist) {
		err = p.make()
	}
	var refused *RefusedError
	if err != nil && !errors.As(err, &refused) {
		err = fmt.Errorf("directory %s: %w", display(path), withoutPath(err))
	}
	if err != nil {
		return nil, err
	}
	return s.hold(p), nil
}

func (s *pins) hold(p *pin) *pin {
	if s.held == nil {
		s.held = map[string]*pin{}
	}
	s.held[p.path] = p
	s.opened(p)
	return p
}

// opened counts, and closes what is not on the way to p when it is too much.
func (s *pins) opened(p *pin) {
	if s.open++; s.open <= maxOpen {
		return
	}
	for _, other := range s.held {
		if other.parent != nil && !holds(other.path, p.path) {
			s.release(other)
		}
	}
}

func (s *pins) release(p *pin) {
	if p.dir != nil {
		p.dir.Close()
		p.dir = nil
		s.open--
	}
}

// reopen makes sure that a directory is open.
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
		err = refuse(p.path, "the directory was replaced meanwhile")
	}
	if err != nil {
		return fmt.Errorf("directory %s: %w", display(p.path), withoutPath(err))
	}
	p.dir = dir
	s.opened(p)
	return nil
}

// forget closes a directory that is about to be removed or renamed, and that
// holds no other pin.
func (s *pins) forget(path string) {
	if p := s.held[path]; p != nil && p.parent != nil {
		s.release(p)
		delete(s.held, path)
	}
}

// make creates and opens the directory.
func (p *pin) make() (err error) {
	if err := p.parent.dir.Mkdir(base(p.path), 0o755); err != nil {
		return err
	}
	p.made, p.parent.changed = true, true
	p.dir, p.info, err = openDir(p.parent.dir, base(p.path), p.path)
	if err != nil {
		_ = p.parent.dir.Remove(base(p.path))
	}
	return err
}

// sorted returns the pins, parents first.
func (s *pins) sorted() []*pin {
	all := make([]*pin, 0, len(s.held))
	for _, p := range s.held {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *pin) int { return strings.Compare(a.path, b.path) })
	return all
}

// check finds a directory that is no longer where it was opened.
func (s *pins) check() error {
	for _, p := range s.sorted() {
		if p.parent == nil {
			continue
		}
		if err := s.inPlace(p); err != nil {
			return err
		}
	}
	return nil
}

// inPlace finds out whether a directory is still where it was opened.
func (s *pins) inPlace(p *pin) error {
	parent, err := s.at(p.parent.path, false)
	if err != nil {
		return err
	}
	info, err := parent.dir.Lstat(base(p.path))
	if err != nil || !os.SameFile(info, p.info) {
		return refuse(p.path, "the directory was replaced meanwhile")
	}
	return nil
}

// removeMade removes the directories that this run made, the deepest first.
// One that is not empty any more stays.
func (s *pins) removeMade() error {
	var errs []error
	for _, p := range slices.Backward(s.sorted()) {
		if !p.made {
			continue
		}
		if err := s.removeEmpty(p); err != nil && !absent(err) {
			errs = append(errs, fmt.Errorf("remove %s: %w", display(p.path), withoutPath(err)))
		}
	}
	return errors.Join(errs...)
}

// removeEmpty removes a directory that is empty and still where it was opened;
// any other stays.
func (s *pins) removeEmpty(p *pin) error {
	if err := s.inPlace(p); err != nil {
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

// still reports whether a name has what was found there; nil is that nothing
// was. Of a directory it is only that it is the same: its contents change under
// our hands.
func (p *pin) still(name string, was fs.FileInfo) bool {
	now, err := p.dir.Lstat(name)
	if err != nil {
		return was == nil && missing(err)
	}
	if was == nil || !os.SameFile(now, was) || now.Mode() != was.Mode() {
		return false
	}
	return now.IsDir() || now.Size() == was.Size() && now.ModTime().Equal(was.ModTime())
}

// empty reports whether nothing is in the directory.
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

// close closes all but the root.
func (s *pins) close() {
	for _, p := range s.held {
		if p.parent != nil {
			s.release(p)
		}
	}
}

// tempName is the name of a path's temporary file. It follows from the path and
// what it shall be, so that the same change finds what a crash has left.
func tempName(path, shallBe string) string {
	sum := sha256.Sum256([]byte(path + "\x00" + shallBe))
	return tempPrefix + hex.EncodeToString(sum[:12])
}

// temp is a temporary file, or what will be one.
type temp struct {
	name string
	path string      // that it stands for
	mode fs.FileMode // permission bits
	old  fs.FileInfo // the file that it replaces; nil: none
}

// writeTemp writes a temporary file in the directory and syncs it. An error
// may leave a part of it.
func (p *pin) writeTemp(t temp, fill func(io.Writer) error) error {
	f, err := p.dir.OpenFile(t.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", display(t.path), withoutPath(err))
	}
	if t.old != nil {
		keepOwner(f, t.old)
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

// removeTemp removes the temporary file of that name, if there is one. The
// path that it stands for is for the error alone.
func (p *pin) removeTemp(name, path string) error {
	err := p.dir.Remove(name)
	if err != nil && !missing(err) {
		return fmt.Errorf("remove the temporary file of %s: %w", display(path), withoutPath(err))
	}
	return nil
}

// withoutPath removes from an error the path as the system was given it, which
// is relative to a directory that the reader does not know.
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
