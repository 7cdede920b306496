package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"hone/internal/transient"
	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// Kind is the type of a file.
type Kind string

// The kinds of listed paths.
const (
	Regular Kind = "file"
	Symlink Kind = "symlink"
	// Other is a FIFO, socket or device, or a path that could not be inspected.
	Other Kind = "other"
)

// File is one listed path of a tree.
type File struct {
	Path      string      // relative to the root, with slashes, in the bytes of the file system
	Kind      Kind        // never empty
	Size      int64       // bytes; of regular files
	Mode      fs.FileMode // permission bits; of regular files
	Target    string      // of a symlink, as stored
	Untracked bool        // git does not track it yet; false if git was not asked
	Ignored   bool        // git ignores it, but the user included it; never set by Files
	Note      string      // why it could not be inspected; empty if it was

	stamp stamp
}

// Files returns the files that a model may know of, sorted by the bytes of the
// path: the files that the Lister names, or all files if there is no Lister or
// no repository. It leaves out files that git ignores, git's own files at any
// depth, .hone at the root, closed paths, hone's temporary
// files and empty configurations, and listed paths that do not exist or are
// behind a symlink. A directory that may not be read is an entry of kind Other
// with a note, not an error.
func (t *Tree) Files(ctx context.Context) ([]File, error) {
	files, err := t.listedFiles(ctx)
	return slices.DeleteFunc(files, func(f File) bool { return f.Ignored }), err
}

// listedFiles returns what Files returns, and the ignored files that the user
// included or that are kept.
func (t *Tree) listedFiles(ctx context.Context) ([]File, error) {
	l := &lister{tree: t, ctx: ctx, cur: nofollow.Cursor{Root: t.root}}
	defer l.cur.Close()
	err := l.repository("", marks{})
	t.extra.Range(func(path, _ any) bool {
		err = cmp.Or(err, l.addNamed("", path.(string), marks{untracked: true, ignored: true}))
		return err == nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", t.dir, err)
	}
	byPath := func(a, b File) int { return strings.Compare(a.Path, b.Path) }
	slices.SortStableFunc(l.files, byPath)
	return slices.CompactFunc(l.files, func(a, b File) bool { return a.Path == b.Path }), nil
}

type lister struct {
	tree  *Tree
	ctx   context.Context
	cur   nofollow.Cursor
	files []File
}

// marks are what git says about a path and everything below it.
type marks struct{ untracked, ignored bool }

// Everything in an ignored directory is ignored.
func (l *lister) repository(dir string, of marks) error {
	of.untracked = false
	if l.tree.list == nil {
		return l.walk(dir, of)
	}
	listing, err := l.tree.list(l.ctx, filepath.Join(l.tree.dir, filepath.FromSlash(dir)))
	if errors.Is(err, ErrNoRepository) {
		return l.walk(dir, of)
	}
	if err != nil {
		return err
	}
	kept := slices.Clone(listing.Paths)
	slices.Sort(kept)
	kept = slices.Compact(kept)
	workers := min(runtime.GOMAXPROCS(0), 1+len(kept)/256)
	parts, errs := make([]lister, workers), make([]error, workers)
	var wait sync.WaitGroup
	for i := range parts {
		part, names := &parts[i], kept[i*len(kept)/workers:(i+1)*len(kept)/workers]
		part.tree, part.ctx, part.cur.Root = l.tree, l.ctx, l.tree.root
		part.files = make([]File, 0, len(names))
		wait.Go(func() {
			defer part.cur.Close()
			for _, name := range names {
				m := marks{untracked: listing.Untracked[name], ignored: of.ignored || listing.Ignored[name]}
				if errs[i] = part.addNamed(dir, name, m); errs[i] != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	for i := range parts { // in order
		if errs[i] != nil {
			return errs[i]
		}
		l.files = append(l.files, parts[i].files...)
	}
	return nil
}

func (l *lister) addNamed(dir, name string, m marks) error {
	cleaned := path.Clean(name)
	if !treepath.Valid(cleaned) {
		return nil
	}
	full := treepath.Join(dir, cleaned)
	if treepath.Hidden(full) {
		return nil
	}
	return l.add(full, m)
}

func (l *lister) walk(dir string, m marks) error {
	names, err := l.cur.Names(dir)
	if nofollow.IsAbsent(err) && dir != "" {
		return nil
	}
	if err != nil && dir != "" {
		return l.addUnreadable(dir, m, err)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if treepath.HiddenName(name, dir == "") {
			continue
		}
		if err := l.add(treepath.Join(dir, name), m); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) add(path string, m marks) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	if l.tree.Refusal(path) != nil {
		return nil
	}
	info, err := l.cur.Lstat(path)
	switch {
	case nofollow.IsAbsent(err):
	case err != nil:
		return l.addUnreadable(path, m, err)
	case info.Mode.IsDir():
		return l.enter(path, m)
	case isPlaceholder(path, info):
	default:
		f, err := l.file(path, info, m)
		l.files = append(l.files, f)
		return err
	}
	return nil
}

// isPlaceholder reports whether a file is a configuration without contents. hone
// creates one if there is none while commands run, so that they cannot.
func isPlaceholder(name string, info nofollow.Info) bool {
	if !info.Mode.IsRegular() || info.Size > int64(len("{}")) || path.Base(path.Dir(name)) != ".config" {
		return false
	}
	return path.Base(name) == "hone.toml" && info.Size == 0 || path.Base(name) == "bork.json" && info.Size == int64(len("{}"))
}

func (l *lister) enter(dir string, m marks) error {
	_, err := l.cur.Lstat(treepath.Join(dir, ".git"))
	switch {
	case err == nil:
		return l.repository(dir, m)
	case transient.Is(err):
		return nofollow.ReadError(dir, err)
	}
	return l.walk(dir, m)
}

func (l *lister) addUnreadable(path string, m marks, cause error) error {
	note, err := nofollow.Fact(path, cause)
	l.files = append(l.files, File{Path: path, Kind: Other, Untracked: m.untracked, Ignored: m.ignored, Note: note})
	return err
}

func (l *lister) file(path string, info nofollow.Info, m marks) (f File, err error) {
	f = File{Path: path, Kind: kindOf(info), Untracked: m.untracked, Ignored: m.ignored, stamp: stampOf(info)}
	switch f.Kind {
	case Regular:
		f.Size, f.Mode = info.Size, info.Mode.Perm()
	case Symlink:
		var cause error
		if f.Target, cause = l.cur.Readlink(path); cause != nil {
			f.Note, err = nofollow.Fact(path, cause)
		}
	}
	return f, err
}

// The file is not a directory.
func kindOf(info nofollow.Info) Kind {
	switch {
	case info.Mode.IsRegular():
		return Regular
	case info.Mode&fs.ModeSymlink != 0:
		return Symlink
	}
	return Other
}
