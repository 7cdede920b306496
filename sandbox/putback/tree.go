package putback

import (
	"bytes"
	"cmp"
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
	"hone/sandbox/internal/record"
)

// tree is a writable directory with protected paths, and what was found at them. Its
// paths are relative to the directory, which is ".".
type tree struct {
	Path  string
	Named map[string]kind  // the protected paths, their parents, and the writable ones in them
	Items map[string]*item // for parents, and what was found at protected paths and in them

	root *os.Root // open while they are inspected or restored
}

type kind int

const (
	protected kind = iota // a file, symlink or directory; or nothing, and nothing may be created
	parent                // a directory around a protected path; commands may change what else is in it
	writable              // what commands may change in a protected directory
)

// item is what was found at one path.
type item struct {
	Kind   kind
	Mode   fs.FileMode // 0 for a parent that does not exist
	Stamp  stamp       // of a directory only the inode and the owner
	Young  bool        // it may change without a change of its stamp
	Data   []byte      // the contents of a file
	Target string      // of a symlink
	Lost   string      // why it cannot be restored; empty if it can
}

// stamp is what a system reports about a file without reading it. What it does not
// report is zero.
type stamp struct {
	Size, Modified, Changed int64 // in bytes, and in ns since 1970; no program can set Changed
	Inode, Links            uint64
	UID, GID                int
}

const (
	// maxKept is how many bytes are kept of a tree, or of what commands left if it
	// must be copied.
	maxKept = 16 << 20
	// grain is the coarsest clock of a file system, as in FAT and some servers.
	grain = 2 * time.Second

	tooBig     = "it was too big to keep a copy"
	notRead    = "it could not be read before"
	notRegular = "it was not a file, directory or symlink"
)

// treesOf returns the outermost writable directories with protected paths.
func treesOf(entries []sandbox.Entry) []*tree {
	var trees []*tree
	for _, e := range entries { // outer ones first
		i := slices.IndexFunc(trees, func(t *tree) bool { return sandbox.Within(t.Path, e.Path) })
		switch {
		case i < 0 && e.Access == sandbox.AccessWrite:
			trees = append(trees, &tree{Path: e.Path, Named: map[string]kind{".": parent}})
		case i >= 0 && e.Access != sandbox.AccessNone:
			rel := strings.TrimLeft(e.Path[len(trees[i].Path):], string(filepath.Separator))
			trees[i].name(rel, e.Access == sandbox.AccessRead)
		}
	}
	return slices.DeleteFunc(trees, func(t *tree) bool { return len(t.Named) == 1 })
}

// name adds a path of the policy and its parents. Outer paths come first.
func (t *tree) name(path string, read bool) {
	around := parent
	for i, c := range path {
		if c != filepath.Separator {
			continue
		}
		if k, named := t.Named[path[:i]]; named {
			around = k
		}
		if read && around != protected {
			t.Named[path[:i]] = parent
		}
	}
	if read {
		t.Named[path] = protected
	} else if around == protected {
		t.Named[path] = writable
	}
}

// inspect returns what is at the protected paths.
func (t *tree) inspect() (found map[string]*item, err error) {
	if t.root, err = os.OpenRoot(t.Path); err != nil {
		return nil, err
	}
	defer t.root.Close()
	found, room := map[string]*item{}, int64(maxKept)
	for _, path := range slices.Sorted(maps.Keys(t.Named)) {
		switch t.Named[path] {
		case parent:
			found[path], err = t.parent(path)
		case protected:
			err = t.walk(path, func(path string, it *item) bool {
				if old := t.Items[path]; old != nil && old.unchanged(it) {
					it, room = old, room-int64(len(old.Data))
				} else {
					it.read(t.root, path, &room)
				}
				found[path] = it
				return true
			})
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(t.Path, path), err)
		}
	}
	return found, nil
}

// parent returns what is at the path of a parent.
func (t *tree) parent(path string) (*item, error) {
	now, err := look(t.root, path)
	it := cmp.Or(now, &item{})
	if it.Kind = parent; it.Mode&fs.ModeSymlink != 0 {
		err = errors.New("it is a symlink, but was not when the walls were built")
	}
	return it, err
}

// walk calls do for what is at a protected path, and if do returns true for what is in
// it. A directory that cannot be read is lost.
func (t *tree) walk(path string, do func(string, *item) bool) error {
	it, err := look(t.root, path)
	if it == nil || !do(path, it) || !it.Mode.IsDir() {
		return err
	}
	names, err := namesIn(t.root, path)
	if err != nil {
		it.Lost, err = notRead, nil
	}
	for _, name := range names {
		if inner := path + string(filepath.Separator) + name; err == nil && t.Named[inner] == protected {
			err = t.walk(inner, do)
		}
	}
	return err
}

// look returns what is at a path, without its contents; nil if nothing is there.
func look(root *os.Root, path string) (*item, error) {
	info, err := root.Lstat(path)
	if err != nil {
		return nil, record.IgnoreMissing(err)
	}
	it := &item{Mode: info.Mode(), Stamp: stampOf(info)}
	if info.IsDir() {
		it.Stamp = stamp{Inode: it.Stamp.Inode, UID: it.Stamp.UID, GID: it.Stamp.GID}
	}
	return it, nil
}

// read reads a file of at most room bytes, or a symlink.
func (it *item) read(root *os.Root, path string, room *int64) {
	err := error(nil)
	it.Young = !it.Mode.IsDir() && (it.Stamp.Changed == 0 || time.Since(time.Unix(0, it.Stamp.Changed)) < grain)
	switch {
	case it.Mode.IsDir():
	case it.Mode&fs.ModeSymlink != 0:
		it.Target, err = root.Readlink(path)
	case !it.Mode.IsRegular():
		it.Lost = notRegular
	case it.Stamp.Size > *room:
		it.Lost = tooBig
	default:
		*room -= it.Stamp.Size
		it.Data, err = readFile(root, path, it.Stamp.Size)
	}
	if err != nil {
		it.Lost = notRead
	}
}

// readFile reads at most size bytes of a regular file. It does not wait if that has
// become a FIFO.
func readFile(root *os.Root, path string, size int64) ([]byte, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, size))
}

// namesIn returns all names in a directory, sorted.
func namesIn(root *os.Root, path string) ([]string, error) {
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// unchanged reports whether a file or symlink need not be read to know that it is as it
// was before.
func (it *item) unchanged(now *item) bool {
	return !it.Young && it.Mode == now.Mode && it.Stamp == now.Stamp && !it.Mode.IsDir()
}

// same reports whether a file or symlink is as it was before. now has not been read.
func (it *item) same(root *os.Root, path string, now *item) bool {
	if it.Lost != "" || it.Mode != now.Mode || it.unchanged(now) {
		return it.Mode == now.Mode && it.Stamp == now.Stamp
	}
	room := int64(maxKept)
	now.read(root, path, &room)
	return it.Stamp.UID == now.Stamp.UID && it.Stamp.GID == now.Stamp.GID && it.Stamp.Links >= now.Stamp.Links &&
		now.Lost == "" && it.Target == now.Target && bytes.Equal(it.Data, now.Data)
}
