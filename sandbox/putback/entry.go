package putback

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"hone/sandbox"
)

// entry is a protected path of a policy, and what was found there. Its paths are
// relative to the writable directory around it, which is ".".
type entry struct {
	Dir   string // the outermost writable directory around it
	Path  string
	Apart map[string]bool  // the policy's paths in it, absolute: writable ones, and other entries
	Found map[string]*item // at Path and in it, and at its parent directories; nil before the inspection

	walled   bool     // a wall protects it while it exists
	root     *os.Root // Dir, while it is inspected or restored
	standing standing // placeholders there count as nothing
	force    bool     // modes may be changed to read what is there
}

// item is what was found at one path. Its zero value is nothing.
type item struct {
	Exists bool // a parent exists if it is a directory
	Mode   fs.FileMode
	Stamp  stamp
	Data   string // the contents of a file, or the target of a symlink
	Lost   string // why it cannot be restored; empty if it can
}

// stamp is what a system reports about a file. What it does not report is zero.
type stamp struct {
	Size, Changed int64 // in bytes, and in ns since 1970; on Linux no program can set Changed
	Inode, Links  uint64
	Owner         owner
}

type owner struct{ UID, GID int }

const (
	// maxKept is how many bytes are kept of protected files, or of what commands left
	// if it must be copied.
	maxKept = 16 << 20
	// maxDepth is how deep directories are read.
	maxDepth = 256
	// maxLost is how many paths of an entry are named that could not be restored.
	maxLost = 100

	tooBig     = "it was too big to keep a copy"
	notRead    = "it could not be read before"
	notRegular = "it was not a file, directory or symlink"
)

func newEntry(policy []sandbox.Entry, root, path string) *entry {
	e := &entry{Dir: root, Path: strings.TrimLeft(path[len(root):], string(filepath.Separator)), Apart: map[string]bool{}}
	for _, q := range policy {
		if q.Access != sandbox.AccessNone && sandbox.Within(path, q.Path) {
			e.Apart[q.Path] = true
		}
	}
	return e
}

func (e *entry) isWalled() bool {
	if !e.walled {
		return false
	}
	_, err := os.Lstat(filepath.Join(e.Dir, e.Path))
	return !errors.Is(err, fs.ErrNotExist)
}

func (e *entry) isParent(path string) bool { return !sandbox.Within(e.Path, path) }

// Of files it reads at most room bytes.
func (e *entry) inspect(room *int64) (err error) {
	if e.root, err = os.OpenRoot(e.Dir); err != nil {
		return err
	}
	defer e.root.Close()
	e.Found = map[string]*item{}
	for path := e.Path; path != "."; {
		path = filepath.Dir(path)
		it, err := look(e.root, path, 0)
		switch {
		case err != nil:
			return err
		case it.Mode&fs.ModeSymlink != 0:
			return errors.New(filepath.Join(e.Dir, path) + " is a symlink, but was not when the walls were built")
		case !it.Mode.IsDir() || e.stands(path):
			it = &item{}
		}
		e.Found[path] = it
	}
	return e.walk(e.Path, room)
}

// A directory that cannot be read is lost.
func (e *entry) walk(path string, room *int64) error {
	if e.stands(path) {
		e.Found[path] = &item{}
		return nil
	}
	it, err := look(e.root, path, *room)
	if e.force && (it.Mode.IsDir() || it.Lost == notRead) {
		_ = e.root.Chmod(path, 0o700)
		it, err = look(e.root, path, *room)
	}
	e.Found[path], *room = it, *room-int64(len(it.Data))
	if err != nil || !it.Mode.IsDir() {
		return err
	}
	inner, err := e.inner(path)
	if err != nil || strings.Count(path, string(filepath.Separator)) > maxDepth {
		it.Lost = notRead
		return nil
	}
	for _, path := range inner {
		if err := e.walk(path, room); err != nil {
			return err
		}
	}
	return nil
}

// stands reports whether a placeholder is at a path, as it was created, or a directory with nothing else.
func (e *entry) stands(path string) bool {
	p, ok := e.standing[filepath.Join(e.Dir, path)]
	if !ok {
		return false
	}
	now, err := look(e.root, path, int64(len(p.Text)))
	if !p.Dir {
		return err == nil && now.Mode.IsRegular() && now.Lost == "" && now.Data == p.Text
	}
	if err != nil || !now.Mode.IsDir() {
		return false
	}
	inner, err := e.inner(path)
	return err == nil && !slices.ContainsFunc(inner, func(path string) bool { return !e.stands(path) })
}

