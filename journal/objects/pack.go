package objects

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxBlock is how many bytes of an object are read before it is appended.
const maxBlock = 1 << 20

// Pack stores the objects of a run. Concurrent calls are safe.
type Pack struct {
	store *Store
	run   string

	mu     sync.Mutex
	file   *os.File // nil before the first object
	known  *packFile
	began  int64 // where this process began to append
	idle   bool  // stores nothing
	named  bool  // whether the file's name is durable
	broken error // why it can no longer be used; nil if it can
	codec  *zstd.Encoder
	next   nextEncoder
}

// Pack returns the pack of a run, which the first object creates unless it exists. The
// caller holds the workspace's lock as long as it uses the pack.
func (s *Store) Pack(run string) *Pack { return &Pack{store: s, run: run} }

// Idle returns a pack that stores nothing and names each object, for a run that is replayed.
func (s *Store) Idle(run string) *Pack { return &Pack{store: s, run: run, idle: true} }

// Create creates the pack of a new run. The caller makes its name durable.
func (p *Pack) Create() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.named = true
	return p.open()
}

func (p *Pack) open() error {
	if p.file != nil || p.broken != nil {
		return p.broken
	}
	s, name := p.store, p.store.file(p.run)
	err := s.in.CheckRegular(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = p.create(name)
	} else {
		p.named = true
	}
	if err == nil {
		p.known, err = s.settle(p.run)
	}
	if err == nil {
		p.file, err = s.in.Root.OpenFile(name, os.O_RDWR, 0)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.began, p.known.writing = p.known.end, true
	return nil
}

func (p *Pack) create(name string) error {
	f, err := p.store.in.Root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(packMagic)
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, p.store.in.Root.Remove(name))
	}
	return err
}

// Put stores an object and returns its name: the SHA-256 of its bytes in hex. The object can
// be read when Put returns, and is durable after the next [Pack.Sync]. It is compressed if
// that saves space.
func (p *Pack) Put(b []byte) (string, error) { return p.put(b, p.smallest) }

// PutNext is Put for a text that resembles the one of the last PutNext, such as a manifest.
func (p *Pack) PutNext(b []byte) (string, error) { return p.put(b, p.asNext) }

func (p *Pack) put(b []byte, encode func(b []byte) (kind, []byte, error)) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := place{digest: sha256.Sum256(b), size: int64(len(b))}
	if p.idle {
		return at.digest.String(), nil
	}
	stored, err := p.has(at.digest)
	if err == nil && !stored {
		err = p.append(at, b, encode)
	}
	if err != nil {
		return "", fmt.Errorf("store an object: %w", err)
	}
	return at.digest.String(), nil
}

func (p *Pack) append(at place, b []byte, encode func(b []byte) (kind, []byte, error)) (err error) {
	if err := p.open(); err != nil {
		return err
	}
	var contents []byte
	if at.kind, contents, err = encode(b); err != nil {
		return err
	}
	at.stored = int64(len(contents))
	if _, err := p.file.WriteAt(append(at.header(p.known.synced), contents...), p.known.end); err != nil {
		return errors.Join(err, p.truncate(p.known.end))
	}
	p.note(at)
	return nil
}

func (p *Pack) note(at place) {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	at.pack, at.offset = p.known, p.known.end+int64(headerSize)
	switch at.kind {
	case base:
		p.known.base = &at
	case next:
		at.base = p.known.base
	}
	p.known.end = at.offset + at.stored
	p.store.places[at.digest] = at
}

func (p *Pack) truncate(end int64) error {
	if err := p.file.Truncate(end); err != nil {
		p.broken = fmt.Errorf("%s cannot be used: %w", p.store.in.At(p.store.file(p.run)), err)
	}
	return p.broken
}

// Add reads an object to its end and returns its name, as [Pack.Put] does, and its length in
// bytes.
func (p *Pack) Add(r io.Reader) (name string, size int64, err error) {
	var start bytes.Buffer
	size, err = io.CopyN(&start, r, maxBlock)
	if err == io.EOF {
		name, err = p.Put(start.Bytes())
		return name, size, err
	}
	if err == nil {
		name, size, err = p.addLong(start.Bytes(), r)
	}
	if err != nil {
		return "", 0, fmt.Errorf("store an object: %w", err)
	}
	return name, size, nil
}

