package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"hone/workspace/internal/nofollow"
)

// Manifest is the state of all listed paths of a tree at one time, sorted by
// the bytes of the path. Nil is an empty tree.
type Manifest []Entry

// Entry is the state of one path.
type Entry struct {
	Path   string
	Kind   Kind
	Mode   fs.FileMode // permission bits; of regular files
	Size   int64       // bytes; of regular files
	Digest string      // SHA-256 in hex, or see IsUnread; of regular files that could be read
	Target string      // of a symlink
	Note   string      // why it may not be read; empty if it was

	// Untracked and Ignored are as in File. They are not part of the state:
	// digest and encoding leave them out.
	Untracked bool
	Ignored   bool

	// stamp lets the next manifest reuse the digest without reading the file.
	// It is zero if the file changed so recently that another change might not
	// show.
	stamp stamp
}

// unreadPrefix begins the digest of a file that was too large to be read. Nobody can make
// contents whose SHA-256 begins with 128 zero bits.
const unreadPrefix = "00000000000000000000000000000000"

// IsUnread reports whether the file was too large to be read ([Tree.ReadUpTo]). Then its
// Digest has 32 zeros, the size and the modification time, so that a change of either
// shows; a change that keeps both does not. No contents have such a digest.
func (e Entry) IsUnread() bool { return strings.HasPrefix(e.Digest, unreadPrefix) }

// Unread returns the digest of a regular file that manifests do not read, because of its
// size; modified is in nanoseconds since 1970. It is empty if they read the file.
//
// Inode and change time are not in it, because those of a copy of the tree differ, nor is
// the number of blocks, which file systems also change later.
func (t *Tree) Unread(size, modified int64) string {
	if size <= t.maxHash {
		return ""
	}
	return fmt.Sprintf("%s%016x%016x", unreadPrefix, size, uint64(modified))
}

// Manifest reads the state of the tree: the files that Files returns, and the
// ignored files that the user included. It does not reread a file whose
// stamp (size, permission bits, times and inode) equals that of its entry in
// prev, unless the file changed within two seconds before prev was taken. prev
// may be nil. A file that may not be read is an entry with a note, not an error, unless the
// reason may pass (ruling G22); one that is too large is never read ([Entry.IsUnread]).
//
// If the system has no inode change time (Windows), a program that resets the
// modification time hides its change.
func (t *Tree) Manifest(ctx context.Context, prev Manifest) (Manifest, error) {
	return t.ManifestReading(ctx, prev, nil)
}

// wholeFile is the maximum size of the files that ManifestReading passes to read.
const wholeFile = 64 << 10

// ManifestReading is [Tree.Manifest], and passes the contents of files to read, one
// after another in any order: of each regular file of less than 64 KiB that is not as
// in prev. So the caller need not read it again. The entry is that of the result; the
// contents are valid during the call. An error from read ends ManifestReading.
func (t *Tree) ManifestReading(ctx context.Context, prev Manifest, read func(e Entry, contents []byte) error) (Manifest, error) {
	taken := time.Now()
	files, err := t.listedFiles(ctx)
	if err != nil {
		return nil, err
	}
	m := make(Manifest, len(files))
	workers := min(runtime.GOMAXPROCS(0), 1+len(files)/256)
	part := (len(files) + workers - 1) / workers
	var wait sync.WaitGroup
	sink := sink{read: read}
	errs := make([]error, workers)
	for worker := range errs {
		low, high := min(worker*part, len(files)), min((worker+1)*part, len(files))
		wait.Go(func() {
			h := hasher{ctx: ctx, tree: t, cur: nofollow.Cursor{Root: t.root}, prev: prev, taken: taken, sink: &sink}
			defer h.cur.Close()
			for i := low; i < high && ctx.Err() == nil && errs[worker] == nil; i++ {
				m[i], errs[worker] = h.entry(files[i])
			}
		})
	}
	wait.Wait()
	if err := cmp.Or(ctx.Err(), sink.err, errors.Join(errs...)); err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", t.dir, err)
	}
	if t.links.Load() == nil {
		t.noteLinks(m)
	}
	return m, nil
}

// sink passes the contents of files on, one at a time, until an error.
type sink struct {
	mu   sync.Mutex
	read func(e Entry, contents []byte) error // nil does nothing
	err  error
}

func (s *sink) pass(e Entry, contents []byte) {
	if s == nil || s.read == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = s.read(e, contents)
	}
}

// hasher reads files with a cursor, such as consecutive ones of a listing.
type hasher struct {
	ctx   context.Context // ends the reading of a large file
	tree  *Tree
	cur   nofollow.Cursor
	prev  Manifest
	taken time.Time
	buf   []byte
	sink  *sink // nil passes nothing on
}

