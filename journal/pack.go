package journal

import (
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
	// packBuffer is how many bytes are kept in memory before they are written.
	packBuffer = 1 << 20
	// maxLoose is how many objects, if they fit into the buffer, get a file of
	// their own. BenchmarkStore shows that one object is stored no slower this
	// way, but two are.
	maxLoose = 1
)

// Pack stores many objects with a single fsync. [Home.NewPack] creates it;
// [Pack.Close] or [Pack.Discard] ends it. It is not for use by several
// goroutines at once.
type Pack struct {
	home    *Home
	file    *os.File // nil until the buffer overflows
	temp    string   // name of file
	written int64    // valid length of file
	buf     []byte   // what follows that
	sum     stdhash.Hash
	places  []place
	seen    map[digest]bool
	err     error // why it cannot be completed
	ended   bool
}

// NewPack starts a pack. The caller must hold the workspace's lock, because
// NewPack removes unfinished packs of other processes.
func (h *Home) NewPack() (*Pack, error) {
	err := h.removeStalePacks()
	if err == nil {
		err = h.refreshPacks(true)
	}
	if err != nil {
		return nil, fmt.Errorf("start a pack of objects: %w", err)
	}
	return &Pack{home: h, sum: sha256.New(), seen: map[digest]bool{}}, nil
}

func (h *Home) removeStalePacks() error {
	err := h.root.Mkdir(packsDir, 0o700)
	switch {
	case err == nil:
		return h.syncDir(".")
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	names, err := h.packNames(tempSuffix)
	for _, n := range names {
		if !h.packs.isWriting(n) {
			// A file that cannot be removed only wastes space.
			_ = h.root.Remove(packsDir + "/" + n)
		}
	}
	return err
}

// Add reads an object to its end and returns its name, as [Home.Put] does, and
// its length in bytes. It does not store an object twice. After an error of r
// the pack is unchanged and usable; after a disk error every later Add and
// Close fails.
func (p *Pack) Add(r io.Reader) (name string, size int64, err error) {
	switch {
	case p.ended:
		err = fs.ErrClosed
	case p.err != nil:
		err = p.err
	}
	start := p.end()
	var d digest
	if err == nil {
		d, err = p.readIntoBuffer(r)
	}
	if err != nil {
		p.truncate(start)
		return "", 0, fmt.Errorf("store an object: %w", err)
	}
	name, size = d.String(), p.end()-start
	if p.seen[d] || p.home.isStored(d, size) {
		p.truncate(start)
		return name, size, nil
	}
	p.seen[d] = true
	p.places = append(p.places, place{digest: d, offset: start, size: size})
	return name, size, nil
}

// readIntoBuffer reads r into the buffer, which it flushes to the file whenever
// it is full.
func (p *Pack) readIntoBuffer(r io.Reader) (d digest, err error) {
	if p.buf == nil {
		p.buf = make([]byte, 0, packBuffer)
	}
	p.sum.Reset()
	for {
		if len(p.buf) == cap(p.buf) {
			if p.err = p.flush(); p.err != nil {
				return d, p.err
			}
		}
		n, err := r.Read(p.buf[len(p.buf):cap(p.buf)])
		more := p.buf[len(p.buf) : len(p.buf)+n]
		p.sum.Write(more)
		p.buf = p.buf[:len(p.buf)+n]
		switch {
		case err == io.EOF:
			p.sum.Sum(d[:0])
			return d, nil
		case err != nil:
			return d, err
		}
	}
}

func (p *Pack) end() int64 { return p.written + int64(len(p.buf)) }

// truncate discards everything from an offset on.
func (p *Pack) truncate(to int64) {
	if to >= p.written {
		p.buf = p.buf[:to-p.written]
		return
	}
	p.written, p.buf = to, p.buf[:0]
}

// flush writes the buffer to the file, which it creates the first time.
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
	p.home.packs.setWriting(p.temp, true)
	p.file, err = p.home.root.OpenFile(packsDir+"/"+p.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		p.home.packs.setWriting(p.temp, false)
	}
	return err
}

// Close makes all objects durable. [Home.Has] and [Home.OpenObject] find them
// afterwards, not before. A pack without objects leaves no file. After an error
// no temporary file is left, and the objects may not be stored. A second Close,
// or Close after Discard, returns an error that wraps [fs.ErrClosed].
func (p *Pack) Close() error {
	err := p.err
	switch {
	case p.ended:
		err = fs.ErrClosed
	case err != nil || len(p.places) == 0:
	case p.file == nil && len(p.places) <= maxLoose:
		err = p.storeLoose()
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
	p.ended, p.buf = true, nil
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	if errors.Is(err, fs.ErrClosed) {
		err = nil
	}
	p.file = nil
	err = errors.Join(err, p.home.root.Remove(packsDir+"/"+p.temp))
	p.home.packs.setWriting(p.temp, false)
	return err
}

// storeLoose stores each object in a file of its own, because every later
// process must read the index of a pack before it can find anything.
func (p *Pack) storeLoose() error {
	for _, o := range p.places {
		if _, err := p.home.Put(p.buf[o.offset : o.offset+o.size]); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the index and the trailer and renames the file.
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
		err = p.file.Sync()
	}
	if err = errors.Join(err, p.file.Close()); err != nil {
		return err
	}
	if err := p.home.root.Rename(packsDir+"/"+p.temp, packsDir+"/"+name); err != nil {
		return err
	}
	p.file = nil
	p.home.packs.setWriting(p.temp, false)
	if err := p.home.syncDir(packsDir); err != nil {
		return err
	}
	p.home.packs.add(p.places, name)
	return nil
}
