package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
)

// A pack is a file of many objects:
//
//	contents  one after the other, in the order in which they were added
//	index     an entry an object, sorted by digest: SHA-256, offset, length
//	trailer   magic, version, number of objects, length of all contents, and
//	          the SHA-256 of the index and of the trailer up to here
//
// Numbers are of 64 bits, the most significant byte first. The file's name is
// the SHA-256 of the index in hex.
const (
	packsDir     = "packs"
	packSuffix   = ".pack"
	tempSuffix   = ".tmp"
	packMagic    = "HONEPACK"
	packVersion  = 1
	entrySize    = sha256.Size + 8 + 8
	trailerHead  = len(packMagic) + 8 + 8 + 8
	trailerSize  = trailerHead + sha256.Size
	settledAfter = 2 * time.Second // the coarsest times of change that file systems keep
)

type digest [sha256.Size]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

func parseDigest(name string) (d digest, err error) {
	if len(name) != 2*len(d) || strings.Trim(name, "0123456789abcdef") != "" {
		return d, fmt.Errorf("%q names no object", name)
	}
	_, err = hex.Decode(d[:], []byte(name))
	return d, err
}

// place is where an object lies.
type place struct {
	digest       digest
	offset, size int64
	pack         string // the file's name within the folder of packs
}

func (p place) compare(q place) int { return bytes.Compare(p.digest[:], q.digest[:]) }

// encodeIndex makes what stands behind the contents, and the pack's name.
func encodeIndex(places []place, contents int64) (tail []byte, name string) {
	tail = make([]byte, 0, len(places)*entrySize+trailerSize)
	for _, p := range places {
		tail = append(tail, p.digest[:]...)
		tail = binary.BigEndian.AppendUint64(tail, uint64(p.offset))
		tail = binary.BigEndian.AppendUint64(tail, uint64(p.size))
	}
	name = hash(tail) + packSuffix
	tail = append(tail, packMagic...)
	for _, n := range []uint64{packVersion, uint64(len(places)), uint64(contents)} {
		tail = binary.BigEndian.AppendUint64(tail, n)
	}
	sum := sha256.Sum256(tail)
	return append(tail, sum[:]...), name
}

// readIndex reads what encodeIndex made from a file of so many bytes. It takes
// nothing that the file says for true before it is checked against the size.
func readIndex(r io.ReaderAt, size int64) ([]place, error) {
	if size < int64(trailerSize) {
		return nil, errors.New("it is cut off")
	}
	trailer := make([]byte, trailerSize)
	if _, err := r.ReadAt(trailer, size-int64(trailerSize)); err != nil {
		return nil, fmt.Errorf("read its trailer: %w", err)
	}
	if string(trailer[:len(packMagic)]) != packMagic {
		return nil, errors.New("it is cut off, or no pack")
	}
	number := func(i int) uint64 { return binary.BigEndian.Uint64(trailer[len(packMagic)+8*i:]) }
	if v := number(0); v != packVersion {
		return nil, fmt.Errorf("it has format %d, and this hone reads format %d", v, packVersion)
	}
	room := uint64(size) - uint64(trailerSize)
	count, contents := number(1), number(2)
	if count > room/entrySize || contents != room-count*entrySize {
		return nil, errors.New("its length is not what its trailer says")
	}
	index := make([]byte, count*entrySize)
	if _, err := r.ReadAt(index, int64(contents)); err != nil {
		return nil, fmt.Errorf("read its index: %w", err)
	}
	sum := sha256.New()
	sum.Write(index)
	sum.Write(trailer[:trailerHead])
	if [sha256.Size]byte(sum.Sum(nil)) != [sha256.Size]byte(trailer[trailerHead:]) {
		return nil, errors.New("its index was changed since it was written")
	}
	return decodeIndex(index, contents)
}

