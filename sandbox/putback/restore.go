package putback

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/sandbox"
)

const (
	// maxReported is how many changes are reported one by one.
	maxReported = 100
	// maxDepth is how deep directories are restored and copied.
	maxDepth = 256
	// maxCopied is how many bytes are kept of what must be copied to another file
	// system.
	maxCopied = 64 << 20
)

// restorer restores what was found at protected paths, and reports the changes.
type restorer struct {
	*tree
	aside    string
	folder   string // in aside, for this restoration; each file gets a directory in it
	restored []sandbox.Restored
	errs     []error
	tried    map[string]int // how often each path was restored
	final    paths          // those that cannot be restored
	made     paths          // protected directories that were created, and are reported as a whole
}

// paths are relative paths.
type paths []string

// around reports whether a path is one of them, or in one.
func (p paths) around(path string) bool {
	return slices.ContainsFunc(p, func(dir string) bool { return dir == "." || sandbox.Within(dir, path) })
}

// all restores a tree. It inspects it again after each change, because only then it
// is known what is in a directory that was replaced or could not be searched.
func (r *restorer) all(t *tree) {
	r.tree, r.tried, r.final, r.made = t, map[string]int{}, nil, nil
	for range maxDepth {
		now, err := t.inspect(true)
		if err != nil {
			r.fail(".", err)
			return
		}
		changed, later := false, paths(nil)
		for _, path := range t.changes(now) {
			if r.final.around(path) || later.around(path) || r.tried[path] > 1 {
				continue
			}
			before := cmp.Or(t.Items[path], &item{})
			if r.restore(path, before, now[path]); before.Kind == parent || before.Mode.IsDir() {
				later = append(later, path)
			}
			changed = true
		}
		if !changed {
			return
		}
	}
	r.fail(".", errors.New("it is changed while it is being restored"))
}

// restore restores a path, and reports that.
func (r *restorer) restore(path string, before, now *item) {
	isDir, wasDir := now != nil && now.Mode.IsDir(), before.Mode.IsDir()
	movedTo, lost, final, err := "", before.Lost, true, error(nil)
	switch {
	case r.tried[path] > 0:
		lost, final = "it is not as before, or was changed again", !isDir
	case isDir && wasDir:
		lost, final, err = "", false, r.chmod(path, before.Mode)
	case lost == "":
		movedTo, lost, err = r.replace(path, before)
		final = lost != "" && !wasDir
	}
	r.tried[path]++
	quiet := r.made.around(path) || before.Kind == parent && now.Mode == 0
	switch {
	case err != nil:
		r.fail(path, err)
	case movedTo != "" || lost != "" || !quiet:
		r.tell(path, movedTo, lost)
	}
	if final {
		r.final = append(r.final, path)
	}
	if before.Kind == present && wasDir && !isDir {
		r.made = append(r.made, path)
	}
}

// tell reports a change.
func (r *restorer) tell(path, movedTo, lost string) {
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

// fail reports a path that could not be restored because of an error.
func (r *restorer) fail(path string, err error) {
	r.final = append(r.final, path)
	r.errs = append(r.errs, fmt.Errorf("restore %s: %w", filepath.Join(r.Path, path), err))
	r.tell(path, "", err.Error())
}

// replace moves away what is at a path, and creates what was there. lost says what
// could not be restored.
func (r *restorer) replace(path string, it *item) (movedTo, lost string, err error) {
	lock, err := r.unlock(filepath.Dir(path))
	if err != nil {
		return "", "", err
	}
	defer lock()
	if info, err := r.root.Lstat(path); err == nil {
		if movedTo, err = r.take(path, info); err != nil {
			return "", "", err
		}
	}
	if it.Kind != present && !it.Needed {
		return movedTo, "", nil
	}
	if err := r.create(path, it); err != nil {
		return movedTo, "", err
	}
	info, err := r.root.Lstat(path)
	if err == nil && it.Kind == present && it.Stamp.owner() != stampOf(info).owner() && r.root.Lchown(path, it.Stamp.UID, it.Stamp.GID) != nil {
		lost = "its owner could not be restored"
	}
	return movedTo, lost, errors.Join(err, r.chmod(path, it.Mode))
}

// create creates a file, symlink or directory.
func (r *restorer) create(path string, it *item) error {
	switch {
	case it.Mode.IsDir():
		return r.root.Mkdir(path, 0o700)
	case it.Mode&fs.ModeSymlink != 0:
		return r.root.Symlink(it.Link, path)
	}
	f, err := r.root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(it.Data)
	return errors.Join(err, f.Sync(), f.Close())
}

// chmod sets the mode of a file or directory.
func (r *restorer) chmod(path string, mode fs.FileMode) error {
	switch {
	case path == ".":
		return r.self.Chmod(mode)
	case mode&fs.ModeSymlink != 0:
		return nil
	}
	return r.root.Chmod(path, mode)
}

// unlock lets the owner of a directory change it until lock is called.
func (r *restorer) unlock(dir string) (lock func(), err error) {
	info, err := r.self.Stat()
	if dir != "." {
		info, err = r.root.Lstat(dir)
	}
	if err != nil || info.Mode()&0o700 == 0o700 {
		return func() {}, err
	}
	return func() { _ = r.chmod(dir, info.Mode()) }, r.chmod(dir, info.Mode()|0o700)
}

// take moves what is at a path to aside and returns its new path. If it must be copied
// to another file system it keeps at most maxCopied bytes, without FIFOs, sockets and
// devices.
func (r *restorer) take(path string, info fs.FileInfo) (movedTo string, err error) {
	if r.folder == "" {
		if r.folder, err = os.MkdirTemp(r.aside, "left-*"); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp(r.folder, "*")
	if err != nil {
		return "", err
	}
	movedTo = filepath.Join(dir, filepath.Base(path))
	if info.IsDir() {
		_ = r.root.Chmod(path, 0o700) // otherwise its owner cannot move it
	}
	if move(r.root, path, movedTo) == nil {
		return movedTo, nil
	}
	room := int64(maxCopied)
	if err := copyTree(r.root, path, movedTo, &room); err != nil {
		return "", fmt.Errorf("keep a copy: %w", err)
	}
	return movedTo, r.root.RemoveAll(path)
}

// copyTree copies what is at a path, as far as there is room. It gives the owner the
// permissions to read and remove it.
func copyTree(root *os.Root, path, to string, room *int64) error {
	info, err := root.Lstat(path)
	if err != nil {
		return err
	}
	*room -= 4096
	switch {
	case info.IsDir():
		if err = root.Chmod(path, 0o700); strings.Count(path, string(filepath.Separator)) > maxDepth {
			return err
		}
		names, unread := namesIn(root, path)
		err = errors.Join(err, unread, os.MkdirAll(to, 0o700))
		for _, name := range names {
			err = errors.Join(err, copyTree(root, filepath.Join(path, name), filepath.Join(to, name), room))
		}
	case *room <= 0:
	case info.Mode()&fs.ModeSymlink != 0:
		target, unread := root.Readlink(path)
		err = errors.Join(unread, os.Symlink(target, to))
	case info.Mode().IsRegular():
		_ = root.Chmod(path, 0o600)
		data, unread := readFile(root, path, *room)
		*room -= int64(len(data))
		err = errors.Join(unread, os.WriteFile(to, data, 0o600))
	}
	return err
}
