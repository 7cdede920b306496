package putback

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"hone/sandbox"
)

// tree is a writable directory with protected paths, and what was found at them. Its
// paths are relative to the directory, which is ".".
type tree struct {
	Path  string
	Named map[string]kind  // the protected paths, their parents, and the writable ones in them
	Items map[string]*item // for these and what is in protected directories

	root *os.Root // open while commands run; the same directory even if it is renamed
	self *os.File // the same, to change its mode if it cannot be searched
}

type kind int

const (
	absent   kind = iota // nothing, and nothing may be created there
	present              // a protected file, symlink or directory
	parent               // a parent directory of a protected path, which commands may change
	writable             // what else commands may change in a protected directory
)

// item is what was found at one path.
type item struct {
	Kind   kind
	Needed bool        // a parent of something present
	Mode   fs.FileMode // 0 for a parent that does not exist
	Stamp  stamp       // of a directory only the owner
	Young  bool        // it may change without a change of its stamp
	Data   []byte      // the contents of a file
	Link   string      // the target of a symlink
	Lost   string      // why it cannot be restored; empty if it can
}

// stamp is what a system reports about a file without reading it. What it does not
// report is zero.
type stamp struct {
	Size, Modified, Changed int64 // in bytes, and in ns since 1970; no program can set Changed
	Inode, Links            uint64
	UID, GID                int
}

// owner returns a stamp that contains only the owner.
func (s stamp) owner() stamp { return stamp{UID: s.UID, GID: s.GID} }

const (
	// maxFile and maxKept are how many bytes are kept of one file, and for a tree.
	maxFile = 4 << 20
	maxKept = 16 << 20
	// grain is the coarsest clock of a file system, as in FAT and some servers.
	grain = 2 * time.Second

	tooBig     = "it was too big to keep a copy"
	notRead    = "it could not be read before"
	notRegular = "it was not a file, directory or symlink"
)

// name adds a path of the policy and its parents. Outer paths come first.
func (t *tree) name(path string, protected bool) {
	closed := false
	for i, c := range path {
		if c != filepath.Separator {
			continue
		}
		outer := path[:i]
		if k, named := t.Named[outer]; named {
			closed = k == present
		}
		if protected && !closed {
			t.Named[outer] = parent
		}
	}
	if protected {
		t.Named[path] = present
	} else if closed {
		t.Named[path] = writable
	}
}

func (t *tree) open() (err error) {
	if t.root, err = os.OpenRoot(t.Path); err == nil {
		t.self, err = t.root.Open(".")
	}
	return err
}

func (t *tree) close() {
	if t.root != nil {
		t.root.Close()
		t.self.Close() // may be nil
	}
	t.root, t.self = nil, nil
}

// inspector inspects the protected paths of one tree.
type inspector struct {
	*tree
	again bool // to compare with Items
	now   time.Time
	room  int64
	found map[string]*item
}

// inspect returns what is at the protected paths. It does not read files that have
// not changed since the last inspection. Again means that the result is compared with
// that one: paths that cannot be opened are omitted, and what is in new directories.
func (t *tree) inspect(again bool) (map[string]*item, error) {
	in := &inspector{tree: t, again: again, now: time.Now(), room: maxKept, found: map[string]*item{}}
	info, err := t.self.Stat()
	if err != nil {
		return nil, err
	}
	in.found["."] = &item{Kind: parent, Needed: true, Mode: info.Mode(), Stamp: stamp{Inode: stampOf(info).Inode}}
	for _, path := range slices.Sorted(maps.Keys(t.Named)) {
		if err := in.path(path); err != nil && !again {
			return nil, fmt.Errorf("%s: %w", filepath.Join(t.Path, path), err)
		}
	}
	return in.found, nil
}

// path inspects a protected path or a parent.
func (in *inspector) path(path string) error {
	k := in.Named[path]
	if in.found[path] != nil || k == writable {
		return nil
	}
	if k == present {
		in.found[path] = &item{}
		err := in.visit(in.root, path, path)
		if errors.Is(err, fs.ErrPermission) {
			in.found[path], err = &item{Kind: present, Lost: notRead}, nil
		}
		return err
	}
	it := &item{Kind: parent}
	in.found[path] = it
	info, err := in.root.Lstat(path)
	if err != nil {
		return ignoreMissing(err)
	}
	if it.Mode = info.Mode(); it.Mode&fs.ModeSymlink != 0 && !in.again {
		return errors.New("it is a symlink, but was not when the walls were built")
	}
	return nil
}

