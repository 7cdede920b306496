package putback

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

// placeholders are harmless files in place of those that must not exist in one
// directory: a wall can mount a file read-only only if it exists. They are created
// before the first command and removed after the last, also across processes.
type placeholders struct {
	root   string
	files  []file   // outer ones first
	record string   // the path of the record, without its ending; the same for all processes
	lock   *os.File // shared with the other processes that need the placeholders; nil if this one does not
}

// file is a placeholder, or a directory that was created for one.
type file struct {
	Path string // relative to the root
	sandbox.Placeholder
}

// list is the record of what was created in a directory.
type list struct {
	Root  string
	Files []file
}

const (
	listEnding = ".created"
	// usedEnding is that of the file that each process locks while its commands need
	// the placeholders.
	usedEnding = ".used"
	// mutexName is the file that is locked while records and placeholders change.
	mutexName = "mutex"
)

// newPlaceholders returns placeholders by absolute paths below root. Nothing exists
// there, or it may disappear.
func newPlaceholders(records, root string, byPath map[string]sandbox.Placeholder) (*placeholders, error) {
	if err := os.MkdirAll(records, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for records of placeholders: %w", err)
	}
	sum := sha256.Sum256([]byte(root))
	p := &placeholders{root: root, record: filepath.Join(records, fmt.Sprintf("%x", sum[:12]))}
	add := func(f file) {
		if !slices.Contains(p.files, f) {
			p.files = append(p.files, f)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		for i, c := range rel {
			if c == filepath.Separator {
				add(file{rel[:i], sandbox.Placeholder{Dir: true}})
			}
		}
		add(file{rel, byPath[path]})
	}
	return p, nil
}

// fill records and creates the placeholders that do not exist.
func (p *placeholders) fill() error {
	return p.exclusive(func() (err error) {
		if p.lock, err = p.share(); err != nil {
			return err
		}
		root, err := os.OpenRoot(p.root)
		if err != nil {
			return err
		}
		defer root.Close()
		missing := slices.DeleteFunc(slices.Clone(p.files), func(f file) bool {
			info, err := root.Lstat(f.Path)
			return err == nil && (info.IsDir() || !f.Dir)
		})
		l, err := p.list()
		created := slices.DeleteFunc(slices.Clone(missing), func(f file) bool { return slices.Contains(l.Files, f) })
		if err == nil && len(created) > 0 {
			err = writeRecord(p.record+listEnding, list{p.root, append(l.Files, created...)})
		}
		for _, f := range missing {
			if err == nil {
				err = f.create(root)
			}
		}
		return err
	})
}

// share locks the file that shows that placeholders are in use.
func (p *placeholders) share() (*os.File, error) {
	lock, err := os.OpenFile(p.record+usedEnding, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = lockShared(lock)
	}
	return lock, err
}

// list returns the record; empty if there is none.
func (p *placeholders) list() (list, error) {
	var l list
	path := p.record + listEnding
	if err := ignoreMissing(readRecord(path, &l)); err != nil {
		return list{}, fmt.Errorf("%s: %w; move it away", path, err)
	}
	return l, nil
}

// create creates a placeholder.
func (f file) create(root *os.Root) error {
	if f.Dir {
		err := root.Mkdir(f.Path, 0o755)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s is not a directory; remove it", f.Path)
		}
		return err
	}
	to, err := root.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = to.WriteString(f.Text)
	return errors.Join(err, to.Close())
}

// remove removes a placeholder that is still as it was created. What replaced it
// or was added to it comes from outside the walls.
func (f file) remove(root *os.Root) error {
	info, err := root.Lstat(f.Path)
	switch {
	case err != nil || info.IsDir() != f.Dir:
		return nil
	case f.Dir:
		_ = root.Remove(f.Path) // fails if it is not empty
		return nil
	case !info.Mode().IsRegular() || info.Size() != int64(len(f.Text)):
		return nil
	}
	if text, err := root.ReadFile(f.Path); err != nil || string(text) != f.Text {
		return err
	}
	return root.Remove(f.Path)
}

// empty removes the placeholders, unless another process still needs them.
func (p *placeholders) empty() error {
	if p.lock == nil {
		return nil
	}
	lock := p.lock
	p.lock = nil
	return p.exclusive(func() error {
		defer lock.Close()
		if !alone(lock) {
			return nil
		}
		return p.removeAll()
	})
}

// removeAll removes all that is recorded, inner ones first.
func (p *placeholders) removeAll() error {
	l, err := p.list()
	if err != nil || l.Root == "" {
		return err
	}
	root, err := os.OpenRoot(l.Root)
	if err != nil {
		return ignoreMissing(err)
	}
	defer root.Close()
	var errs []error
	for _, f := range slices.Backward(l.Files) {
		errs = append(errs, f.remove(root))
	}
	return errors.Join(errs...)
}

// forget removes the placeholders and the record, unless a process needs them.
func (p *placeholders) forget() error {
	return p.exclusive(func() error {
		lock, err := p.share()
		if err != nil {
			return err
		}
		defer lock.Close()
		if !alone(lock) {
			return nil
		}
		if err := p.removeAll(); err != nil {
			return err
		}
		return errors.Join(ignoreMissing(os.Remove(p.record+listEnding)), ignoreMissing(os.Remove(p.record+usedEnding)))
	})
}

// exclusive calls do while no other process changes records and placeholders.
func (p *placeholders) exclusive(do func() error) error {
	mutex, err := os.OpenFile(filepath.Join(filepath.Dir(p.record), mutexName), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = lockWait(mutex)
	}
	if err != nil {
		return fmt.Errorf("lock the records of placeholders: %w", err)
	}
	defer mutex.Close()
	return do()
}

// SettlePlaceholders removes the placeholders that processes left which no longer
// run. records is the Records of their policies.
func SettlePlaceholders(records string) error {
	entries, err := os.ReadDir(records)
	errs := []error{ignoreMissing(err)}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), listEnding); ok {
			p := &placeholders{record: filepath.Join(records, name)}
			errs = append(errs, p.forget())
		}
	}
	return errors.Join(errs...)
}
