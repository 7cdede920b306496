package objects

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"os"
)

// A pack begins with a magic. One record a stored object follows, and nothing else:
//
//	mark      recordMark
//	digest    SHA-256 of the object
//	kind      how its contents are stored
//	stored    length of the contents
//	size      length of the object
//	synced    how much of the pack was durable when the record was written
//	checksum  CRC-32C of the header up to here
//	contents
//
// Numbers have 64 bits, most significant byte first. A power failure can take or garble only
// what is not durable. So a process relies on a record that ends after the last mark of what was
// only in the pack of its own run, and reads it before; it stores what other packs have there again.
const (
	packSuffix   = ".pack"
	packMagic    = "HONEPAK3"
	recordMark   = "hone"
	headerSize   = len(recordMark) + sha256.Size + 1 + 3*8 + crc32.Size
	checksumFrom = headerSize - crc32.Size
)

type kind byte

const (
	plain      kind = iota
	compressed      // with zstd
	base            // as well; the dictionary of the records of kind next up to the next base
	next            // with zstd and that dictionary
	kinds
)

// place is where an object is stored.
type place struct {
	digest digest
	kind   kind
	pack   *packFile
	base   *place // of kind next
	offset int64  // of the contents
	stored int64
	size   int64
}

func (at place) isDurable() bool { return at.pack.writing || at.offset+at.stored <= at.pack.synced }

// packFile is what is known of a pack.
type packFile struct {
	run     string
	end     int64  // of the last intact record; 0 if not even the magic was read
	synced  int64  // how much of it is certainly durable
	base    *place // the last one
	writing bool   // this process appends to it
	damage  error  // why it ends there
}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errTorn    = errors.New("it is damaged or incomplete")
)

func (at place) header(synced int64) []byte {
	b := make([]byte, 0, int64(headerSize)+at.stored)
	b = append(append(append(b, recordMark...), at.digest[:]...), byte(at.kind))
	for _, n := range []int64{at.stored, at.size, synced} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func parseHeader(b []byte) (at place, synced int64, ok bool) {
	if len(b) < headerSize || crc32.Checksum(b[:checksumFrom], castagnoli) != binary.BigEndian.Uint32(b[checksumFrom:]) {
		return at, 0, false
	}
	number := func(i int) uint64 { return binary.BigEndian.Uint64(b[len(recordMark)+sha256.Size+1+8*i:]) }
	at.digest, at.kind = digest(b[len(recordMark):]), kind(b[len(recordMark)+sha256.Size])
	at.stored, at.size, synced = int64(number(0)), int64(number(1)), int64(number(2))
	return at, synced, string(b[:len(recordMark)]) == recordMark && at.kind < kinds && max(number(0), number(1), number(2)) <= math.MaxInt64
}

// readHeaders passes the records on that follow what is known of a pack. The error says that
// something else follows them.
func (p *packFile) readHeaders(f *os.File, found func(place)) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	head := make([]byte, headerSize)
	if p.end == 0 {
		switch n, err := f.ReadAt(head[:len(packMagic)], 0); {
		case err != nil && err != io.EOF:
			return err
		case string(head[:n]) == packMagic:
		case err == io.EOF && bytes.HasPrefix([]byte(packMagic), head[:n]):
			return errTorn
		default:
			return errors.New("it is not a pack of this version")
		}
		p.end, p.synced = int64(len(packMagic)), int64(len(packMagic))
	}
	for p.end < info.Size() {
		n, err := f.ReadAt(head, p.end)
		if err != nil && err != io.EOF {
			return err
		}
		at, synced, ok := parseHeader(head[:n])
		at.pack, at.offset = p, p.end+int64(headerSize)
		if !ok || at.stored > info.Size()-at.offset || at.kind == next && p.base == nil {
			return errTorn
		}
		switch at.kind {
		case base:
			p.base = &at
		case next:
			at.base = p.base
		}
		p.end, p.synced = at.offset+at.stored, max(p.synced, min(synced, p.end))
		found(at)
	}
	return nil
}

// settle makes durable what a killed process left of a run's pack, cuts off what a power
// failure garbled, and returns what is known of the pack. No process is writing it.
func (s *Store) settle(run string) (*packFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(); err != nil {
		return nil, err
	}
	p := s.packs[run]
	if p.damage != nil && !errors.Is(p.damage, errTorn) || p.damage == nil && p.end == p.synced {
		return p, p.damage
	}
	f, err := s.in.Root.OpenFile(s.file(run), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	end, err := s.intact(f, run, p.synced)
	if err != nil {
		return nil, err
	}
	if durable, err := wasDurable(f, end); err != nil || durable {
		return nil, cmp.Or(err, p.damage, fmt.Errorf("%s cannot be used: %w", s.in.At(s.file(run)), errTorn))
	}
	if end == 0 {
		end = int64(len(packMagic))
		if _, err := f.WriteAt([]byte(packMagic), 0); err != nil {
			return nil, err
		}
	}
	if err := cmp.Or(f.Truncate(end), s.in.SyncFile(s.file(run), f), s.in.Sync(s.folder)); err != nil {
		return nil, err
	}
	maps.DeleteFunc(s.places, func(_ digest, at place) bool { return at.pack == p })
	*p = packFile{run: run}
	p.damage = s.scan(p)
	p.synced = p.end
	return p, p.damage
}

// intact returns where the intact records end, of which those up to synced are known to be.
func (s *Store) intact(f *os.File, run string, synced int64) (end int64, err error) {
	var tail []place
	p := &packFile{run: run}
	if err := p.readHeaders(f, func(at place) {
		if at.offset+at.stored > synced {
			tail = append(tail, at)
		}
	}); err != nil && err != errTorn {
		return 0, err
	}
	for _, at := range tail {
		if err := s.verify(at); errors.As(err, new(*changedError)) {
			return at.offset - int64(headerSize), nil
		} else if err != nil {
			return 0, err
		}
	}
	return p.end, nil
}

// wasDurable reports whether a record after the end of the intact ones says that more than
// these was durable. Then no power failure has damaged the pack.
func wasDurable(f io.ReaderAt, end int64) (bool, error) {
	const part = 1 << 20
	b := make([]byte, part+headerSize)
	for from := end; ; from += part {
		n, err := f.ReadAt(b, from)
		for i := 0; i < n; i++ {
			mark := bytes.Index(b[i:n], []byte(recordMark))
			if mark < 0 {
				break
			}
			i += mark
			if _, synced, ok := parseHeader(b[i:n]); ok && synced > end {
				return true, nil
			}
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}
