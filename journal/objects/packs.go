package objects

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// A pack is a file that holds many objects:
//
//	contents  one after another, in the order they were added, each as it is or as
//	          one zstd frame
//	index     one entry per object, sorted by digest: SHA-256, offset, stored length,
//	          length; the object is compressed if the lengths differ
//	trailer   magic, version, number of objects, total length of the contents, and
//	          the SHA-256 of the index and the trailer up to here
//
// Numbers have 64 bits, most significant byte first. The file's name is the
// SHA-256 of the index in hex.
const (
	packsDir       = "packs"
	packSuffix     = ".pack"
	tempSuffix     = ".tmp"
	packMagic      = "HONEPACK"
	packVersion    = 2
	entrySize      = sha256.Size + 8 + 8 + 8
	trailerHead    = len(packMagic) + 8 + 8 + 8
	trailerSize    = trailerHead + sha256.Size
	timeResolution = 2 * time.Second // the coarsest time stamps of file systems
)

type digest [sha256.Size]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

func parseDigest(name string) (d digest, err error) {
	if len(name) != 2*len(d) || strings.Trim(name, "0123456789abcdef") != "" {
		return d, fmt.Errorf("%q is not the name of an object", name)
	}
	_, err = hex.Decode(d[:], []byte(name))
	return d, err
}

type place struct {
	digest       digest
	offset, size int64
	stored       int64  // bytes in the pack; less than size if it is compressed
	pack         string // name of the file in the directory of packs
}

func (p place) compare(q place) int { return bytes.Compare(p.digest[:], q.digest[:]) }

func encodeIndex(places []place, contents int64) (tail []byte, name string) {
	tail = make([]byte, 0, len(places)*entrySize+trailerSize)
	for _, p := range places {
		tail = append(tail, p.digest[:]...)
		for _, n := range []int64{p.offset, p.stored, p.size} {
			tail = binary.BigEndian.AppendUint64(tail, uint64(n))
		}
	}
	name = hash(tail) + packSuffix
	tail = append(tail, packMagic...)
	for _, n := range []uint64{packVersion, uint64(len(places)), uint64(contents)} {
		tail = binary.BigEndian.AppendUint64(tail, n)
	}
	sum := sha256.Sum256(tail)
	return append(tail, sum[:]...), name
}

// Everything that the file says is checked against the size and the checksum before it is used.
func readIndex(r io.ReaderAt, size int64) ([]place, error) {
	if size < int64(trailerSize) {
		return nil, errors.New("it is truncated")
	}
	trailer := make([]byte, trailerSize)
	if _, err := r.ReadAt(trailer, size-int64(trailerSize)); err != nil {
		return nil, fmt.Errorf("read its trailer: %w", err)
	}
	if string(trailer[:len(packMagic)]) != packMagic {
		return nil, errors.New("it is truncated, or not a pack")
	}
	number := func(i int) uint64 { return binary.BigEndian.Uint64(trailer[len(packMagic)+8*i:]) }
	if v := number(0); v != packVersion {
		return nil, fmt.Errorf("it has format %d, but this hone reads format %d", v, packVersion)
	}
	room := uint64(size) - uint64(trailerSize)
	count, contents := number(1), number(2)
	if count > room/entrySize || contents != room-count*entrySize {
		return nil, errors.New("its length differs from its trailer")
	}
	index := make([]byte, count*entrySize)
	if _, err := r.ReadAt(index, int64(contents)); err != nil {
		return nil, fmt.Errorf("read its index: %w", err)
	}
	sum := sha256.New()
	sum.Write(index)
	sum.Write(trailer[:trailerHead])
	if [sha256.Size]byte(sum.Sum(nil)) != [sha256.Size]byte(trailer[trailerHead:]) {
		return nil, errors.New("its index was changed after it was written")
	}
	return decodeIndex(index, contents)
}

func decodeIndex(index []byte, contents uint64) ([]place, error) {
	places := make([]place, 0, len(index)/entrySize)
	for e := range slices.Chunk(index, entrySize) {
		offset := binary.BigEndian.Uint64(e[sha256.Size:])
		stored := binary.BigEndian.Uint64(e[sha256.Size+8:])
		size := binary.BigEndian.Uint64(e[sha256.Size+16:])
		switch {
		case offset > contents || stored > contents-offset:
			return nil, errors.New("its index points outside the file")
		case stored > size || size > math.MaxInt64:
			return nil, errors.New("its index has an impossible length")
		}
		p := place{digest: digest(e), offset: int64(offset), stored: int64(stored), size: int64(size)}
		if n := len(places); n > 0 && places[n-1].compare(p) >= 0 {
			return nil, errors.New("its index is not sorted")
		}
		places = append(places, p)
	}
	return places, nil
}