func (e *entry) inner(path string) ([]string, error) {
	f, err := e.root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	paths, err := f.Readdirnames(-1)
	slices.Sort(paths)
	for i, name := range paths {
		paths[i] = filepath.Join(path, name)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return e.Apart[filepath.Join(e.Dir, path)] }), err
}

// It reads files of at most room bytes.
func look(root *os.Root, path string, room int64) (*item, error) {
	info, err := root.Lstat(path)
	if err != nil {
		return &item{}, ignoreMissing(err)
	}
	it := &item{Exists: true, Mode: info.Mode(), Stamp: stampOf(info)}
	switch {
	case info.IsDir():
	case it.Mode&fs.ModeSymlink != 0:
		it.Data, err = root.Readlink(path)
	case !it.Mode.IsRegular():
		it.Lost = notRegular
	case info.Size() > room:
		it.Lost = tooBig
	default:
		it.Data, err = readFile(root, path, info.Size())
	}
	if err != nil {
		it.Lost = notRead
	}
	return it, nil
}

// It does not wait if the file has become a FIFO.
func readFile(root *os.Root, path string, size int64) (string, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, size))
	return string(data), err
}

// What directories contain is not compared. A file that lost one of its names is still the same.
func (it *item) same(now *item) bool {
	if it.Lost != "" {
		return it.Mode == now.Mode && it.Stamp == now.Stamp
	}
	return it.Exists == now.Exists && it.Mode == now.Mode && it.Data == now.Data && now.Lost == "" &&
		it.Stamp.Owner == now.Stamp.Owner && it.Stamp.Links >= now.Stamp.Links
}

type restorer struct {
	*entry
	folder  string // receives what commands left
	taken   int    // how many paths were moved there
	movedTo string // their path there, or the folder if they are several
	changed bool
	lost    []string // why some of it is not as it was
}

// Outer entries come first. What commands left is moved to aside.
func restore(entries []*entry, aside string, s standing) (restored []sandbox.Restored, err error) {
	folder := filepath.Join(aside, "left-"+rand.Text())
	for i, e := range entries {
		if e.Found == nil {
			continue
		}
		path := filepath.Join(e.Dir, e.Path)
		e.standing = s
		r := &restorer{entry: e, folder: filepath.Join(folder, strconv.Itoa(i))}
		if failed := r.restore(); failed != nil {
			r.lost = slices.Insert(r.lost, 0, strings.ReplaceAll(failed.Error(), "\n", "; "))
			err = errors.Join(err, fmt.Errorf("restore %s: %w", path, failed))
		}
		if r.changed || len(r.lost) > 0 {
			lost := strings.Join(r.lost[:min(len(r.lost), maxLost)], "; ")
			restored = append(restored, sandbox.Restored{Path: path, MovedTo: r.movedTo, NotRestored: lost})
		}
	}
	return restored, err
}

func (r *restorer) restore() (err error) {
	root, mode, err := openAgain(r.Dir, r.Found["."].Stamp.Inode)
	if err != nil {
		return err
	}
	defer root.Close()
	r.root = root
	return errors.Join(r.restoreDir(".", r.Found["."], mode), r.restoreFound())
}

// errAway means that a directory is not there. What is owed to it is recorded until it is.
var errAway = errors.New("not the same directory as before; it was moved, replaced or unmounted")

// openAgain opens a directory if it still has the inode, and returns the mode that it had. It first gives the owner all rights in it.
func openAgain(dir string, inode uint64) (*os.Root, fs.FileMode, error) {
	info, err := os.Lstat(dir)
	if err != nil && ignoreMissing(err) == nil || err == nil && stampOf(info).Inode != inode {
		err = errAway
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", dir, err)
	}
	reopen(os.Lstat, os.Chmod, dir)
	root, err := os.OpenRoot(dir)
	return root, info.Mode(), err
}

// reopen gives the owner of a directory all rights in it, which a command may have taken away.
func reopen(lstat func(string) (fs.FileInfo, error), chmod func(string, fs.FileMode) error, dir string) {
	if info, err := lstat(dir); err == nil && info.IsDir() && info.Mode()&0o700 != 0o700 {
		_ = chmod(dir, info.Mode()|0o700)
	}
}

