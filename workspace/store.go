package workspace

import (
	"context"
	"fmt"
	"io"
	"slices"

	"hone/workspace/internal/nofollow"
	"hone/workspace/treepath"
)

// Store passes the contents of the manifest's regular files to put, one after
// another in path order: every file that has a digest and for which want
// returns true. A nil want selects all.
//
// If a file changed since the manifest was taken, Store stores its current
// contents and updates its entry in the result. That entry has no stamp, so the
// next manifest reads the file again. The result omits paths that no longer
// exist, describes a path that became a symlink or a device as such, and gives
// a file that may not be opened a note and no digest. A file that has become too large is
// not passed to put, and its entry says so (Entry.IsUnread). If nothing differs the
// result is m itself; m is never changed.
//
// Contract: put reads to the end and returns the SHA-256 in hex and the size
// in bytes of what it read. It may skip reading only if it knows both
// otherwise. An error from put ends Store. So does a canceled context, which
// the reader reports as well.
func (t *Tree) Store(ctx context.Context, m Manifest, want func(Entry) bool, put func(io.Reader) (digest string, size int64, err error)) (Manifest, error) {
	s := storer{ctx: ctx, tree: t, cur: nofollow.Cursor{Root: t.root}, put: put}
	defer s.cur.Close()
	out := Manifest(nil) // created at the first difference
	for i, e := range m {
		now, there := e, true
		if e.Kind == Regular && e.Digest != "" && (want == nil || want(e)) {
			var err error
			if now, there, err = s.storeFile(e); err != nil {
				return nil, fmt.Errorf("store %s: %w", treepath.Display(e.Path), err)
			}
		}
		if out == nil && (!there || now != e) {
			out = append(make(Manifest, 0, len(m)), m[:i]...)
		}
		if out != nil && there {
			out = append(out, now)
		}
	}
	if out == nil {
		return m, nil
	}
	return slices.Clip(out), nil
}

type storer struct {
	ctx  context.Context
	tree *Tree
	cur  nofollow.Cursor
	put  func(io.Reader) (string, int64, error)
}

func (s *storer) storeFile(e Entry) (now Entry, there bool, err error) {
	if err := s.ctx.Err(); err != nil {
		return e, false, err
	}
	f, info, err := s.cur.Open(e.Path)
	if err != nil {
		note, err := nofollow.Fact(e.Path, err)
		if err != nil {
			return e, false, err
		}
		found, err := s.tree.ManifestOf(s.ctx, []string{e.Path}, nil)
		if now, there = found.Entry(e.Path); now.Kind == Regular {
			now.Digest, now.stamp, now.Note = "", stamp{}, note
		}
		now.Untracked, now.Ignored = e.Untracked, e.Ignored
		return now, there, err
	}
	defer f.Close()
	now = e
	now.Size, now.Mode, now.Digest = info.Size, info.Mode.Perm(), s.tree.Unread(info.Size, info.Modified)
	if now.Digest == "" {
		// Of a file that grows meanwhile, this stores the beginning.
		if now.Digest, now.Size, err = s.put(s.tree.UpToLimit(s.ctx, f, 1)); err != nil {
			return e, false, err
		}
	}
	if now != e {
		now.stamp = stamp{}
	}
	return now, true, nil
}