func (h *hasher) entry(f File) (e Entry, err error) {
	e = Entry{Path: f.Path, Kind: f.Kind, Mode: f.Mode, Size: f.Size, Target: f.Target, Note: f.Note, stamp: f.stamp}
	e.Untracked, e.Ignored = f.Untracked, f.Ignored
	if f.Kind != Regular {
		e.stamp = stamp{}
		return e, nil
	}
	old := h.find(f.Path)
	known := old.Digest != "" && !old.IsUnread() && old.stamp != stamp{} && old.stamp == e.stamp &&
		old.Kind == e.Kind && old.Size == e.Size && old.Mode == e.Mode
	if e.Digest = h.tree.Unread(e.Size, e.stamp.modified); e.Digest != "" {
	} else if known {
		e.Digest = old.Digest
	} else if cause := h.read(&e); cause != nil {
		e.stamp = stamp{}
		e.Note, err = nofollow.Fact(e.Path, cause)
	}
	return h.trusted(e), err
}

// trusted returns the entry without its stamp if a later change might not show in that.
func (h *hasher) trusted(e Entry) Entry {
	last := cmp.Or(e.stamp.changed, e.stamp.modified) // a program can set the latter
	if last >= h.taken.Add(-raceWindow).UnixNano() {
		e.stamp = stamp{}
	}
	return e
}

// find returns the entry of prev for a path; zero if there is none. Paths must come in
// order, because it discards earlier entries.
func (h *hasher) find(path string) Entry {
	if len(h.prev) > 0 && h.prev[0].Path < path {
		next := 1
		if len(h.prev) > 1 && h.prev[1].Path < path {
			next = sort.Search(len(h.prev), func(i int) bool { return h.prev[i].Path >= path })
		}
		h.prev = h.prev[next:]
	}
	if len(h.prev) == 0 || h.prev[0].Path != path {
		return Entry{}
	}
	return h.prev[0]
}

func (h *hasher) buffer() []byte {
	if h.buf == nil {
		h.buf = make([]byte, wholeFile)
	}
	return h.buf
}

