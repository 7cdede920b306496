package gitdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// finder finds what git would take for a repository in a tree. It remembers the
// directories, so that a later search only reads those that have changed.
type finder struct {
	root   string // absolute, without symlinks
	seen   map[string]directory
	now    time.Time
	links  []link // the symlinks in git directories but for their hooks
	opened []closed
}

// link is a symlink and the git directory that it is in. Both paths are relative to the root, which is itself ".".
type link struct{ path, of string }

// closed is a directory that its owner may not read, search or change, with its mode. Git
// finds a repository there by its name alone.
type closed struct {
	path string
	mode fs.FileMode
}

// It is open until closeAll. It returns false if nothing is to be gained.
func (f *finder) open(path string) bool {
	mode := modeOf(path)
	if !mode.IsDir() || mode.Perm()&0o700 == 0o700 || os.Chmod(path, mode|0o700) != nil {
		return false
	}
	f.opened = append(f.opened, closed{path, mode})
	return true
}

func (f *finder) closeAll() {
	for _, c := range slices.Backward(f.opened) {
		_ = os.Chmod(c.path, c.mode)
	}
	f.opened = nil
}

type directory struct {
	stamp
	dirs    []string // names
	links   []string // names of symlinks
	pointer string   // the name of a .git that is not a directory; empty if there is none
	head    bool     // it has a HEAD, so it may be a git directory
}

// stamp identifies the state of a directory's list of names. Whatever changes the list
// sets the time, which no program can choose.
type stamp struct {
	device, inode uint64
	changed       int64 // nanoseconds since 1970; 0 if the system does not tell
}

// settled is how old a change must be for a later one to have another time.
const settled = 2 * time.Second

// Paths are relative to the root, outer ones first. The caller calls closeAll.
func (f *finder) find(ctx context.Context) ([]string, error) {
	f.now = time.Now()
	was := f.seen
	f.seen, f.links = make(map[string]directory, len(was)), nil
	var found []string
	err := f.visit(ctx, "", "", was, &found)
	slices.Sort(found)
	return found, err
}

// It follows no symlink. of is the git directory that the path is in; empty if it is in none.
func (f *finder) visit(ctx context.Context, path, of string, was map[string]directory, found *[]string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	at := filepath.Join(f.root, path)
	now, isDir, err := stampOf(at)
	if errors.Is(err, fs.ErrPermission) && path != "" && f.open(filepath.Dir(at)) {
		now, isDir, err = stampOf(at)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		return nil
	case err != nil: // such as a path that is too long, which git shortens
		return fmt.Errorf("look for git repositories in %s: %w", at, err)
	case !isDir:
		return nil
	}
	d, known := was[path]
	if !known || d.stamp != now || now.changed == 0 || f.now.UnixNano()-now.changed < int64(settled) {
		d = f.read(at)
		d.stamp = now
	}
	f.seen[path] = d
	if d.pointer != "" {
		*found = append(*found, filepath.Join(path, d.pointer))
	}
	isRepository := d.head && Is(at)
	if isRepository {
		*found = append(*found, path)
		of = filepath.Clean(path)
	}
	if of != "" {
		for _, name := range d.links {
			f.links = append(f.links, link{filepath.Join(path, name), of})
		}
	}
	for _, name := range d.dirs {
		if isRepository && name == "objects" {
			continue
		}
		in := of
		if isRepository && name == "hooks" {
			in = ""
		}
		if err := f.visit(ctx, filepath.Join(path, name), in, was, found); err != nil {
			return err
		}
	}
	return nil
}

// A directory of another user that cannot be read is empty: no command of this user's wrote there.
func (f *finder) read(at string) (d directory) {
	entries, err := os.ReadDir(at)
	if errors.Is(err, fs.ErrPermission) && f.open(at) {
		entries, _ = os.ReadDir(at)
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case e.IsDir():
			d.dirs = append(d.dirs, name)
			continue
		case strings.EqualFold(name, ".git"):
			d.pointer = name
		case strings.EqualFold(name, "HEAD"):
			d.head = true
		}
		if e.Type()&fs.ModeSymlink != 0 {
			d.links = append(d.links, e.Name())
		}
	}
	return d
}

// RefsUnchanged reports whether the branches, tags, stashes and HEAD of a repository are certainly
// as they were at a time; dotGit is its .git. No program can choose the times that it looks at.
func RefsUnchanged(dotGit string, since time.Time) bool {
	dir := dotGit
	if link := Link(dotGit); link != "" {
		dir = link
	}
	since = since.Add(-settled)
	changed := errors.New("changed")
	look := func(path string, _ fs.DirEntry, err error) error {
		at, _, statErr := stampOf(path)
		if err = errors.Join(err, statErr); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || at.changed == 0 || at.changed >= since.UnixNano() {
			return changed
		}
		return nil
	}
	common := Common(dir)
	for _, path := range []string{filepath.Join(dir, "HEAD"), filepath.Join(common, "refs"), filepath.Join(common, "packed-refs"),
		filepath.Join(common, "reftable"), filepath.Join(common, "logs", "refs", "stash")} {
		if filepath.WalkDir(path, look) != nil {
			return false
		}
	}
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil
}
