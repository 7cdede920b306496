package putback

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// kind is what an inspection found at a path.
type kind int

const (
	isGone   kind = iota // nothing, and nothing may be made there
	isWay                // a parent directory of a protected path, or nothing where it could be
	isFolder             // a directory with everything in it
	isFile               // a regular file
	isLink               // a symlink
	isOther              // a FIFO, socket or device
)

// stamp is what a system reports about a file without reading it. What it does not
// report is zero.
type stamp struct {
	Size    int64
	Changed int64 // the time of the last change of contents, in ns since 1970
	Touched int64 // the same of any change; no program can set it
	Ino     uint64
	Links   uint64
	UID     int
	GID     int
}

// node is what an inspection found at one path.
type node struct {
	Name  string
	Kind  kind
	Mode  fs.FileMode // 0 for an isWay that does not exist
	Stamp stamp
	// Doubt means that the file may change without a change of its stamp,
	// because the stamp is newer than the clock of the file system can show.
	Doubt  bool
	Link   string   // the target of a symlink
	Unkept string   // why it cannot be restored; empty if it can
	Inner  []*node  // by name
	Free   []string // names in a directory that are not protected
	Data   []byte   // the contents of a file
}

const (
	// mostKept is how many bytes of protected files are kept for a policy.
	mostKept = 16 << 20
	// grain is the coarsest clock of a file system, as in FAT and some servers.
	grain = 2 * time.Second

	tooBig     = "it was too big to keep a copy"
	notRead    = "it could not be read before"
	notRegular = "it was not a file, directory or symlink"
)

// look inspects what is protected below an open directory. old is the result of an
// earlier inspection, or nil: files that have not changed since are not read again.
func look(root *os.Root, path string, s *spot, old *node, k *keeping) (*node, error) {
	info, err := root.Lstat(".")
	if err != nil {
		return nil, err
	}
	l := looker{root: root, path: path, now: time.Now(), keeping: k}
	n := &node{Kind: isWay, Mode: info.Mode(), Stamp: stampOf(info)}
	return n, l.inner(root, "", n, s, old)
}

// looker inspects the protected paths of one plot.
type looker struct {
	root    *os.Root
	path    string
	now     time.Time
	keeping *keeping
}

// at inspects a name in an open directory; rel is its path from the root.
func (l looker) at(dir *os.Root, rel, name string, s *spot, closed bool, old *node) (*node, error) {
	if s != nil {
		closed = s.closed
	}
	n := &node{Name: name}
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if !closed {
			n.Kind = isWay
		}
		return n, l.inner(nil, rel, n, s, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(l.path, rel), err)
	}
	n.Mode, n.Stamp = info.Mode(), stampOf(info)
	n.Doubt = !touchTells || l.now.Sub(time.Unix(0, n.Stamp.Touched)) < grain
	if old != nil && (old.Mode != n.Mode || old.Stamp != n.Stamp || old.Doubt) {
		old = &node{Inner: old.Inner}
	}
	switch {
	case !closed && info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%s is a symlink, but was not when the walls were built", filepath.Join(l.path, rel))
	case !closed && !info.IsDir():
		*n = node{Name: name, Kind: isWay}
		return n, l.inner(nil, rel, n, s, nil)
	case info.IsDir():
		return n, l.dir(dir, rel, n, s, closed, old)
	case info.Mode().IsRegular():
		n.Kind = isFile
		l.file(rel, n, old)
	case info.Mode()&fs.ModeSymlink != 0:
		n.Kind = isLink
		n.Link, err = dir.Readlink(name)
	default:
		n.Kind, n.Unkept = isOther, notRegular
	}
	return n, err
}

// file takes the contents from an earlier inspection, or lists the file to be read.
func (l looker) file(rel string, n, old *node) {
	if old != nil && old.Kind == isFile && (old.Unkept == "" || old.Unkept == notRead) {
		n.Data, n.Unkept = old.Data, old.Unkept
		l.keeping.taken += int64(len(n.Data))
		return
	}
	l.keeping.files = append(l.keeping.files, wanted{root: l.root, rel: rel, node: n})
}

