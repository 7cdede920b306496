// Package objects stores contents under their digests, in one file a run, its [Pack]. What
// is stored never changes, and is verified when it is read.
//
// A [Store] reads the packs of all runs; [Store.Pack] returns the one to which the process
// that works on a run appends. It stores nothing that any pack has. [Pack.Sync] makes it
// durable: name no object in a durable place before that.
package objects

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	stdhash "hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"hone/internal/transient"
)

// Store reads the packs in a directory. Concurrent calls are safe.
type Store struct {
	in     *Dir
	folder string
	wanted func(run string) bool // whose packs are read

	mu     sync.Mutex
	packs  map[string]*packFile // by run
	places map[digest]place
	next   nextDecoder
}

type digest [sha256.Size]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

func parseDigest(name string) (d digest, err error) {
	if len(name) != 2*len(d) || strings.Trim(name, "0123456789abcdef") != "" {
		return d, fmt.Errorf("%q is not the name of an object", name)
	}
	_, err = hex.Decode(d[:], []byte(name))
	return d, err
}

// In returns the store of the packs in a folder of a directory, which the caller may move.
func In(d *Dir, folder string) *Store {
	s := &Store{in: d, folder: folder, wanted: func(string) bool { return true }}
	s.Reset()
	return s
}

// Of returns a store of only some runs' packs.
func (s *Store) Of(wanted func(run string) bool) *Store {
	some := In(s.in, s.folder)
	some.wanted = wanted
	return some
}

// Reset forgets what is stored, because packs were removed. No pack may be in use.
func (s *Store) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packs, s.places = map[string]*packFile{}, map[digest]place{}
}

func (s *Store) file(run string) string { return s.folder + "/" + run + packSuffix }

// Packs returns the runs that have a pack, oldest first.
func (s *Store) Packs() (runs []string, err error) {
	d, err := s.in.Root.Open(s.folder)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	for _, n := range names {
		if run, ok := strings.CutSuffix(n, packSuffix); ok && s.wanted(run) {
			runs = append(runs, run)
		}
	}
	slices.Sort(runs)
	return runs, err
}

// refresh reads what was appended to the packs since. The caller holds the mutex.
func (s *Store) refresh() error {
	runs, err := s.Packs()
	if err != nil {
		return err
	}
	for _, run := range runs {
		p := s.packs[run]
		if p == nil {
			p = &packFile{run: run}
			s.packs[run] = p
		}
		if !p.writing {
			p.damage = s.scan(p)
		}
	}
	return nil
}

func (s *Store) scan(p *packFile) error {
	f, err := s.in.Open(s.file(p.run))
	if err == nil {
		err = p.readHeaders(f, func(at place) {
			if old, ok := s.places[at.digest]; !ok || !old.isDurable() {
				s.places[at.digest] = at
			}
		})
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		err = fmt.Errorf("%s cannot be used: %w", s.in.At(s.file(p.run)), err)
	}
	return err
}

// find looks at the files again only if it does not know the object.
func (s *Store) find(d digest) (place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.places[d]; ok {
		return at, nil
	}
	if err := s.refresh(); err != nil {
		return place{}, err
	}
	at, ok := s.places[d]
	if ok {
		return at, nil
	}
	damage := s.damage()
	if i := slices.IndexFunc(damage, transient.Is); i >= 0 {
		return place{}, damage[i] // it may be there, so nothing is known (ruling G22)
	}
	return place{}, &MissingError{Name: d.String(), Damaged: damage}
}

// Has reports whether an object is stored. It does not read the object; [Store.Get] and
// [Store.OpenObject] do, and detect damage. An event may name an object that [Pack.Has] has.
func (s *Store) Has(name string) bool {
	d, err := parseDigest(name)
	if err != nil {
		return false
	}
	_, err = s.find(d)
	return err == nil
}

// Sizes returns how many bytes of disk space each stored object needs, by name. If a pack
// cannot be read, that is an error: nothing is known of what is in it.
func (s *Store) Sizes() (map[string]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(); err != nil {
		return nil, fmt.Errorf("list the objects: %w", err)
	}
	for _, err := range s.damage() {
		if !errors.Is(err, errTorn) {
			return nil, err
		}
	}
	sizes := map[string]int64{}
	for d, at := range s.places {
		sizes[d.String()] = int64(headerSize) + at.stored
	}
	return sizes, nil
}

