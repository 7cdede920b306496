package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"hone/journal/internal/dir"
)

// Move moves the home to a path outside the workspace, together with its lock and
// the journal, which this process has open; nothing else in the process may use the
// home at the same time. The path must not exist, but its parent directory must. If
// Move fails, the home stays where it is.
//
// If the path is on another file system, or a file of the home has other hard links,
// through which commands could still write it, Move copies the home. A process that is
// killed leaves a complete home in one of the two places. The next [Home.Lock] of
// the copy removes what is left in the workspace; the next Move replaces an
// incomplete copy.
func (h *Home) Move(path string, l *Lock, j *Journal) error {
	m := move{home: h, lock: l, journal: j, to: path, rename: os.Rename, step: func() {}}
	if err := m.do(); err != nil {
		return fmt.Errorf("move %s: %w", h.in.Path, err)
	}
	return nil
}

type move struct {
	home    *Home
	lock    *Lock
	journal *Journal
	to      string
	rename  func(from, to string) error // os.Rename, of the home in the workspace
	step    func()                      // is called between steps; tests kill there
}

func (m *move) do() error {
	m.journal.mu.Lock()
	defer m.journal.mu.Unlock()
	if err := errors.Join(m.journal.Pack.Sync(), m.journal.Pack.Close()); err != nil {
		return err
	}
	m.step()
	if hasLinks(m.home.in.Root) {
		return m.copy()
	}
	from := m.home.in.Path
	err := m.rename(from, m.to)
	m.step()
	if errors.Is(err, syscall.EXDEV) {
		return m.copy()
	}
	if err != nil {
		return err
	}
	// Open files and the lock remain valid. Only a power failure could undo the rename.
	m.home.in.Path = m.to
	_ = errors.Join(syncPath(filepath.Dir(m.to)), syncPath(filepath.Dir(from)))
	return nil
}

// Files that cannot be read do not count.
func hasLinks(home *os.Root) (found bool) {
	_ = fs.WalkDir(home.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err == nil && hasOtherNames(info) {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}

func (m *move) copy() error {
	temp := m.to + ".new"
	c, err := m.copyTo(temp)
	if err == nil {
		err = createFile(m.to + movedSuffix)
	}
	if err == nil {
		m.step()
		err = os.Rename(temp, m.to)
	}
	if err != nil {
		c.Close()
		return errors.Join(err, os.RemoveAll(temp))
	}
	_ = syncPath(filepath.Dir(m.to))
	m.step()
	h, old := m.home, opened{m.home.in.Root, m.lock.file, m.journal.file}
	h.in.Path, h.in.Root, m.lock.file, m.journal.file = m.to, c.root, c.lock, c.journal
	h.removeMoved()
	old.Close()
	return nil
}

// movedSuffix ends the name of the file next to a copied home that exists while the
// original may still be in the workspace.
const movedSuffix = ".moved"

// What cannot be removed stays for the next time; nothing reads it.
func (h *Home) removeMoved() {
	original := filepath.Join(h.workspace, HomeName)
	if h.in.Path == original {
		return
	}
	if _, err := os.Lstat(h.in.Path + movedSuffix); err != nil {
		return
	}
	if os.RemoveAll(original) == nil {
		_ = os.Remove(h.in.Path + movedSuffix)
	}
}

// opened are the open files of a home; each may be nil.
type opened struct {
	root          *os.Root
	lock, journal *os.File
}

// Close closes the files.
func (o opened) Close() {
	if o.journal != nil {
		o.journal.Close()
	}
	if o.lock != nil {
		o.lock.Close()
	}
	if o.root != nil {
		o.root.Close()
	}
}

// It also makes the copy durable and locks it.
func (m *move) copyTo(temp string) (o opened, err error) {
	if err := errors.Join(os.RemoveAll(temp), os.Mkdir(temp, 0o700)); err != nil {
		return o, err
	}
	if o.root, err = os.OpenRoot(temp); err != nil {
		return o, err
	}
	if err := fs.WalkDir(m.home.in.Root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		m.step()
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return dir.Make(o.root, path)
		case d.Type().IsRegular():
			return copyFile(m.home.in.Root, o.root, path)
		}
		return nil // hone makes no other files
	}); err != nil {
		return o, err
	}
	in := &dir.Dir{Root: o.root}
	if err := fs.WalkDir(o.root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return in.Sync(path)
	}); err != nil {
		return o, err
	}
	if o.lock, err = openLock(o.root, temp); err != nil {
		return o, err
	}
	if err := tryLock(o.lock); err != nil {
		return o, err
	}
	if o.journal, err = o.root.OpenFile(runFile(m.journal.run), os.O_RDWR, 0); err != nil {
		return o, err
	}
	_, err = o.journal.Seek(m.journal.size, io.SeekStart)
	return o, err
}

func copyFile(from, to *os.Root, path string) error {
	r, err := from.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := to.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Sync(), w.Close())
}

func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func syncPath(path string) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	return (&dir.Dir{Root: root}).Sync(".")
}
