// Package placeholder fills names that must not exist with harmless files while
// commands run: a wall can mount a file read-only only if it exists.
//
// A [Set] creates the placeholders of one directory before the first command and
// removes them after the last, also across processes. It records in a directory
// outside that one what it is about to create, so that [Settle] removes the
// placeholders of a process that was killed.
package placeholder

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
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

// file is a placeholder, or a directory that was created for one.
type file struct {
	Path string // relative to the root
	sandbox.Placeholder
}

// Set is the placeholders for paths in one directory. It is safe for concurrent
// use. A nil Set has none.
type Set struct {
	root   string
	files  []file // sorted by path
	record record

	mu     sync.Mutex
	active int
	lock   *os.File // shared with the other processes that have placeholders in root; nil if active is 0
}

// New returns a set of placeholders, by absolute paths below root. Nothing exists
// there, or it may disappear. The set is recorded in the directory records.
func New(records, root string, placeholders map[string]sandbox.Placeholder) (*Set, error) {
	if err := os.MkdirAll(records, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for records of placeholders: %w", err)
	}
	s := &Set{root: root, record: recordOf(records, root)}
	for path, p := range placeholders {
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, file{rel, p})
	}
	slices.SortFunc(s.files, func(a, b file) int { return strings.Compare(a.Path, b.Path) })
	return s, nil
}

// Around runs a command while the placeholders exist. An error of creating or
// removing them is joined to that of the command, which does not run if they
// cannot be created.
func (s *Set) Around(run func() error) error {
	if s == nil {
		return run()
	}
	if err := s.enter(); err != nil {
		return fmt.Errorf("protect files in %s: %w", s.root, err)
	}
	err := run()
	if left := s.leave(); left != nil {
		err = errors.Join(err, fmt.Errorf("remove placeholders in %s: %w", s.root, left))
	}
	return err
}

// enter creates the placeholders, unless another command of the set runs.
func (s *Set) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active > 0 {
		s.active++
		return nil
	}
	err := s.record.exclusive(func() (err error) {
		if s.lock, err = s.record.share(); err == nil {
			err = s.create()
		}
		return err
	})
	if err != nil {
		return errors.Join(err, s.drop())
	}
	s.active++
	return nil
}

// leave removes the placeholders after the last command.
func (s *Set) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active--; s.active > 0 {
		return nil
	}
	return s.drop()
}

// drop removes the placeholders, unless another process still needs them.
func (s *Set) drop() error {
	if s.lock == nil {
		return nil
	}
	lock := s.lock
	s.lock = nil
	return s.record.exclusive(func() error {
		defer lock.Close()
		if !alone(lock) {
			return nil
		}
		return s.record.settle()
	})
}

// create records and creates what does not exist.
func (s *Set) create() error {
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return err
	}
	defer root.Close()
	missing := s.missing(root)
	if err := s.record.add(missing); err != nil {
		return err
	}
	for _, f := range missing {
		if err := f.create(root); err != nil {
			return err
		}
	}
	return nil
}

// missing returns the placeholders to create, and the directories that they need
// before them.
func (s *Set) missing(root *os.Root) []file {
	var all []file
	add := func(f file, ok func(fs.FileInfo) bool) {
		if info, err := root.Lstat(f.Path); (err != nil || !ok(info)) && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	for _, f := range s.files {
		for i, c := range f.Path {
			if c == filepath.Separator {
				add(file{f.Path[:i], sandbox.Placeholder{Dir: true}}, fs.FileInfo.IsDir)
			}
		}
		add(f, func(fs.FileInfo) bool { return true })
	}
	return all
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

// Close removes the record if no other process needs it. No command may run.
func (s *Set) Close() error {
	if s == nil {
		return nil
	}
	return s.record.exclusive(s.record.forget)
}

// Settle removes the placeholders that processes left which no longer run.
func Settle(records string) error {
	entries, err := os.ReadDir(records)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), listEnding); ok {
			r := record{dir: records, name: name}
			errs = append(errs, r.exclusive(r.forget))
		}
	}
	return errors.Join(errs...)
}

// record is what was created in one directory: a list, and a file that each
// process locks while its commands need the placeholders.
type record struct{ dir, name, root string }

// list is the stored form of a record.
type list struct {
	Root  string
	Files []file
}

const (
	listEnding = ".list"
	lockEnding = ".lock"
	// mutexName is the file that is locked while records and placeholders change.
	mutexName = "mutex"
)

func recordOf(dir, root string) record {
	sum := sha256.Sum256([]byte(root))
	return record{dir: dir, name: fmt.Sprintf("%x", sum[:12]), root: root}
}

func (r record) path(ending string) string { return filepath.Join(r.dir, r.name+ending) }

// exclusive calls do while no other process changes records and placeholders.
func (r record) exclusive(do func() error) error {
	mutex, err := os.OpenFile(filepath.Join(r.dir, mutexName), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = lockWait(mutex)
	}
	if err != nil {
		return fmt.Errorf("lock the records of placeholders: %w", err)
	}
	defer mutex.Close()
	return do()
}

// share opens and locks the lock file together with other processes.
func (r record) share() (*os.File, error) {
	lock, err := os.OpenFile(r.path(lockEnding), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockShared(lock); err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// read returns the list. A list that cannot be read was never complete, so
// nothing was created for it.
func (r record) read() list {
	var l list
	text, err := os.ReadFile(r.path(listEnding))
	if err == nil && gob.NewDecoder(bytes.NewReader(text)).Decode(&l) != nil {
		return list{}
	}
	return l
}

// add adds files to the list, and syncs it to the disk if it was changed.
func (r record) add(files []file) error {
	l := r.read()
	old := len(l.Files)
	for _, f := range files {
		if !slices.Contains(l.Files, f) {
			l.Files = append(l.Files, f)
		}
	}
	if len(l.Files) == old {
		return nil
	}
	l.Root = r.root
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).Encode(l); err != nil { // not JSON, because paths need not be UTF-8
		return err
	}
	return writeSynced(r.path(listEnding), text.Bytes())
}

// writeSynced replaces a file, and syncs it to the disk.
func writeSynced(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// settle removes the placeholders of the list, inner ones first.
func (r record) settle() error {
	l := r.read()
	if l.Root == "" {
		return nil
	}
	root, err := os.OpenRoot(l.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	var errs []error
	for _, f := range slices.Backward(l.Files) {
		errs = append(errs, f.remove(root))
	}
	return errors.Join(errs...)
}

// forget removes the placeholders and the record, unless a process needs them.
func (r record) forget() error {
	lock, err := r.share()
	if err != nil {
		return err
	}
	defer lock.Close()
	if !alone(lock) {
		return nil
	}
	if err := r.settle(); err != nil {
		return err
	}
	return errors.Join(ignoreMissing(os.Remove(r.path(listEnding))), ignoreMissing(os.Remove(r.path(lockEnding))))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