// The caller holds the mutex.
func (s *Store) damage() (errs []error) {
	for _, p := range s.packs {
		if p.damage != nil {
			errs = append(errs, p.damage)
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// Get reads an object and verifies its digest. The error is as for
// [Store.OpenObject].
func (s *Store) Get(name string) ([]byte, error) {
	o, err := s.OpenObject(name)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	b, err := io.ReadAll(o)
	if err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	return b, nil
}

// OpenObject opens an object for reading. If its contents do not match its digest, the last
// Read returns an error that names the file instead of [io.EOF]; do not use what was read
// before. Closing it early is not an error. If the object is not stored, or was in a damaged
// pack, the error is a [*MissingError].
func (s *Store) OpenObject(name string) (io.ReadCloser, error) {
	d, err := parseDigest(name)
	if err != nil {
		return nil, err
	}
	at, err := s.find(d)
	if errors.As(err, new(*MissingError)) {
		return nil, err
	}
	var o io.ReadCloser
	if err == nil {
		o, err = s.open(at)
	}
	if err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	return o, nil
}

func (s *Store) open(at place) (io.ReadCloser, error) {
	file := s.file(at.pack.run)
	f, err := s.in.Open(file)
	if err != nil {
		return nil, err
	}
	o := &object{from: io.NewSectionReader(f, at.offset, at.stored), file: f, sum: sha256.New(), want: at.digest, path: s.in.At(file)}
	switch at.kind {
	case compressed, base:
		o.zstd, err = zstd.NewReader(o.from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
		o.from = damageReader{io.LimitReader(o.zstd, at.size)}
	case next:
		var b []byte
		b, err = s.next.decode(s, at, o.from)
		o.from = bytes.NewReader(b)
	}
	if err != nil {
		return nil, errors.Join(o.explain(err), f.Close())
	}
	return o, nil
}

func (s *Store) verify(at place) error {
	o, err := s.open(at)
	if err == nil {
		_, err = io.Copy(io.Discard, o)
		err = errors.Join(err, o.Close())
	}
	return err
}

// object verifies itself at its end.
type object struct {
	from io.Reader
	zstd *zstd.Decoder // nil if from is not read through it
	file *os.File
	sum  stdhash.Hash
	want digest
	path string
}

func (o *object) Read(b []byte) (int, error) {
	n, err := o.from.Read(b)
	o.sum.Write(b[:n])
	if err == io.EOF && digest(o.sum.Sum(nil)) != o.want {
		err = &damagedError{errors.New("it has another digest")}
	}
	return n, o.explain(err)
}

func (o *object) explain(err error) error {
	var damaged *damagedError
	if !errors.As(err, &damaged) || transient.Is(err) {
		return err
	}
	return &changedError{o.path, o.want}
}

type changedError struct {
	path   string
	object digest
}

func (e *changedError) Error() string {
	return fmt.Sprintf("%s was changed after it was stored: it no longer contains the object %s", e.path, e.object)
}

func (o *object) Close() error {
	if o.zstd != nil {
		o.zstd.Close()
	}
	return o.file.Close()
}

type damageReader struct{ io.Reader }

func (r damageReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = &damagedError{err}
	}
	return n, err
}

type damagedError struct{ cause error }

func (e *damagedError) Error() string { return e.cause.Error() }
func (e *damagedError) Unwrap() error { return e.cause }

// MissingError says that an object is not stored. It wraps [fs.ErrNotExist].
type MissingError struct {
	Name string
	// Damaged has an error for each damaged pack. Any may have held the object.
	Damaged []error
}

func (e *MissingError) Error() string {
	s := fmt.Sprintf("the object %s is not stored", e.Name)
	switch n := len(e.Damaged); n {
	case 0:
		return s
	case 1:
		return fmt.Sprintf("%s; it may have been in a damaged pack: %v", s, e.Damaged[0])
	default:
		return fmt.Sprintf("%s; it may have been in one of %d damaged packs: %v, and others", s, n, e.Damaged[0])
	}
}

func (e *MissingError) Unwrap() error { return fs.ErrNotExist }
