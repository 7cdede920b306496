package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// Keep hands the contents of the manifest's regular files to keep, one after
// the other in the order of the paths: of those that have a digest and that
// want asks for. A nil want asks for all.
//
// A file that changed since the manifest was taken is kept as it is now, and
// its entry in the result says so; it has no stamp, so that the next manifest
// reads it again. A path that is gone is left out of the result, one that has
// become a symlink or a device is that, and a file that can no longer be
// opened gets a note and no digest. Where nothing differs the result is m
// itself; m is never changed.
//
// Contract: keep reads to the end and answers with the SHA-256 in hex and the
// size in bytes of what it read; it may skip the reading only where it knows
// both of them otherwise. Its error ends Keep, and so does a cancelled context,
// which the reader reports as well.
func (t *Tree) Keep(ctx context.Context, m Manifest, want func(Entry) bool, keep func(io.Reader) (digest string, size int64, err error)) (Manifest, error) {
	k := keeper{ctx: ctx, cur: cursor{root: t.root}, keep: keep}
	defer k.cur.close()
	out := Manifest(nil) // made at the first difference
	for i, e := range m {
		now, there := e, true
		if e.Kind == Regular && e.Digest != "" && (want == nil || want(e)) {
			var err error
			if now, there, err = k.entry(e); err != nil {
				return nil, fmt.Errorf("keep %s: %w", display(e.Path), err)
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

// keeper is one run of Keep.
type keeper struct {
	ctx  context.Context
	cur  cursor
	keep func(io.Reader) (string, int64, error)
}

// entry keeps one file, and says what it is now and whether it is there.
func (k *keeper) entry(e Entry) (now Entry, there bool, err error) {
	if err := k.ctx.Err(); err != nil {
		return e, false, err
	}
	dir, err := k.cur.at(parentOf(e.Path))
	if absent(err) {
		return e, false, nil
	}
	if err != nil {
		return unread(e, err), true, nil
	}
	f, info, err := openRegular(dir, e.Path)
	if err != nil {
		return k.other(e, err)
	}
	defer f.Close()
	digest, size, err := k.keep(contextReader{k.ctx, f})
	if err != nil {
		return e, false, err
	}
	now = e
	now.Digest, now.Size, now.Mode = digest, size, info.Mode().Perm()
	if now != e {
		now.stamp = stamp{}
	}
	return now, true, nil
}

// other is the entry of a file that could not be opened as one.
func (k *keeper) other(e Entry, cause error) (now Entry, there bool, err error) {
	info, err := k.cur.lstat(e.Path)
	if absent(err) || err == nil && info.IsDir() {
		return e, false, nil
	}
	if err != nil || info.Mode().IsRegular() {
		return unread(e, cause), true, nil
	}
	now = Entry{Path: e.Path, Kind: kindOf(info), Untracked: e.Untracked, Ignored: e.Ignored}
	if now.Kind == Symlink {
		now.Target, err = k.cur.top().Readlink(base(e.Path))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return e, false, nil
	}
	if err != nil {
		now.Note = plainError(err)
	}
	return now, true, nil
}

// unread is the entry of a file that cannot be read any more.
func unread(e Entry, err error) Entry {
	e.Digest, e.stamp, e.Note = "", stamp{}, plainError(err)
	return e
}

// contextReader ends with the context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
