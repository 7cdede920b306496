package putback

import (
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

const (
	// maxReported is how many changes are reported one by one.
	maxReported = 100
	// maxDepth is how deep directories are copied.
	maxDepth = 256
)

// restorer restores what was found at protected paths, and reports the changes.
type restorer struct {
	*tree
	aside    string
	folder   string // in aside, for this restoration; each file gets a directory in it
	restored []sandbox.Restored
	errs     []error
	modes    map[string]fs.FileMode // to give to directories at the end
	created  []string               // protected directories, which are reported as a whole
}

// all restores a tree.
func (r *restorer) all(t *tree) {
	r.tree, r.modes, r.created = t, map[string]fs.FileMode{}, nil
	if err := r.open(); err != nil {
		r.try(".", err)
		return
	}
	defer r.root.Close()
	for _, path := range slices.Sorted(maps.Keys(t.Items)) { // outer ones first
		r.try(path, r.restore(path, t.Items[path]))
	}
	for _, path := range slices.Sorted(maps.Keys(t.Named)) {
		if t.Named[path] == protected {
			r.try(path, r.walk(path, r.removeNew))
		}
	}
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(r.modes))) {
		r.try(path, r.root.Chmod(path, r.modes[path]))
	}
}

// open opens the tree, also if its owner may not.
func (r *restorer) open() error {
	info, err := os.Lstat(r.Path)
	if err != nil {
		return err
	}
	if stampOf(info).Inode != r.Items["."].Stamp.Inode {
		return errors.New("it is not the same directory as before")
	}
	if info.Mode()&0o700 != 0o700 {
		err = os.Chmod(r.Path, info.Mode()|0o700)
		r.modes["."] = info.Mode()
	}
	if err == nil {
		r.root, err = os.OpenRoot(r.Path)
	}
	return err
}

// restore restores a path.
func (r *restorer) restore(path string, was *item) error {
	now, err := look(r.root, path)
	switch {
	case err != nil:
		return err
	case was.Kind == parent && !was.Mode.IsDir() && (now == nil || now.Mode&(fs.ModeDir|fs.ModeSymlink) == 0):
		return nil
	case now != nil && now.Mode.IsDir() && (was.Kind == parent || was.Mode.IsDir()):
		return r.restoreMode(path, was, now.Mode)
	case now != nil && was.Kind == protected && was.same(r.root, path, now):
		return nil
	case was.Lost != "":
		r.report(path, "", was.Lost)
		return nil
	}
	return r.replace(path, was, now)
}

// restoreMode restores the mode of a directory; of a parent only its owner's
// permissions. Until the end the owner has all of them.
func (r *restorer) restoreMode(path string, was *item, now fs.FileMode) error {
	if before, ok := r.modes[path]; ok {
		now = before
	}
	mode := now
	if was.Kind == protected || was.Mode.IsDir() && was.Mode&0o700&^now != 0 {
		mode = was.Mode
	}
	if mode != now {
		r.report(path, "", "")
	}
	if mode == now && now&0o700 == 0o700 {
		return nil
	}
	r.modes[path] = mode
	return r.root.Chmod(path, mode|0o700)
}

// replace moves away what is at a path, and creates what was there.
func (r *restorer) replace(path string, was, now *item) (err error) {
	movedTo, lost := "", ""
	if now != nil {
		movedTo, err = r.take(path, now)
	}
	if err == nil && (was.Kind == protected || was.Mode.IsDir()) {
		lost, err = was.create(r.root, path)
	}
	if err != nil {
		return err
	}
	quiet := was.Kind == parent || slices.ContainsFunc(r.created, func(dir string) bool { return sandbox.Within(dir, path) })
	if movedTo != "" || lost != "" || !quiet {
		r.report(path, movedTo, lost)
	}
	if was.Mode.IsDir() {
		r.modes[path] = was.Mode
	}
	if was.Mode.IsDir() && was.Kind == protected {
		r.created = append(r.created, path)
	}
	return nil
}