// packs holds what this process knows of the packs. The zero value knows none.
type packs struct {
	mu           sync.Mutex
	places       []place          // in packs, sorted by digest
	logged       map[digest]place // in logs
	logs         map[string]int64 // how much of each log is known, by file name
	torn         map[string]error // what follows the intact objects of logs, by file name
	loaded       map[string]bool  // by file name
	damaged      map[string]error // why packs cannot be used, by file name
	writing      map[string]bool  // temporary files that this process is writing
	changed      time.Time        // modification time of the directory when it was listed
	listingFinal bool             // whether any later change must alter that time
}

func (p *packs) isWriting(temp string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writing[temp]
}

func (p *packs) setWriting(temp string, writing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !writing {
		delete(p.writing, temp)
		return
	}
	if p.writing == nil {
		p.writing = map[string]bool{}
	}
	p.writing[temp] = true
}

func (p *packs) find(d digest) (place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.logged[d]; ok {
		return at, true
	}
	i, ok := slices.BinarySearchFunc(p.places, place{digest: d}, place.compare)
	if !ok {
		return place{}, false
	}
	return p.places[i], true
}

// The objects are sorted.
func (p *packs) add(places []place, pack string) {
	for i := range places {
		places[i].pack = pack
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.merge(places, pack)
}

func (p *packs) merge(more []place, names ...string) {
	if p.loaded == nil {
		p.loaded = map[string]bool{}
	}
	for _, n := range names {
		p.loaded[n] = true
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

// addLogged adds objects of a log. known is how many bytes of it are known now.
func (p *packs) addLogged(places []place, log string, known int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mergeLogged(places, log, known)
}

func (p *packs) mergeLogged(places []place, log string, known int64) {
	if p.logs == nil {
		p.logs, p.logged, p.torn = map[string]int64{}, map[digest]place{}, map[string]error{}
	}
	p.logs[log] = known
	for _, at := range places {
		p.logged[at.digest] = at
	}
}

func (p *packs) byFile() map[string][]place {
	p.mu.Lock()
	defer p.mu.Unlock()
	files := map[string][]place{}
	for log := range p.logs {
		files[log] = nil
	}
	for _, at := range p.places {
		files[at.pack] = append(files[at.pack], at)
	}
	for _, at := range p.logged {
		files[at.pack] = append(files[at.pack], at)
	}
	return files
}

// The pack is not loaded again.
func (p *packs) forget(pack string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.places = slices.DeleteFunc(slices.Clone(p.places), func(at place) bool { return at.pack == pack })
	maps.DeleteFunc(p.logged, func(_ digest, at place) bool { return at.pack == pack })
	delete(p.torn, pack)
}

func (p *packs) noteDeleted(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.logs, name)
}

// With torn, the logs that have no intact end count too.
func (p *packs) damageErrors(torn bool) []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := slices.Collect(maps.Values(p.damaged))
	if torn {
		errs = slices.AppendSeq(errs, maps.Values(p.torn))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// Unless force is set, it does nothing if the directory's modification time proves that there are no new packs.
func (s *Store) refreshPacks(force bool) error {
	s.packs.mu.Lock()
	defer s.packs.mu.Unlock()
	p := &s.packs
	info, err := s.in.Root.Stat(packsDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !force && p.listingFinal && p.changed.Equal(info.ModTime()):
		return nil
	}
	p.changed, p.listingFinal = info.ModTime(), time.Since(info.ModTime()) > timeResolution
	names, err := s.packNames(packSuffix)
	if err != nil {
		return err
	}
	s.readPacks(names)
	logs, err := s.packNames(logSuffix)
	for _, n := range logs {
		if _, known := p.logs[n]; !known {
			s.readRest(n)
		}
	}
	return err
}

// What is appended to a log, unlike the name of a new pack, leaves the directory as it was.
func (s *Store) refreshLogs() {
	s.packs.mu.Lock()
	defer s.packs.mu.Unlock()
	for _, n := range slices.Collect(maps.Keys(s.packs.logs)) {
		s.readRest(n)
	}
}

// The caller holds the mutex.
func (s *Store) readRest(log string) {
	p := &s.packs
	places, known, err := s.readLog(log, p.logs[log])
	if err != nil {
		err = fmt.Errorf("%s cannot be used: %w", s.in.At(packsDir+"/"+log), err)
	}
	p.mergeLogged(places, log, known)
	delete(p.torn, log)
	if err != nil {
		p.torn[log] = err
	}
}

func (s *Store) readPacks(names []string) {
	p := &s.packs
	var more []place
	var fresh []string
	damaged := map[string]error{}
	for _, n := range names {
		if p.loaded[n] {
			continue
		}
		places, err := s.readPack(n)
		if err != nil {
			damaged[n] = fmt.Errorf("%s cannot be used: %w", s.in.At(packsDir+"/"+n), err)
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

func (s *Store) readPack(name string) ([]place, error) {
	f, err := s.in.Open(packsDir + "/" + name)
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

func (s *Store) packNames(suffix string) ([]string, error) {
	d, err := s.in.Root.Open(packsDir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, suffix) })
	slices.Sort(names)
	return names, err
}