// dir inspects a directory: everything in it if it is closed, otherwise only what
// is protected.
func (l looker) dir(dir *os.Root, rel string, n *node, s *spot, closed bool, old *node) error {
	n.Kind = isWay
	if closed {
		n.Kind = isFolder
	}
	sub, err := openFolder(dir, n.Name)
	if errors.Is(err, fs.ErrPermission) && closed {
		n.Unkept = notRead
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(l.path, rel), err)
	}
	defer sub.Close()
	err = l.inner(sub, rel, n, s, old)
	if errors.Is(err, fs.ErrPermission) && closed {
		n.Unkept, n.Inner, n.Free = notRead, nil, nil
		return nil
	}
	return err
}

// inner inspects the contents of a directory; dir is nil if it does not exist.
func (l looker) inner(dir *os.Root, rel string, n *node, s *spot, old *node) error {
	names, err := l.names(dir, n, s, old)
	if err != nil {
		return err
	}
	for _, name := range names {
		var inner *spot
		if s != nil {
			inner = s.inner[name]
		}
		if inner != nil && !inner.guards() {
			n.Free = append(n.Free, name)
			continue
		}
		if dir == nil {
			n.Inner = append(n.Inner, missing(name, inner))
			continue
		}
		found, err := l.at(dir, filepath.Join(rel, name), name, inner, n.Kind == isFolder, old.inner(name))
		if err != nil {
			return err
		}
		if found.Kind != isGone || inner != nil {
			n.Inner = append(n.Inner, found)
		}
	}
	return nil
}

// missing returns the node of a spot whose parent directory does not exist.
func missing(name string, s *spot) *node {
	n := &node{Name: name, Kind: isWay}
	if s.closed {
		n.Kind = isGone
	}
	for _, name := range sortedNames(s) {
		if s.inner[name].guards() {
			n.Inner = append(n.Inner, missing(name, s.inner[name]))
		}
	}
	return n
}

// names returns the names to inspect in a directory.
func (l looker) names(dir *os.Root, n *node, s *spot, old *node) ([]string, error) {
	names := sortedNames(s)
	if n.Kind != isFolder {
		return names, nil
	}
	var found []string
	if old != nil && old.Kind == isFolder && old.Unkept == "" {
		for _, inner := range old.Inner {
			found = append(found, inner.Name)
		}
		found = append(found, old.Free...)
	} else {
		var err error
		if found, err = namesIn(dir); err != nil {
			return nil, err
		}
	}
	names = append(names, found...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// sortedNames returns the names below a spot, which may be nil.
func sortedNames(s *spot) []string {
	if s == nil {
		return nil
	}
	names := make([]string, 0, len(s.inner))
	for name := range s.inner {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// inner returns the node at a name; nil if there is none. n may be nil.
func (n *node) inner(name string) *node {
	if n == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(n.Inner, name, func(n *node, name string) int { return strings.Compare(n.Name, name) })
	if !ok {
		return nil
	}
	return n.Inner[i]
}

// keeping collects the files to keep, up to mostKept bytes.
type keeping struct {
	taken int64
	files []wanted
}

// wanted is a file to read.
type wanted struct {
	root *os.Root
	rel  string
	node *node
}

// keep reads the files that fit, small ones first, so that a big file does not
// displace many others.
func (k *keeping) keep() {
	slices.SortStableFunc(k.files, func(a, b wanted) int { return int(min(max(a.node.Stamp.Size-b.node.Stamp.Size, -1), 1)) })
	for _, w := range k.files {
		if k.taken+w.node.Stamp.Size > mostKept {
			w.node.Unkept = tooBig
			continue
		}
		data, err := readFile(w.root, w.rel, w.node.Stamp.Size)
		if err != nil {
			w.node.Unkept = notRead
			continue
		}
		w.node.Data = data
		k.taken += int64(len(data))
	}
}

// errChanged means that a file changed between two calls.
var errChanged = errors.New("it changed while it was being read")

// readFile reads a regular file of a known size. It does not wait if the file has
// become a FIFO.
func readFile(root *os.Root, name string, size int64) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|openAtOnce, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() != size {
		return nil, errChanged
	}
	data := make([]byte, size)
	_, err = io.ReadFull(f, data)
	return data, err
}

// openFolder opens a directory, but not through a symlink.
func openFolder(dir *os.Root, name string) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	sub, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := sub.Lstat("."); err != nil || !os.SameFile(info, opened) {
		sub.Close()
		return nil, errors.Join(errChanged, err)
	}
	return sub, nil
}

// namesIn returns all names in an open directory.
func namesIn(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
