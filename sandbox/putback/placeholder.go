package putback

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/transient"
	"hone/sandbox"
)

// dir is a writable directory with placeholders: harmless files in place of those that must not exist
// while a command runs. A wall can mount a file read-only only if it exists. They are created before
// the first command and removed after the last, also across processes, and recorded first, outside
// of what commands may write: [RecoverPlaceholders] removes those of a process that was killed.
type dir struct {
	root   string
	files  []file   // outer ones first
	record string   // the path of the record, without its ending; the same for all processes
	lock   *os.File // shared with the other processes that need the placeholders; nil if this one does not
	made   list     // what the record says while the placeholders are needed; the record may be removed
}

// file is a placeholder, or a directory that was created for one.
type file struct {
	Path string // relative to the root
	sandbox.Placeholder
}

// list is the record of what was created in a directory.
type list struct {
	Root  string
	Inode uint64 // of the root; where its file system is not mounted, another directory is at its path
	Files []file
}

// errAway means that the root of a list is not there. Its record stays until it is.
var errAway = errors.New("the directory was moved away or unmounted")

const (
	listEnding = ".created"
	// usedEnding is that of the file that each process locks while its commands need
	// the placeholders.
	usedEnding = ".used"
	// mutexName is the file that is locked while records and placeholders change.
	mutexName = "mutex"
)

func newDir(records, root string, byPath map[string]sandbox.Placeholder) (*dir, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", root, stampOf(info).Inode))
	d := &dir{root: root, record: filepath.Join(records, fmt.Sprintf("%x", sum[:12]))}
	add := func(f file) {
		if !slices.Contains(d.files, f) {
			d.files = append(d.files, f)
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
	return d, nil
}

func (d *dir) fill() error {
	return d.exclusive(func() (err error) {
		if d.lock, err = d.share(); err != nil {
			return err
		}
		root, err := os.OpenRoot(d.root)
		if err != nil {
			return err
		}
		defer root.Close()
		missing := slices.DeleteFunc(slices.Clone(d.files), func(f file) bool {
			info, err := root.Lstat(f.Path)
			return err == nil && (info.IsDir() || !f.Dir)
		})
		l, err := d.list()
		created := slices.DeleteFunc(slices.Clone(missing), func(f file) bool { return slices.Contains(l.Files, f) })
		info, statErr := root.Stat(".")
		if err = errors.Join(err, statErr); err == nil {
			d.made = list{d.root, stampOf(info).Inode, append(l.Files, created...)}
		}
		if err == nil && len(created) > 0 {
			err = writeRecord(d.record+listEnding, d.made)
		}
		for _, f := range missing {
			if err == nil {
				err = f.create(root)
			}
		}
		return err
	})
}

func (d *dir) share() (*os.File, error) {
	lock, err := os.OpenFile(d.record+usedEnding, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = lockShared(lock)
	}
	return lock, err
}

func (d *dir) list() (list, error) {
	var l list
	path := d.record + listEnding
	if err := ignoreMissing(readRecord(path, &l)); err != nil {
		return list{}, fmt.Errorf("%s: %w; move it away", path, err)
	}
	return l, nil
}

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

// A placeholder is removed only if it is still as it was created, or its text was only begun, because the process was killed
// meanwhile. What replaced it or was added to it comes from outside the walls.
func (f file) remove(root *os.Root) error {
	info, err := root.Lstat(f.Path)
	switch {
	case transient.Is(err):
		return err
	case err != nil || info.IsDir() != f.Dir:
		return nil
	case f.Dir:
		_ = root.Remove(f.Path) // fails if it is not empty
		return nil
	case !info.Mode().IsRegular() || info.Size() > int64(len(f.Text)):
		return nil
	}
	if text, err := root.ReadFile(f.Path); err != nil || !strings.HasPrefix(f.Text, string(text)) {
		return err
	}
	return root.Remove(f.Path)
}

func (d *dir) empty() error {
	if d.lock == nil {
		return nil
	}
	lock := d.lock
	d.lock = nil
	defer lock.Close()
	err := d.exclusive(func() error {
		defer lock.Close()
		if !isAlone(lock) {
			return nil
		}
		return d.removeAll()
	})
	if errors.Is(err, fs.ErrNotExist) { // the directory of the records was removed, and they with it
		err = errors.Join(err, d.removeAll())
	}
	d.made = list{}
	return err
}

func (d *dir) removeAll() error {
	l, err := d.list()
	if err == nil && l.Root == "" {
		l = d.made
	}
	if err != nil || l.Root == "" {
		return err
	}
	reopen(os.Lstat, os.Chmod, l.Root)
	root, err := os.OpenRoot(l.Root)
	if err != nil {
		return cmp.Or(ignoreMissing(err), errAway)
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err == nil && stampOf(info).Inode != l.Inode {
		err = errAway
	}
	if err != nil {
		return err
	}
	for _, f := range l.Files { // outer ones first
		reopen(root.Lstat, root.Chmod, filepath.Dir(f.Path))
	}
	var errs []error
	for _, f := range slices.Backward(l.Files) {
		errs = append(errs, f.remove(root))
	}
	return errors.Join(errs...)
}

// reopen gives the owner of a directory all rights in it, which a command has taken away: there were placeholders in it.
func reopen(lstat func(string) (fs.FileInfo, error), chmod func(string, fs.FileMode) error, dir string) {
	if info, err := lstat(dir); err == nil && info.IsDir() && info.Mode()&0o700 != 0o700 {
		_ = chmod(dir, info.Mode()|0o700)
	}
}

func (d *dir) forget() error {
	err := d.exclusive(func() error {
		lock, err := d.share()
		if err != nil {
			return err
		}
		defer lock.Close()
		if !isAlone(lock) {
			return nil
		}
		if err := d.removeAll(); err != nil {
			return err
		}
		return errors.Join(ignoreMissing(os.Remove(d.record+listEnding)), ignoreMissing(os.Remove(d.record+usedEnding)))
	})
	if errors.Is(err, errAway) {
		return nil
	}
	return ignoreMissing(err)
}

func (d *dir) exclusive(do func() error) error {
	mutex, err := os.OpenFile(filepath.Join(filepath.Dir(d.record), mutexName), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = lockWait(mutex)
	}
	if err != nil {
		return fmt.Errorf("lock the records of placeholders: %w", err)
	}
	defer mutex.Close()
	return do()
}

// RecoverPlaceholders removes the placeholders that processes left which no longer
// run. records is the Records of their policies. Those that cannot be removed stay recorded;
// an error means that some are in tree, or that a record is damaged.
func RecoverPlaceholders(records, tree string) error {
	entries, err := os.ReadDir(records)
	errs := []error{ignoreMissing(err)}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), listEnding); ok {
			d := &dir{record: filepath.Join(records, name)}
			err := d.forget()
			if l, damaged := d.list(); damaged != nil || sandbox.Within(tree, l.Root) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
