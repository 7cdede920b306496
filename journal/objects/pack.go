package objects

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	stdhash "hash"
	"io"
	"io/fs"
	"os"
	"slices"
)

const (
	// packBuffer is how many bytes are kept in memory before they are written, and how
	// many bytes of an object are read before it is appended.
	packBuffer = 1 << 20
)

// Pack stores many objects together. A small one is appended to the log. [Store.NewPack] creates it;
// [Pack.Close] or [Pack.Discard] ends it. It is not for use by several
// goroutines at once.
type Pack struct {
	store   *Store
	file    *os.File        // nil until the buffer overflows
	temp    string          // name of file
	written int64           // valid length of file
	buf     []byte          // what follows that
	block   bytes.Buffer    // the start of the object that is added
	loose   map[string]bool // the directories that hold objects in files of their own
	sum     stdhash.Hash
	places  []place
	seen    map[digest]bool
	err     error // why it cannot be completed
	ended   bool
}

// NewPack starts a pack. The caller must hold the workspace's lock, because
// NewPack removes unfinished packs of other processes.
func (s *Store) NewPack() (*Pack, error) {
	err := s.removeStalePacks()
	if err == nil {
		err = s.refreshPacks(true)
	}
	if err != nil {
		return nil, fmt.Errorf("start a pack of objects: %w", err)
	}
	loose, err := s.looseDirs()
	if err != nil {
		return nil, fmt.Errorf("start a pack of objects: %w", err)
	}
	return &Pack{store: s, loose: loose, sum: sha256.New(), seen: map[digest]bool{}}, nil
}

