package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// pins are the directories that one Apply works in, held open from the first
// look to the last sync, so that names are changed in the very directories
// that were looked at.
type pins struct {
	root *os.Root
	held map[string]*pin
}

// pin is one directory.
type pin struct {
	path    string
	dir     *os.Root
	info    fs.FileInfo
	parent  *pin // nil for the root
	made    bool // by this Apply
	changed bool // its names were changed
}

// at returns the directory of that path. A missing one is made, or is
// fs.ErrNotExist.
func (s *pins) at(path string, create bool) (*pin, error) {
	if p := s.held[path]; p != nil {
		return p, nil
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
	return p
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
		info, err := p.parent.dir.Lstat(base(p.path))
		if err != nil || !os.SameFile(info, p.info) {
			return refuse(p.path, "the directory was replaced meanwhile")
		}
	}
	return nil
}

// removeMade removes the directories that this Apply made, the deepest first.
// One that is not empty any more stays.
func (s *pins) removeMade() error {
	var errs []error
	for _, p := range slices.Backward(s.sorted()) {
		if !p.made {
			continue
		}
		info, err := p.parent.dir.Lstat(base(p.path))
		if err == nil && os.SameFile(info, p.info) && p.empty() {
			err = p.parent.dir.Remove(base(p.path))
		}
		if err != nil && !missing(err) {
			errs = append(errs, fmt.Errorf("remove %s: %w", display(p.path), withoutPath(err)))
		}
	}
	return errors.Join(errs...)
}

// empty reports whether nothing is in the directory.
func (p *pin) empty() bool {
	f, err := p.dir.Open(".")
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(1)
	return len(names) == 0
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
		if err := syncDir(p.dir); err != nil {
			return fmt.Errorf("sync %s: %w", display(p.path), withoutPath(err))
		}
	}
	return nil
}

// close closes all but the root.
func (s *pins) close() {
	for _, p := range s.held {
		if p.parent != nil {
			p.dir.Close()
		}
	}
}

// tempName is the name of an edit's temporary file. It follows from path and
// contents, so that the same change finds what a crash has left.
func tempName(p *pending) string {
	sum := sha256.Sum256([]byte(p.path + "\x00" + p.after.Digest))
	return tempPrefix + hex.EncodeToString(sum[:12])
}

// writeTemp writes a temporary file in the directory and syncs it.
func (p *pin) writeTemp(e *pending, content []byte, mode fs.FileMode) error {
	f, err := p.dir.OpenFile(tempName(e), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", display(e.path), withoutPath(err))
	}
	if e.info != nil {
		keepOwner(f, e.info)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", display(e.path), withoutPath(err))
	}
	return nil
}

// removeTemp removes an edit's temporary file, if there is one.
func (p *pin) removeTemp(e *pending) error {
	err := p.dir.Remove(tempName(e))
	if err != nil && !missing(err) {
		return fmt.Errorf("remove the temporary file of %s: %w", display(e.path), withoutPath(err))
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
