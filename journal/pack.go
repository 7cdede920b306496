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
	// packBuffer is how much is kept in memory before it is written.
	packBuffer = 1 << 20
	// looseAtMost is how many objects that fit into the buffer get files of
	// their own. By BenchmarkStore one is stored no slower so, and two are.
	looseAtMost = 1
)

// Pack stores many objects for the price of one fsync. It is made by
// [Home.NewPack] and ends with [Pack.Close], or with [Pack.Discard]. It is not
// for use by several goroutines at once.
type Pack struct {
	home    *Home
	file    *os.File // nil until there is more than the buffer holds
	temp    string   // its name
	written int64    // how much of the file counts
	buf     []byte   // what belongs behind that
	sum     stdhash.Hash
	places  []place
	seen    map[digest]bool
	err     error // why it cannot be finished
	ended   bool
}

// NewPack begins a pack. Only whoever holds the workspace's lock may: what
// packs that were never finished have left is removed.
func (h *Home) NewPack() (*Pack, error) {
	err := h.clearPacks()
	if err == nil {
		err = h.refreshPacks(true)
	}
	if err != nil {
		return nil, fmt.Errorf("begin a pack of objects: %w", err)
	}
	return &Pack{home: h, sum: sha256.New(), seen: map[digest]bool{}}, nil
}

func (h *Home) clearPacks() error {
	err := h.root.Mkdir(packsDir, 0o700)
	switch {
	case err == nil:
		return h.syncDir(".")
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	names, err := h.packNames(tempSuffix)
	for _, n := range names {
		if !h.packs.isOpen(n) {
			// What cannot be removed takes room and does no harm.
			_ = h.root.Remove(packsDir + "/" + n)
		}
	}
	return err
}

// Add reads an object to its end and returns its name, as of [Home.Put], and
// its length in bytes. What is stored already is not stored again. After an
// error of r the pack is as it was before and goes on; after one of the disk
// every further Add and Close fail with it.
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
		d, err = p.take(r)
	}
	if err != nil {
		p.rewind(start)
		return "", 0, fmt.Errorf("store an object: %w", err)
	}
	name, size = d.String(), p.end()-start
	if p.seen[d] || p.home.holds(d, size) {
		p.rewind(start)
		return name, size, nil
	}
	p.seen[d] = true
	p.places = append(p.places, place{digest: d, offset: start, size: size})
	return name, size, nil
}

// take reads r into the buffer, which goes to the file whenever it is full.
func (p *Pack) take(r io.Reader) (d digest, err error) {
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

// rewind forgets what stands behind an offset.
func (p *Pack) rewind(to int64) {
	if to >= p.written {
		p.buf = p.buf[:to-p.written]
		return
	}
	p.written, p.buf = to, p.buf[:0]
}

// flush empties the buffer into the file, which it makes the first time.
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
	p.home.packs.setOpen(p.temp, true)
	p.file, err = p.home.root.OpenFile(packsDir+"/"+p.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		p.home.packs.setOpen(p.temp, false)
	}
	return err
}

// Close makes all objects durable; [Home.Has] and [Home.OpenObject] find them
// from then on and not before. A pack without objects leaves nothing. After an
// error nothing temporary is left, and the objects are not to be relied on.
// Close after Close or Discard is an error that wraps [fs.ErrClosed].
func (p *Pack) Close() error {
	err := p.err
	switch {
	case p.ended:
		err = fs.ErrClosed
	case err != nil || len(p.places) == 0:
	case p.file == nil && len(p.places) <= looseAtMost:
		err = p.scatter()
	default:
		err = p.finish()
	}
	if err = errors.Join(err, p.Discard()); err != nil {
		return fmt.Errorf("store a pack of objects: %w", err)
	}
	return nil
}

// Discard gives the pack up. It may be called after Close, and does nothing
// then.
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
	p.home.packs.setOpen(p.temp, false)
	return err
}

// scatter stores the objects one by one: few do not need a file that every
// later process has to read before it can find anything.
func (p *Pack) scatter() error {
	for _, o := range p.places {
		if _, err := p.home.Put(p.buf[o.offset : o.offset+o.size]); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the index and the trailer and gives the file its name.
func (p *Pack) finish() error {
	if err := p.flush(); err != nil {
		return err
	}
	slices.SortFunc(p.places, place.compare)
	tail, name := encodeIndex(p.places, p.written)
	_, err := p.file.WriteAt(tail, p.written)
	if err == nil {
		// Something long that was not kept may have stood here.
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
	p.home.packs.setOpen(p.temp, false)
	if err := p.home.syncDir(packsDir); err != nil {
		return err
	}
	p.home.packs.admit(p.places, name)
	return nil
}