// An object is looked up only if its directory is one of these, which it rarely is.
func (s *Store) looseDirs() (map[string]bool, error) {
	d, err := s.in.Root.Open(objectsDir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	dirs := map[string]bool{}
	for _, n := range names {
		dirs[n] = true
	}
	return dirs, err
}

func (s *Store) removeStalePacks() error {
	if err := s.in.MakeDurable(packsDir); err != nil {
		return err
	}
	names, err := s.packNames(tempSuffix)
	for _, n := range names {
		if !s.packs.isWriting(n) {
			// A file that cannot be removed only wastes space.
			_ = s.in.Root.Remove(packsDir + "/" + n)
		}
	}
	return err
}

// Add reads an object to its end and returns its name, as [Store.Put] does, and
// its length in bytes. It does not store an object twice, and compresses it if that
// saves space. After an error of r the pack is unchanged and usable; after a disk error
// every later Add and Close fails.
func (p *Pack) Add(r io.Reader) (name string, size int64, err error) {
	switch {
	case p.ended:
		err = fs.ErrClosed
	case p.err != nil:
		err = p.err
	}
	start := p.end()
	var o place
	fresh := false
	if err == nil {
		o, fresh, err = p.appendObject(r)
	}
	if err != nil || !fresh {
		p.truncate(start)
	}
	if err != nil {
		return "", 0, fmt.Errorf("store an object: %w", err)
	}
	if fresh {
		o.offset, o.stored = start, p.end()-start
		p.seen[o.digest] = true
		p.places = append(p.places, o)
	}
	return o.digest.String(), o.size, nil
}

// fresh is false if the object is already stored; the caller then removes what was appended.
func (p *Pack) appendObject(r io.Reader) (o place, fresh bool, err error) {
	p.sum.Reset()
	p.block.Reset()
	o.size, err = io.CopyN(&p.block, r, packBuffer)
	start := p.block.Bytes()
	p.sum.Write(start)
	switch err {
	case nil:
		var rest int64
		rest, err = p.appendLong(start, io.TeeReader(r, p.sum))
		o.size += rest
		p.sum.Sum(o.digest[:0])
		return o, err == nil && !p.isStored(o), err
	case io.EOF:
		p.sum.Sum(o.digest[:0])
		if p.isStored(o) {
			return o, false, nil
		}
		_, err = appender{p}.Write(p.store.smallest(start))
	}
	return o, true, err
}

// Has reports whether this pack has an object of a length, or the store had it when the
// pack was started. Unlike [Store.Has] it does not look for what was stored since.
func (p *Pack) Has(name string, size int64) bool {
	d, err := parseDigest(name)
	return err == nil && p.isStored(place{digest: d, size: size})
}

// A file of another length than the object does not count.
func (p *Pack) isStored(o place) bool {
	if p.seen[o.digest] {
		return true
	}
	if _, ok := p.store.reuse(o.digest); ok {
		return true
	}
	name := o.digest.String()
	if !p.loose[name[:2]] {
		return false
	}
	info, err := p.store.in.Root.Lstat(objectFile(name))
	return err == nil && info.Mode().IsRegular() && info.Size() == o.size || p.store.hasFile(name, compressedSuffix)
}

// It returns the length of the rest, and compresses the object if that saves space in the first block, which is more than a
// frame of any length adds.
func (p *Pack) appendLong(start []byte, rest io.Reader) (int64, error) {
	to := appender{p}
	if p.store.codec.compress(start) == nil {
		if _, err := to.Write(start); err != nil {
			return 0, err
		}
		return io.CopyBuffer(to, rest, start)
	}
	e := newEncoder()
	e.Reset(to)
	_, err := e.Write(start)
	n := int64(0)
	if err == nil {
		n, err = io.Copy(e, rest)
	}
	return n, errors.Join(err, e.Close())
}

type appender struct{ pack *Pack }

func (a appender) Write(b []byte) (int, error) {
	p, n := a.pack, len(b)
	for len(b) > 0 {
		if len(p.buf) == packBuffer {
			if p.err = p.flush(); p.err != nil {
				return n - len(b), p.err
			}
		}
		room := min(len(b), packBuffer-len(p.buf))
		p.buf, b = append(p.buf, b[:room]...), b[room:]
	}
	return n, nil
}

func (p *Pack) end() int64 { return p.written + int64(len(p.buf)) }

func (p *Pack) truncate(to int64) {
	if to >= p.written {
		p.buf = p.buf[:to-p.written]
		return
	}
	p.written, p.buf = to, p.buf[:0]
}

func (p *Pack) flush() error {
	if p.file == nil {
		if err := p.create(); err != nil {
			return err
		}
	}
	n, err := p.file.WriteAt(p.buf, p.written)
	if err != nil {
		return err
	}
	p.written += int64(n)
	p.buf = p.buf[:0]
	return nil
}

func (p *Pack) create() (err error) {
	p.temp = rand.Text() + tempSuffix
	p.store.packs.setWriting(p.temp, true)
	p.file, err = p.store.in.Root.OpenFile(packsDir+"/"+p.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		p.store.packs.setWriting(p.temp, false)
	}
	return err
}

// Close stores all objects, which are durable after the next [Store.Sync]. [Store.Has]
// and [Store.OpenObject] find them afterwards, not before. A pack without objects leaves no file. After an error
// no temporary file is left, and the objects may not be stored. A second Close,
// or Close after Discard, returns an error that wraps [fs.ErrClosed].
func (p *Pack) Close() error {
	err := p.err
	switch {
	case p.ended:
		err = fs.ErrClosed
	case err != nil || len(p.places) == 0:
	case p.file == nil && len(p.buf) <= p.store.small:
		err = p.store.appendLog(p.places, p.buf)
	default:
		err = p.finish()
	}
	if err = errors.Join(err, p.Discard()); err != nil {
		return fmt.Errorf("store a pack of objects: %w", err)
	}
	return nil
}

// Discard abandons the pack. After Close it does nothing.
func (p *Pack) Discard() error {
	p.ended, p.buf, p.block = true, nil, bytes.Buffer{}
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	if errors.Is(err, fs.ErrClosed) {
		err = nil
	}
	p.file = nil
	err = errors.Join(err, p.store.in.Root.Remove(packsDir+"/"+p.temp))
	p.store.packs.setWriting(p.temp, false)
	return err
}

func (p *Pack) finish() error {
	if err := p.flush(); err != nil {
		return err
	}
	slices.SortFunc(p.places, place.compare)
	tail, name := encodeIndex(p.places, p.written)
	_, err := p.file.WriteAt(tail, p.written)
	if err == nil {
		// A longer object that was discarded may have been here.
		err = p.file.Truncate(p.written + int64(len(tail)))
	}
	if err == nil {
		err = p.store.in.SyncFile(packsDir+"/"+name, p.file)
	}
	if err = errors.Join(err, p.file.Close()); err != nil {
		return err
	}
	if err := p.store.in.Root.Rename(packsDir+"/"+p.temp, packsDir+"/"+name); err != nil {
		return err
	}
	p.file = nil
	p.store.packs.setWriting(p.temp, false)
	if err := p.store.in.Sync(packsDir); err != nil {
		return err
	}
	p.store.packs.add(p.places, name)
	return nil
}
