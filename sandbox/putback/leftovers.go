package putback

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// leftovers moves away what commands put in place of protected paths.
type leftovers struct {
	aside  string // empty: it is deleted
	folder string // the directory of this restoration; each file gets a directory in it
	count  int
}

const (
	// mostCopied is how many bytes are kept if a file or directory must be
	// copied to another file system.
	mostCopied = 64 << 20
	// deepest is the maximum depth of a directory tree.
	deepest = 256
)

// take moves the file at a name out of an open directory and returns its new path;
// empty if it was deleted. If it must be copied to another file system it keeps
// at most mostCopied bytes, without FIFOs, sockets and devices.
func (l *leftovers) take(dir *os.Root, name string) (kept string, err error) {
	if l.aside == "" {
		return "", discard(dir, name)
	}
	kept, err = l.place(name)
	if err != nil {
		return "", err
	}
	if move(dir, name, kept) == nil {
		return kept, nil
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return "", err
	}
	if info.IsDir() && dir.Chmod(name, 0o700) == nil && move(dir, name, kept) == nil {
		return kept, nil
	}
	to, err := os.OpenRoot(filepath.Dir(kept))
	if err != nil {
		return "", err
	}
	defer to.Close()
	room := int64(mostCopied)
	if err := copyTree(dir, to, name, &room, 0); err != nil {
		return "", fmt.Errorf("keep %s: %w", name, err)
	}
	return kept, discard(dir, name)
}

// place returns a new path in aside.
func (l *leftovers) place(name string) (string, error) {
	if l.folder == "" {
		folder, err := os.MkdirTemp(l.aside, "left-*")
		if err != nil {
			return "", err
		}
		l.folder = folder
	}
	l.count++
	dir := filepath.Join(l.folder, strconv.Itoa(l.count))
	return filepath.Join(dir, name), os.Mkdir(dir, 0o700)
}

// discard deletes the file at a name, also a directory that its owner may not
// change.
func discard(dir *os.Root, name string) error {
	err := dir.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := unlock(dir, name, 0); err != nil {
		return err
	}
	return dir.RemoveAll(name)
}

// unlock gives the owner of a directory all permissions on it and on those in it.
func unlock(dir *os.Root, name string, depth int) error {
	info, err := dir.Lstat(name)
	if err != nil || !info.IsDir() {
		return err
	}
	if depth > deepest {
		return fmt.Errorf("%s: directories are nested more than %d deep", name, deepest)
	}
	if info.Mode()&0o700 != 0o700 {
		if err := dir.Chmod(name, 0o700); err != nil {
			return err
		}
	}
	return eachIn(dir, name, func(sub *os.Root, inner string) error { return unlock(sub, inner, depth+1) })
}

// eachIn calls do for each name in a directory.
func eachIn(dir *os.Root, name string, do func(sub *os.Root, name string) error) error {
	sub, err := openFolder(dir, name)
	if err != nil {
		return err
	}
	defer sub.Close()
	names, err := namesIn(sub)
	if err != nil {
		return err
	}
	for _, inner := range names {
		if err := do(sub, inner); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies the file or directory at a name, as far as there is room.
func copyTree(from, to *os.Root, name string, room *int64, depth int) error {
	info, err := from.Lstat(name)
	switch {
	case err != nil || *room <= 0 || depth > deepest:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		*room -= 4096
		target, err := from.Readlink(name)
		if err != nil {
			return err
		}
		return to.Symlink(target, name)
	case info.Mode().IsRegular():
		*room -= 4096
		return copyFile(from, to, name, info, room)
	case !info.IsDir():
		return nil
	}
	*room -= 4096
	if info.Mode()&0o500 != 0o500 {
		if err := from.Chmod(name, 0o700); err != nil {
			return err
		}
	}
	if err := to.Mkdir(name, 0o700); err != nil {
		return err
	}
	inner, err := to.OpenRoot(name)
	if err != nil {
		return err
	}
	defer inner.Close()
	return eachIn(from, name, func(sub *os.Root, name string) error { return copyTree(sub, inner, name, room, depth+1) })
}

// copyFile copies a file, as far as there is room.
func copyFile(from, to *os.Root, name string, info fs.FileInfo, room *int64) error {
	if info.Mode()&0o400 == 0 {
		if err := from.Chmod(name, 0o600); err != nil {
			return err
		}
	}
	in, err := from.OpenFile(name, os.O_RDONLY|openAtOnce, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, max(*room, 0)))
	*room -= n
	return errors.Join(err, out.Close())
}
