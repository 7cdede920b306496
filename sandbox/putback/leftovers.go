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

// leftovers takes away what commands left in the place of protected paths.
type leftovers struct {
	aside  string // empty: it is removed
	folder string // what this restoration put there, each thing in a folder of its own
	count  int
}

const (
	// mostCopied is how many bytes of one thing are kept where it has to be
	// copied to another file system.
	mostCopied = 64 << 20
	// deepest is how deep a folder is followed.
	deepest = 256
)

// take moves what stands at a name out of an open folder, and says where it is
// now: empty where it was removed. What has to be copied to another file system
// is kept up to mostCopied bytes, without FIFOs, sockets and devices.
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

// place is a path in aside that nobody has yet.
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

// discard removes what stands at a name, also folders that their owner may not
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

// unlock lets the owner of a folder do with it what he likes, and with those
// in it.
func unlock(dir *os.Root, name string, depth int) error {
	info, err := dir.Lstat(name)
	if err != nil || !info.IsDir() {
		return err
	}
	if depth > deepest {
		return fmt.Errorf("%s: folders in it lie more than %d deep", name, deepest)
	}
	if info.Mode()&0o700 != 0o700 {
		if err := dir.Chmod(name, 0o700); err != nil {
			return err
		}
	}
	return eachIn(dir, name, func(sub *os.Root, inner string) error { return unlock(sub, inner, depth+1) })
}

// eachIn does something with all that is in a folder.
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

// copyTree copies what stands at a name, as far as there is room for it.
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

// copyFile copies a file, as far as there is room for it.
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