// visit inspects what is at a name in a directory, with everything in it.
func (in *inspector) visit(dir *os.Root, name, path string) error {
	info, err := dir.Lstat(name)
	if err != nil {
		return ignoreMissing(err)
	}
	old := in.Items[path]
	it := in.item(dir, name, info, old)
	in.found[path] = it
	for p := filepath.Dir(path); in.found[p] != nil && !in.found[p].Needed; p = filepath.Dir(p) {
		in.found[p].Needed = in.Named[p] == parent
	}
	if info.IsDir() && (!in.again || old != nil && old.Mode.IsDir() && old.Lost == "") && in.contents(dir, name, path) != nil {
		it.Lost = notRead
		maps.DeleteFunc(in.found, func(inner string, _ *item) bool { return inner != path && sandbox.Within(path, inner) })
	}
	return nil
}

// contents inspects everything in a directory.
func (in *inspector) contents(dir *os.Root, name, path string) error {
	sub, err := dir.OpenRoot(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	names, err := namesIn(sub, ".")
	for _, name := range names {
		if inner := path + string(filepath.Separator) + name; err == nil && in.Named[inner] < parent {
			err = in.visit(sub, name, inner)
		}
	}
	return err
}

// item returns what is at a name in a directory; the old one if it is the same.
func (in *inspector) item(dir *os.Root, name string, info fs.FileInfo, old *item) *item {
	it := &item{Kind: present, Mode: info.Mode(), Stamp: stampOf(info)}
	if old != nil && old.Mode == it.Mode && old.Stamp == it.Stamp && (!old.Young || old.Lost != "") {
		in.room -= int64(len(old.Data))
		return old
	}
	it.Young = it.Stamp.Changed == 0 || in.now.Sub(time.Unix(0, it.Stamp.Changed)) < grain
	err := error(nil)
	switch size := it.Stamp.Size; {
	case info.IsDir():
		it.Stamp, it.Young = it.Stamp.owner(), false
	case it.Mode&fs.ModeSymlink != 0:
		it.Link, err = dir.Readlink(name)
	case !it.Mode.IsRegular():
		it.Lost = notRegular
	case in.again && (old == nil || old.Stamp.Size != size):
		it.Lost = notRead
	case size > min(maxFile, in.room):
		it.Lost = tooBig
	default:
		it.Data, err = readFile(dir, name, size)
		in.room -= size
	}
	if err != nil {
		it.Lost = notRead
	}
	return it
}

// readFile reads at most size bytes of a regular file. It does not wait if that has
// become a FIFO.
func readFile(dir *os.Root, name string, size int64) ([]byte, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, size))
}

// namesIn returns all names in a directory.
func namesIn(root *os.Root, path string) ([]string, error) {
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// changes returns the paths that are not as they were found, outer ones first.
func (t *tree) changes(now map[string]*item) []string {
	var changed []string
	for path, it := range t.Items {
		if it.differs(now[path]) {
			changed = append(changed, path)
		}
	}
	for path := range now {
		if t.Items[path] == nil {
			changed = append(changed, path)
		}
	}
	slices.SortFunc(changed, strings.Compare)
	return changed
}

// differs reports whether a path must be restored. now is nil if nothing is there.
func (it *item) differs(now *item) bool {
	switch {
	case it == now:
		return false
	case now == nil || it.Kind == absent || now.Kind == absent:
		return (now != nil && now.Kind == present) != (it.Kind == present)
	case it.Kind == parent && now.Mode.IsDir():
		return it.Mode&0o700&^now.Mode != 0
	case it.Kind == parent:
		return it.Needed || now.Mode&fs.ModeSymlink != 0
	case it.Mode != now.Mode || now.Mode.IsDir():
		return it.Mode != now.Mode
	case it.Lost != "":
		return it.Stamp != now.Stamp
	}
	return it.Stamp.owner() != now.Stamp.owner() || it.Stamp.Links < now.Stamp.Links || now.Lost != "" || it.Link != now.Link || !bytes.Equal(it.Data, now.Data)
}

// ignoreMissing returns err unless it means that nothing is at a path.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}