// Until the end the owner of directories has all permissions.
func (r *restorer) restoreFound() (err error) {
	paths := slices.Sorted(maps.Keys(r.Found))
	for _, path := range paths { // outer ones first
		err = errors.Join(err, r.restoreAt(path, r.Found[path]))
	}
	for _, path := range slices.Backward(paths) {
		if mode := r.Found[path].Mode; mode.IsDir() && mode&0o700 != 0o700 {
			err = errors.Join(err, r.root.Chmod(path, mode))
		}
	}
	return err
}

func (r *restorer) restoreAt(path string, was *item) error {
	now, err := look(r.root, path, int64(len(was.Data)))
	isParent := r.isParent(path)
	switch {
	case err != nil:
		return err
	case now.Mode.IsDir() && was.Mode.IsDir():
		return r.restoreDir(path, was, now.Mode)
	case isParent && !was.Exists && now.Mode&fs.ModeSymlink == 0, !isParent && was.same(now), !was.Exists && r.stands(path):
		return nil
	case was.Lost != "":
		r.lost = append(r.lost, path+": "+was.Lost)
		return nil
	}
	r.changed = r.changed || now.Exists || !isParent
	if now.Exists {
		err = r.moveAside(path, now)
	}
	if err == nil && was.Exists {
		err = r.create(path, was)
	}
	return err
}

// Of a parent only its owner's permissions are restored. A protected directory contains nothing else afterwards.
func (r *restorer) restoreDir(path string, was *item, now fs.FileMode) (err error) {
	mode := was.Mode
	if r.isParent(path) && mode&0o700&^now == 0 {
		mode = now
	}
	r.changed = r.changed || mode != now
	if mode != now || mode&0o700 != 0o700 {
		err = r.root.Chmod(path, mode|0o700)
	}
	if err != nil || r.isParent(path) || was.Lost != "" {
		return err
	}
	inner, err := r.inner(path)
	for _, path := range inner {
		if r.Found[path] == nil {
			err = errors.Join(err, r.restoreAt(path, &item{}))
		}
	}
	return err
}

// The owner of a directory may open it.
func (r *restorer) create(path string, was *item) (err error) {
	mode := was.Mode
	switch {
	case mode.IsDir():
		mode |= 0o700
		err = r.root.Mkdir(path, 0o700)
	case mode&fs.ModeSymlink != 0:
		err = r.root.Symlink(was.Data, path)
	default:
		err = r.write(path, was.Data)
	}
	if err != nil {
		return err
	}
	now, err := look(r.root, path, 0)
	if now.Stamp.Owner != was.Stamp.Owner && r.root.Lchown(path, was.Stamp.Owner.UID, was.Stamp.Owner.GID) != nil {
		r.lost = append(r.lost, path+": its owner could not be restored")
	}
	if err == nil && mode&fs.ModeSymlink == 0 {
		err = r.root.Chmod(path, mode) // after the owner, because that clears bits
	}
	return err
}

func (r *restorer) write(path, data string) error {
	f, err := r.root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(data)
	return errors.Join(err, f.Sync(), f.Close())
}

func (r *restorer) moveAside(path string, now *item) error {
	r.taken++
	folder := filepath.Join(r.folder, strconv.Itoa(r.taken))
	movedTo := filepath.Join(folder, path)
	err := os.MkdirAll(filepath.Dir(movedTo), 0o700)
	if err != nil {
		return err
	}
	if now.Mode.IsDir() {
		_ = r.root.Chmod(path, 0o700) // otherwise its owner cannot move it
	}
	if rename(r.root, path, movedTo) != nil {
		if err = r.copy(path, folder); err != nil {
			return fmt.Errorf("keep a copy: %w", err)
		}
		err = r.root.RemoveAll(path)
	}
	if r.movedTo = movedTo; r.taken > 1 {
		r.movedTo = r.folder
	}
	return err
}

// Files, directories and symlinks of at most maxKept bytes are found here and restored there.
func (r *restorer) copy(path, folder string) error {
	left, room := &entry{Path: path, Found: map[string]*item{}, root: r.root, force: true}, int64(maxKept)
	err := left.walk(path, &room)
	if err == nil {
		left.root, err = os.OpenRoot(folder)
	}
	if err != nil {
		return err
	}
	defer left.root.Close()
	return (&restorer{entry: left}).restoreFound()
}
