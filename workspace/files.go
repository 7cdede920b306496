package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Kind is what stands at a path.
type Kind string

// What a listed path can be.
const (
	Regular Kind = "file"
	Symlink Kind = "symlink"
	// Other is a FIFO, socket or device, or what could not be looked at.
	Other Kind = "other"
)

// File is one kept path of a tree.
type File struct {
	Path      string      // relative to the root, with slashes, in the file system's bytes
	Kind      Kind        // never empty
	Size      int64       // in bytes; of regular files
	Mode      fs.FileMode // permission bits; of regular files
	Target    string      // of a symlink, as it stands there
	Untracked bool        // git keeps it but does not track it; false where no git was asked
	Note      string      // why it could not be looked at; empty where it could

	stamp stamp
}

// Files lists what the tree keeps, sorted by the bytes of the path: what the
// Lister names, or everything where it was walked. Git's own files at any
// depth, .hone at the root and the temporary files of Apply are left out, and
// so is a listed path that is gone or lies behind a symlink. A directory that
// cannot be read is an entry of kind Other with a note, not an error.
func (t *Tree) Files(ctx context.Context) ([]File, error) {
	l := &lister{tree: t, ctx: ctx, cur: cursor{root: t.root}}
	defer l.cur.close()
	if err := l.repository(""); err != nil {
		return nil, fmt.Errorf("list %s: %w", t.dir, err)
	}
	byPath := func(a, b File) int { return strings.Compare(a.Path, b.Path) }
	slices.SortFunc(l.files, byPath)
	return slices.CompactFunc(l.files, func(a, b File) bool { return a.Path == b.Path }), nil
}

// lister gathers the files of one listing.
type lister struct {
	tree  *Tree
	ctx   context.Context
	cur   cursor
	files []File
}

// repository lists a directory by asking git, or walks it where git has no
// answer.
func (l *lister) repository(dir string) error {
	if l.tree.list == nil {
		return l.walk(dir, false)
	}
	listing, err := l.tree.list(l.ctx, filepath.Join(l.tree.dir, filepath.FromSlash(dir)))
	if errors.Is(err, ErrNoRepository) {
		return l.walk(dir, false)
	}
	if err != nil {
		return err
	}
	kept := slices.Clone(listing.Kept)
	slices.Sort(kept)
	for _, name := range slices.Compact(kept) {
		if err := l.named(dir, name, listing.Untracked[name]); err != nil {
			return err
		}
	}
	return nil
}

// named adds what git named in a repository at dir.
func (l *lister) named(dir, name string, untracked bool) error {
	cleaned := path.Clean(name)
	if cleaned == "." || !fs.ValidPath(toValid(cleaned)) {
		return nil
	}
	full := join(dir, cleaned)
	if hidden(full) {
		return nil
	}
	return l.add(full, untracked)
}

// toValid makes a path that fs.ValidPath can judge out of one that is not
// UTF-8: only the dots and slashes matter here.
func toValid(p string) string { return strings.ToValidUTF8(p, "?") }

// walk adds everything below a directory.
func (l *lister) walk(dir string, untracked bool) error {
	names, err := l.names(dir)
	if absent(err) && dir != "" {
		return nil
	}
	if err != nil && dir != "" {
		l.note(dir, untracked, err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if hiddenName(name, dir == "") {
			continue
		}
		if err := l.add(join(dir, name), untracked); err != nil {
			return err
		}
	}
	return nil
}

// names reads a directory.
func (l *lister) names(dir string) ([]string, error) {
	root, err := l.cur.at(dir)
	if err != nil {
		return nil, err
	}
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// add adds one path, and enters it if it is a directory.
func (l *lister) add(path string, untracked bool) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	info, err := l.cur.lstat(path)
	switch {
	case absent(err):
	case err != nil:
		l.note(path, untracked, err)
	case info.IsDir():
		return l.enter(path, untracked)
	default:
		l.files = append(l.files, l.file(path, info, untracked))
	}
	return nil
}

// enter lists a nested repository, or walks a plain directory.
func (l *lister) enter(dir string, untracked bool) error {
	if _, err := l.cur.lstat(join(dir, ".git")); err == nil {
		return l.repository(dir)
	}
	return l.walk(dir, untracked)
}

// note adds a path that cannot be looked at.
func (l *lister) note(path string, untracked bool, err error) {
	l.files = append(l.files, File{Path: path, Kind: Other, Untracked: untracked, Note: plainError(err)})
}

// file describes what was seen at a path.
func (l *lister) file(path string, info fs.FileInfo, untracked bool) File {
	f := File{Path: path, Kind: kindOf(info), Untracked: untracked, stamp: stampOf(info)}
	switch f.Kind {
	case Regular:
		f.Size, f.Mode = info.Size(), info.Mode().Perm()
	case Symlink:
		target, err := l.cur.top().Readlink(base(path))
		if err != nil {
			f.Note = plainError(err)
		}
		f.Target = target
	}
	return f
}

// kindOf names what was seen; directories do not come here.
func kindOf(info fs.FileInfo) Kind {
	switch {
	case info.Mode().IsRegular():
		return Regular
	case info.Mode()&fs.ModeSymlink != 0:
		return Symlink
	}
	return Other
}

// plainError is an error's reason without the path, which the reader has.
func plainError(err error) string {
	var refused *RefusedError
	var code syscall.Errno
	switch {
	case errors.As(err, &refused):
		return refused.Reason
	case errors.As(err, &code):
		return code.Error()
	}
	return withoutPath(err).Error()
}