func decodeIndex(index []byte, contents uint64) ([]place, error) {
	places := make([]place, 0, len(index)/entrySize)
	for e := range slices.Chunk(index, entrySize) {
		offset := binary.BigEndian.Uint64(e[sha256.Size:])
		size := binary.BigEndian.Uint64(e[sha256.Size+8:])
		if offset > contents || size > contents-offset {
			return nil, errors.New("its index leads out of it")
		}
		p := place{digest: digest(e), offset: int64(offset), size: int64(size)}
		if n := len(places); n > 0 && places[n-1].compare(p) >= 0 {
			return nil, errors.New("its index is not sorted")
		}
		places = append(places, p)
	}
	return places, nil
}

// packs is what a process knows of the packs; the zero value knows none.
type packs struct {
	mu      sync.Mutex
	places  []place          // sorted by digest
	read    map[string]bool  // by the pack's file name
	damaged map[string]error // what is wrong with those that cannot be used
	open    map[string]bool  // temporary files that this process writes
	changed time.Time        // the folder's time of change when it was listed
	settled bool             // whether a later change must have another time
}

func (p *packs) isOpen(temp string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open[temp]
}

func (p *packs) setOpen(temp string, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !is {
		delete(p.open, temp)
		return
	}
	if p.open == nil {
		p.open = map[string]bool{}
	}
	p.open[temp] = true
}

func (p *packs) find(d digest) (place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := slices.BinarySearchFunc(p.places, place{digest: d}, place.compare)
	if !ok {
		return place{}, false
	}
	return p.places[i], true
}

// admit takes in a pack's objects, which are sorted.
func (p *packs) admit(places []place, pack string) {
	for i := range places {
		places[i].pack = pack
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.merge(places, pack)
}

// merge takes in sorted objects of some packs.
func (p *packs) merge(more []place, names ...string) {
	if p.read == nil {
		p.read = map[string]bool{}
	}
	for _, n := range names {
		p.read[n] = true
		delete(p.damaged, n)
	}
	if len(p.places) == 0 {
		p.places = slices.Clip(more)
		return
	}
	all := make([]place, 0, len(p.places)+len(more))
	for _, a := range p.places {
		for len(more) > 0 && more[0].compare(a) < 0 {
			all, more = append(all, more[0]), more[1:]
		}
		all = append(all, a)
	}
	p.places = append(all, more...)
}

// damage lists what is wrong with packs that cannot be used, by their names.
func (p *packs) damage() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, err := range p.damaged {
		errs = append(errs, err)
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// refreshPacks reads the packs that are new in the folder. Unless it shall be
// sure, it believes a time of change that is as it was.
func (h *Home) refreshPacks(sure bool) error {
	h.packs.mu.Lock()
	defer h.packs.mu.Unlock()
	p := &h.packs
	info, err := h.root.Stat(packsDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !sure && p.settled && p.changed.Equal(info.ModTime()):
		return nil
	}
	p.changed, p.settled = info.ModTime(), time.Since(info.ModTime()) > settledAfter
	names, err := h.packNames(packSuffix)
	if err != nil {
		return err
	}
	h.readPacks(names)
	return nil
}

// readPacks takes in those of the packs that were not read yet.
func (h *Home) readPacks(names []string) {
	p := &h.packs
	var more []place
	var fresh []string
	damaged := map[string]error{}
	for _, n := range names {
		if p.read[n] {
			continue
		}
		places, err := h.readPack(n)
		if err != nil {
			damaged[n] = fmt.Errorf("%s cannot be used: %w", h.path(packsDir+"/"+n), err)
			continue
		}
		fresh = append(fresh, n)
		more = append(more, places...)
	}
	p.damaged = damaged
	if len(fresh) > 0 {
		slices.SortFunc(more, place.compare)
		p.merge(more, fresh...)
	}
}

func (h *Home) readPack(name string) ([]place, error) {
	f, err := h.openRegular(packsDir + "/" + name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	places, err := readIndex(f, info.Size())
	for i := range places {
		places[i].pack = name
	}
	return places, err
}

// packNames lists the folder's files of a kind, sorted.
func (h *Home) packNames(suffix string) ([]string, error) {
	d, err := h.root.Open(packsDir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, suffix) })
	slices.Sort(names)
	return names, err
}
