package journal

import (
	"errors"
	"fmt"
	"hone/journal/objects"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Move moves the home to a path outside the workspace, together with its lock and
// the journal, which this process has open; nothing else in the process may use the
// home at the same time. The path must not exist, but its parent directory must. If
// Move fails, the home stays where it is.
//
// Move copies the files, because the path may be on another file system, and other hard links,
// through which commands could still write them, may lead to the originals. If the process is
// killed, the home is where it was until the copy is complete; the next Move replaces an
// incomplete copy. What is left of the originals is not used any more.
func (h *Home) Move(path string, l *Lock, j *Journal) error {
	if err := h.move(path, l, j, func() {}); err != nil {
		return fmt.Errorf("move %s: %w", h.in.Path, err)
	}
	return nil
}

// step is called between steps; tests kill there.
func (h *Home) move(path string, l *Lock, j *Journal, step func()) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := errors.Join(j.Pack.Sync(), j.Pack.Close()); err != nil {
		return err
	}
	temp := path + tempSuffix
	c, err := h.copyTo(temp, j, step)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		c.Close()
		return errors.Join(err, os.RemoveAll(temp))
	}
	step()
	if parent, err := os.OpenRoot(filepath.Dir(path)); err == nil { // only a power failure could undo the rename
		_ = errors.Join((&objects.Dir{Root: parent}).Sync("."), parent.Close())
	}
	old, original := opened{h.in.Root, l.file, j.file}, h.in.Path
	h.in.Root, l.file, j.file, h.in.Path = c.root, c.lock, c.journal, path
	old.Close()
	_ = os.RemoveAll(original)
	return nil
}

// opened are the open files of a home; each may be nil.
type opened struct {
	root          *os.Root
	lock, journal *os.File
}

// Close closes the files.
func (o opened) Close() {
	for _, f := range []*os.File{o.journal, o.lock} {
		f.Close() // fails if it is nil
	}
	if o.root != nil {
		o.root.Close()
	}
}

// The copy is durable and locked.
func (h *Home) copyTo(temp string, j *Journal, step func()) (o opened, err error) {
	if err := errors.Join(os.RemoveAll(temp), os.Mkdir(temp, 0o700)); err != nil {
		return o, err
	}
	if o.root, err = os.OpenRoot(temp); err != nil {
		return o, err
	}
	var folders []string
	if err := fs.WalkDir(h.in.Root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		step()
		switch {
		case err != nil:
			return err
		case d.IsDir():
			folders = append(folders, path)
			return objects.MakeDir(o.root, path)
		case d.Type().IsRegular():
			return copyFile(h.in.Root, o.root, path)
		}
		return nil // hone makes no other files
	}); err != nil {
		return o, err
	}
	for _, path := range folders {
		if err := (&objects.Dir{Root: o.root}).Sync(path); err != nil {
			return o, err
		}
	}
	if o.lock, err = openLock(o.root, temp); err != nil {
		return o, err
	}
	if err := tryLock(o.lock); err != nil {
		return o, err
	}
	if o.journal, err = o.root.OpenFile(runFile(j.run), os.O_RDWR, 0); err != nil {
		return o, err
	}
	_, err = o.journal.Seek(j.size, io.SeekStart)
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
