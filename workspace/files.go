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
	Ignored   bool        // git ignores it, and it is in manifests because the user asked; never set by Files
	Note      string      // why it could not be looked at; empty where it could

	stamp stamp
}

// Files lists what the tree keeps and a model may hear of, sorted by the bytes
// of the path: what the Lister names, or everything where it was walked. What
// git ignores is left out even where it is kept. Git's own files at any
// depth, .hone at the root and the temporary files of Apply and Restore are
// left out, and so is a listed path that is gone or lies behind a symlink. A
// directory that cannot be read is an entry of kind Other with a note, not an
// error.
func (t *Tree) Files(ctx context.Context) ([]File, error) {
	files, err := t.kept(ctx)
	return slices.DeleteFunc(files, func(f File) bool { return f.Ignored }), err
}

// kept is Files with what git ignores and the user wants kept.
func (t *Tree) kept(ctx context.Context) ([]File, error) {
	l := &lister{tree: t, ctx: ctx, cur: cursor{root: t.root}}
	defer l.cur.close()
	if err := l.repository("", marks{}); err != nil {
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

// marks are what git says of a path, and of all that is walked below it.
type marks struct{ untracked, ignored bool }

// repository lists a directory by asking git, or walks it where git has no
// answer. What lies in an ignored one is ignored.
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
	kept := slices.Clone(listing.Kept)
	slices.Sort(kept)
	for _, name := range slices.Compact(kept) {
		m := marks{untracked: listing.Untracked[name], ignored: of.ignored || listing.Ignored[name]}
		if err := l.named(dir, name, m); err != nil {
			return err
		}
	}
	return nil
}

// named adds what git named in a repository at dir.
func (l *lister) named(dir, name string, m marks) error {
	cleaned := path.Clean(name)
	if cleaned == "." || !fs.ValidPath(toValid(cleaned)) {
		return nil
	}
	full := join(dir, cleaned)
	if hidden(full) {
		return nil
	}
	return l.add(full, m)
}

// toValid makes a path that fs.ValidPath can judge out of one that is not
// UTF-8: only the dots and slashes matter here.
func toValid(p string) string { return strings.ToValidUTF8(p, "?") }

// walk adds everything below a directory.
func (l *lister) walk(dir string, m marks) error {
	names, err := l.names(dir)
	if absent(err) && dir != "" {
		return nil
	}
	if err != nil && dir != "" {
		l.note(dir, m, err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if hiddenName(name, dir == "") {
			continue
		}
		if err := l.add(join(dir, name), m); err != nil {
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
func (l *lister) add(path string, m marks) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	info, err := l.cur.lstat(path)
	switch {
	case absent(err):
	case err != nil:
		l.note(path, m, err)
	case info.IsDir():
		return l.enter(path, m)
	default:
		l.files = append(l.files, l.file(path, info, m))
	}
	return nil
}

// enter lists a nested repository, or walks a plain directory.
func (l *lister) enter(dir string, m marks) error {
	if _, err := l.cur.lstat(join(dir, ".git")); err == nil {
		return l.repository(dir, m)
	}
	return l.walk(dir, m)
}

// note adds a path that cannot be looked at.
func (l *lister) note(path string, m marks, err error) {
	l.files = append(l.files, File{Path: path, Kind: Other, Untracked: m.untracked, Ignored: m.ignored, Note: plainError(err)})
}

// file describes what was seen at a path.
func (l *lister) file(path string, info fs.FileInfo, m marks) File {
	f := File{Path: path, Kind: kindOf(info), Untracked: m.untracked, Ignored: m.ignored, stamp: stampOf(info)}
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