// read sets what the contents of an entry's file tell.
func (h *hasher) read(e *Entry) error {
	f, info, err := h.cur.Open(e.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.ReadFull(f, h.buffer())
	sum.Write(h.buf[:n])
	size, whole := int64(n), err == io.EOF || err == io.ErrUnexpectedEOF
	if err == nil {
		var rest int64
		rest, err = io.CopyBuffer(sum, h.tree.UpToLimit(h.ctx, f, size), h.buf)
		size += rest
	}
	if err != nil && !whole {
		return err
	}
	// The stamp is from before reading: a write during the read changes it.
	e.Size, e.Mode, e.stamp = size, info.Mode.Perm(), stampOf(info)
	if e.Digest = h.tree.Unread(size, info.Modified); e.Digest != "" { // it grew
		return nil
	}
	e.Digest = hex.EncodeToString(sum.Sum(nil))
	if whole {
		h.sink.pass(h.trusted(*e), h.buf[:n])
	}
	return nil
}

// UpToLimit returns a reader of the rest of a file, of which some bytes were read. It ends
// with the context, and one byte after what manifests read, because a file may grow while
// it is read.
func (t *Tree) UpToLimit(ctx context.Context, f io.Reader, read int64) io.Reader {
	return nofollow.UntilDone(ctx, io.LimitReader(f, t.maxHash+1-read))
}

// Digest returns one value for the complete state: path, kind, permission bits,
// contents and link target of every entry. Stamps and notes do not count.
func (m Manifest) Digest() string {
	sum := sha256.New()
	var line []byte
	for _, e := range m {
		e.stamp, e.Size, e.Note = stamp{}, 0, ""
		line = appendEntry(line[:0], e)
		sum.Write(line)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Delta is one difference between two manifests, or one change to make; see [Tree.Apply].
type Delta struct {
	Path   string
	Before Entry // zero if the path was added
	After  Entry // zero if the path was removed
	// Edit is set for an edit that a model or the user makes, for Apply: only contents count,
	// so that a file keeps its permission bits, and directories stay, because a process may
	// use one as its working directory.
	Edit bool `json:",omitempty"`
}

// Op returns the type of the difference.
func (d Delta) Op() Op {
	switch {
	case d.Before.Kind == "":
		return Added
	case d.After.Kind == "":
		return Removed
	}
	return Changed
}

// Back returns the change that takes a change back.
func (d Delta) Back() Delta {
	d.Before, d.After = d.After, d.Before
	return d
}

// Op is the type of a difference.
type Op string

// The types of differences.
const (
	Added   Op = "added"
	Changed Op = "changed"
	Removed Op = "removed"
)

// Diff returns the differences from m to n, sorted by path. It ignores stamps
// and what git tracks or ignores, but not notes.
func (m Manifest) Diff(n Manifest) []Delta {
	var deltas []Delta
	for len(m) > 0 || len(n) > 0 {
		switch order := compareHeads(m, n); {
		case order < 0:
			deltas = append(deltas, Delta{Path: m[0].Path, Before: m[0]})
			m = m[1:]
		case order > 0:
			deltas = append(deltas, Delta{Path: n[0].Path, After: n[0]})
			n = n[1:]
		default:
			if !m[0].equalButStamp(n[0]) {
				deltas = append(deltas, Delta{Path: m[0].Path, Before: m[0], After: n[0]})
			}
			m, n = m[1:], n[1:]
		}
	}
	return deltas
}

// An empty manifest sorts last.
func compareHeads(m, n Manifest) int {
	switch {
	case len(m) == 0:
		return 1
	case len(n) == 0:
		return -1
	}
	return strings.Compare(m[0].Path, n[0].Path)
}

// Entry returns the entry of a path and whether there is one.
func (m Manifest) Entry(path string) (Entry, bool) {
	i, ok := m.search(path)
	if !ok {
		return Entry{}, false
	}
	return m[i], true
}

func (m Manifest) search(path string) (i int, found bool) {
	return slices.BinarySearchFunc(m, path, func(e Entry, path string) int { return strings.Compare(e.Path, path) })
}

// SameState reports whether two entries, possibly of different paths, have the
// same state: kind, permission bits, contents and link target. The zero Entry
// is the state of a path that does not exist. An entry that could not be read
// equals no other.
func (e Entry) SameState(o Entry) bool {
	return e.Note == "" && o.Note == "" && e.Kind == o.Kind && e.Mode == o.Mode && e.Digest == o.Digest && e.Target == o.Target
}

// ChangedBefore reports whether the file's last change, at the time of the
// manifest, was before t. It returns false if that is unknown.
func (e Entry) ChangedBefore(t time.Time) bool {
	last := max(e.stamp.changed, e.stamp.modified)
	return last != 0 && last < t.UnixNano()
}

// ManifestOf reads the state of single paths, whether or not git ignores them.
// Paths that do not exist or are closed are left out. prev and errors are as in [Tree.Manifest].
func (t *Tree) ManifestOf(ctx context.Context, paths []string, prev Manifest) (Manifest, error) {
	l := &lister{tree: t, ctx: ctx, cur: nofollow.Cursor{Root: t.root}}
	defer l.cur.Close()
	h := hasher{ctx: ctx, tree: t, cur: nofollow.Cursor{Root: t.root}, prev: prev, taken: time.Now()}
	defer h.cur.Close()
	var m Manifest
	var err error
	for _, p := range slices.Sorted(slices.Values(paths)) {
		info, cause := l.cur.Lstat(p)
		switch {
		case t.Refusal(p) != nil || nofollow.IsAbsent(cause) || cause == nil && info.Mode.IsDir():
			continue
		case cause != nil:
			err = l.addUnreadable(p, marks{}, cause)
		default:
			var f File
			f, err = l.file(p, info, marks{})
			l.files = append(l.files, f)
		}
		if err == nil {
			var e Entry
			e, err = h.entry(l.files[len(l.files)-1])
			m = append(m, e)
		}
		if err := cmp.Or(ctx.Err(), err); err != nil { // the last file may be half read
			return nil, fmt.Errorf("inspect %s: %w", t.dir, err)
		}
	}
	return m, nil
}

func (e Entry) equal(o Entry) bool { return e.stamp == o.stamp && e.equalButStamp(o) }

func (e Entry) equalButStamp(o Entry) bool {
	e.stamp, o.stamp = stamp{}, stamp{}
	e.Untracked, o.Untracked = false, false
	e.Ignored, o.Ignored = false, false
	return e == o
}

// raceWindow is how long before a reading a file must last have changed for its
// stamp to be trusted later. File systems count time in steps of up to two
// seconds, and a second write within one step leaves the stamp unchanged.
const raceWindow = 2 * time.Second

// stamp is what a file system reports cheaply about the state of a file. The
// zero stamp belongs to no file and is never trusted.
type stamp struct {
	modified int64 // nanoseconds since 1970
	changed  int64 // last change of the inode in nanoseconds; 0 if unknown
	inode    uint64
}

func stampOf(info nofollow.Info) stamp {
	return stamp{modified: info.Modified, changed: info.Changed, inode: info.Inode}
}