// The header comes last, because it has the digest. The object is compressed if that saves
// space in its start, which is more than a frame of any length adds.
func (p *Pack) addLong(start []byte, rest io.Reader) (name string, size int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.open(); err != nil {
		return "", 0, err
	}
	at := place{kind: plain}
	out, sum := io.NewOffsetWriter(p.file, p.known.end+int64(headerSize)), sha256.New()
	in := io.TeeReader(io.MultiReader(bytes.NewReader(start), rest), sum)
	if at.kind, _, _ = p.smallest(start); at.kind == plain {
		at.size, err = io.CopyBuffer(out, in, make([]byte, 64<<10))
	} else {
		p.codec.Reset(out)
		at.size, err = io.Copy(p.codec, in)
		err = errors.Join(err, p.codec.Close())
	}
	stored := false
	if err == nil {
		at.stored, _ = out.Seek(0, io.SeekCurrent)
		at.digest = digest(sum.Sum(nil))
		stored, err = p.has(at.digest)
	}
	if err == nil && !stored {
		_, err = p.file.WriteAt(at.header(p.known.synced), p.known.end)
	}
	if err != nil || stored {
		err = errors.Join(err, p.truncate(p.known.end))
	} else {
		p.note(at)
	}
	return at.digest.String(), at.size, err
}

// Has reports whether an object is stored, so that it can be named after the next
// [Pack.Sync].
func (p *Pack) Has(name string) bool {
	d, err := parseDigest(name)
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	stored, err := p.has(d)
	return stored && err == nil
}

func (p *Pack) has(d digest) (bool, error) {
	s := p.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.packs) == 0 {
		if err := s.refresh(); err != nil {
			return false, err
		}
	}
	at, ok := s.places[d]
	return ok && at.isDurable(), nil
}

// Sync makes the objects durable, of which [hone/journal.Journal.Append] names some in the
// next event. It fails if the file was removed, because its contents would be lost.
func (p *Pack) Sync() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil || p.file == nil || p.known.end == p.known.synced {
		return p.broken
	}
	file := p.store.file(p.run)
	err := p.store.in.CheckRegular(file)
	if err == nil {
		if err = p.store.in.SyncFile(file, p.file); err != nil {
			p.broken = errors.Join(err, p.truncate(p.known.synced)) // what is in the file is unknown
		}
	}
	if err == nil && !p.named {
		err = p.store.in.Sync(p.store.folder)
	}
	if err != nil {
		return fmt.Errorf("store objects: %w", err)
	}
	p.known.synced, p.named = p.known.end, true
	return nil
}

// Close closes the file. The pack can still be used.
func (p *Pack) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		return nil
	}
	err := errors.Join(p.mark(), p.file.Close())
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.file, p.known.writing = nil, false
	return err
}

// mark appends an empty object, whose header says that all before it is durable. Otherwise every
// later process that needs an object of the pack would make it durable once more.
func (p *Pack) mark() error {
	if p.broken != nil || p.known.end != p.known.synced || p.known.end == p.began {
		return p.broken
	}
	at := place{digest: sha256.Sum256(nil), kind: plain}
	if _, err := p.file.WriteAt(at.header(p.known.synced), p.known.end); err != nil {
		return p.truncate(p.known.end) // it only saves time
	}
	p.known.end += int64(headerSize)
	return nil
}

// Discard closes the pack and removes what was stored since it was opened. The store must
// not be used by others meanwhile.
func (p *Pack) Discard() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		return nil
	}
	err := p.truncate(p.began)
	err = errors.Join(err, p.file.Close())
	if p.began == int64(len(packMagic)) {
		err = errors.Join(err, p.store.in.Root.Remove(p.store.file(p.run)))
	}
	p.file, p.known = nil, nil
	p.store.Reset()
	return err
}