// removeNew moves away what was not there before. It returns whether something else
// may be in what was there.
func (r *restorer) removeNew(path string, now *item) bool {
	if was := r.Items[path]; was != nil {
		return was.Lost == ""
	}
	movedTo, err := r.take(path, now)
	if err == nil {
		r.report(path, movedTo, "")
	}
	r.try(path, err)
	return false
}

// create creates a file, a symlink, or an empty directory. lost says what could not
// be restored.
func (it *item) create(root *os.Root, path string) (lost string, err error) {
	switch {
	case it.Mode.IsDir():
		err = root.Mkdir(path, 0o700)
	case it.Mode&fs.ModeSymlink != 0:
		err = root.Symlink(it.Target, path)
	default:
		err = it.write(root, path)
	}
	now, unread := look(root, path)
	if err = errors.Join(err, unread); err != nil {
		return "", err
	}
	if (now.Stamp.UID != it.Stamp.UID || now.Stamp.GID != it.Stamp.GID) && root.Lchown(path, it.Stamp.UID, it.Stamp.GID) != nil {
		lost = "its owner could not be restored"
	}
	if it.Mode.IsRegular() {
		err = root.Chmod(path, it.Mode) // after the owner, because that clears bits
	}
	return lost, err
}

// write creates a file.
func (it *item) write(root *os.Root, path string) error {
	f, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(it.Data)
	return errors.Join(err, f.Sync(), f.Close())
}

// take moves what is at a path to aside, and returns its new path.
func (r *restorer) take(path string, now *item) (movedTo string, err error) {
	if r.folder == "" {
		if r.folder, err = os.MkdirTemp(r.aside, "left-*"); err != nil {
			return "", err
		}
	}
	folder, err := os.MkdirTemp(r.folder, "*")
	if err != nil {
		return "", err
	}
	movedTo = filepath.Join(folder, filepath.Base(path))
	if now.Mode.IsDir() {
		_ = r.root.Chmod(path, 0o700) // otherwise its owner cannot move it
	}
	if os.Rename(filepath.Join(r.Path, path), movedTo) == nil {
		return movedTo, nil
	}
	if err := r.copy(path, folder); err != nil {
		return "", fmt.Errorf("keep a copy: %w", err)
	}
	return movedTo, r.root.RemoveAll(path)
}

// copy copies files, directories and symlinks of at most maxKept bytes to another
// file system.
func (r *restorer) copy(path, folder string) error {
	to, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer to.Close()
	room := int64(maxKept)
	var errs []error
	unread := (&tree{root: r.root}).walk(path, func(inner string, it *item) bool {
		if it.Mode&fs.ModeSymlink == 0 {
			_ = r.root.Chmod(inner, 0o700) // otherwise its owner cannot read it
		}
		if it.read(r.root, inner, &room); it.Lost == "" {
			rel, err := filepath.Rel(filepath.Dir(path), inner)
			_, failed := it.create(to, rel)
			errs = append(errs, err, failed)
		}
		return strings.Count(inner, string(filepath.Separator)) < maxDepth
	})
	return errors.Join(append(errs, unread)...)
}

// report reports a change.
func (r *restorer) report(path, movedTo, lost string) {
	path = filepath.Join(r.Path, path)
	if len(r.restored) < maxReported {
		r.restored = append(r.restored, sandbox.Restored{Path: path, MovedTo: movedTo, NotRestored: lost})
		return
	}
	last := &r.restored[maxReported-1]
	last.Path, last.MovedTo = filepath.Dir(path), r.folder
	if lost != "" {
		last.NotRestored = lost
	}
}

// try reports a path that could not be restored because of an error; nil means none.
func (r *restorer) try(path string, err error) {
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("restore %s: %w", filepath.Join(r.Path, path), err))
		r.report(path, "", err.Error())
	}
}
