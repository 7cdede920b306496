package objects

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"strings"
	"sync"
)

// A log is a file of the packs directory to which one process appends small objects. It
// begins with a magic, and each object follows its header:
//
//	digest    SHA-256 of the object
//	lengths   stored length, length; the object is compressed if they differ
//	checksum  CRC-32C of the header up to here and of what is stored
//
// Numbers are as in a pack. What a power failure left of a log ends with its last
// intact object. No process appends to the log of another.
const (
	logSuffix    = ".log"
	logMagic     = "HONELOG1"
	logHeader    = sha256.Size + 8 + 8 + crc32.Size
	checksumFrom = logHeader - crc32.Size
	// maxLogged is the maximum size of an object, or of the objects of a pack, that are
	// appended to the log. Larger ones get a file of their own, which keeps logs short.
	maxLogged = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writtenLog is the log that this process appends to. The zero value has no file yet.
type writtenLog struct {
	mu     sync.Mutex
	name   string
	file   *os.File // nil before the first object
	end    int64    // of the last object
	synced int64    // how much of it is durable
	named  bool     // whether its name is durable
	err    error    // why it can no longer be used; nil if it can
	// reused are the logs of other processes with objects that this process did not store
	// again: false until it has synced them.
	reused map[string]bool
}

// appendLog appends objects to the log. places have the lengths of what follows each
// other in contents; appendLog sets the rest.
func (s *Store) appendLog(places []place, contents []byte) error {
	l := &s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if l.file == nil {
		if err := s.createLog(); err != nil {
			return err
		}
	}
	b := make([]byte, 0, len(contents)+len(places)*logHeader)
	for i := range places {
		p, head := &places[i], len(b)
		b = append(b, p.digest[:]...)
		b = binary.BigEndian.AppendUint64(b, uint64(p.stored))
		b = binary.BigEndian.AppendUint64(b, uint64(p.size))
		sum := checksum(b[head:], contents[:p.stored])
		b = binary.BigEndian.AppendUint32(b, sum)
		p.pack, p.offset = l.name, l.end+int64(len(b))
		b, contents = append(b, contents[:p.stored]...), contents[p.stored:]
	}
	if _, err := l.file.WriteAt(b, l.end); err != nil {
		return errors.Join(err, l.truncate(l.end))
	}
	l.end += int64(len(b))
	s.packs.addLogged(places, l.name, l.end)
	return nil
}

func checksum(head, contents []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, contents)
}

func (l *writtenLog) truncate(end int64) error {
	if err := l.file.Truncate(end); err != nil {
		l.err = fmt.Errorf("%s cannot be used: %w", l.name, err)
	}
	return l.err
}

// The next Sync makes its name durable.
func (s *Store) createLog() (err error) {
	l := &s.log
	name := rand.Text() + logSuffix
	f, err := s.in.Root.OpenFile(packsDir+"/"+name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(logMagic); err != nil {
		return errors.Join(err, f.Close(), s.in.Root.Remove(packsDir+"/"+name))
	}
	l.name, l.file, l.end, l.synced, l.named = name, f, int64(len(logMagic)), 0, false
	return nil
}

// Sync makes all objects durable. [hone/journal.Journal.Append] calls it before it writes
// an event, so that an event only names what is durable.
func (s *Store) Sync() error {
	l := &s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.err
	for name, synced := range l.reused {
		if err == nil && !synced {
			err = s.syncOther(name)
			l.reused[name] = err == nil
		}
	}
	if err == nil && l.end > l.synced {
		if err = s.syncLog(); err != nil {
			l.err = errors.Join(err, l.truncate(l.synced)) // what is in the file is unknown
		}
	}
	if err != nil {
		return fmt.Errorf("store objects: %w", err)
	}
	return nil
}

// It fails if the file was removed, because its contents would be lost.
func (s *Store) syncLog() error {
	l := &s.log
	if err := s.in.CheckRegular(packsDir + "/" + l.name); err != nil {
		return err
	}
	if err := s.in.SyncFile(packsDir+"/"+l.name, l.file); err != nil {
		return err
	}
	if !l.named {
		if err := s.in.Sync(packsDir); err != nil {
			return err
		}
	}
	l.synced, l.named = l.end, true
	return nil
}

// The other process may have been killed before it did.
func (s *Store) syncOther(name string) error {
	file := packsDir + "/" + name
	if err := s.in.CheckRegular(file); err != nil {
		return err
	}
	f, err := s.in.Root.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(s.in.SyncFile(file, f), f.Close(), s.in.Sync(packsDir))
}

// An object that is in a log or a pack need not be stored again; the next Sync makes it durable.
func (s *Store) reuse(d digest) (place, bool) {
	p, ok := s.packs.find(d)
	if ok && p.isLogged() {
		l := &s.log
		l.mu.Lock()
		defer l.mu.Unlock()
		if p.pack != l.name && !l.reused[p.pack] {
			if l.reused == nil {
				l.reused = map[string]bool{}
			}
			l.reused[p.pack] = false
		}
	}
	return p, ok
}

func (p place) isLogged() bool { return strings.HasSuffix(p.pack, logSuffix) }

// Close ends the log. The store can still be used.
func (s *Store) Close() error {
	l := &s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file, l.name, l.end, l.synced = nil, "", 0, 0
	return err
}

// errTorn says that a log has bytes after its last intact object.
var errTorn = errors.New("it is damaged or incomplete")

// readLog returns the intact objects of a log from an offset on, and where they end. If
// anything follows them, it also returns an error.
func (s *Store) readLog(name string, from int64) (places []place, end int64, err error) {
	f, err := s.in.Open(packsDir + "/" + name)
	if err != nil {
		return nil, from, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(io.NewSectionReader(f, from, math.MaxInt64-from), maxLogged)
	if from == 0 {
		magic := make([]byte, len(logMagic))
		if _, err := io.ReadFull(r, magic); err != nil || string(magic) != logMagic {
			return nil, 0, errTorn
		}
		from = int64(len(logMagic))
	}
	buf := make([]byte, logHeader+maxLogged)
	for {
		p, err := readLogged(r, buf)
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return places, from, err
		}
		p.pack, p.offset = name, from+logHeader
		places, from = append(places, p), p.offset+p.stored
	}
}

func readLogged(r io.Reader, buf []byte) (p place, err error) {
	head := buf[:logHeader]
	if _, err := io.ReadFull(r, head); err == io.EOF {
		return p, err
	} else if err != nil {
		return p, errTorn
	}
	p.digest = digest(head)
	stored, size := binary.BigEndian.Uint64(head[sha256.Size:]), binary.BigEndian.Uint64(head[sha256.Size+8:])
	if stored > maxLogged || stored > size || size > math.MaxInt64 {
		return p, errTorn
	}
	p.stored, p.size = int64(stored), int64(size)
	contents := buf[logHeader:][:stored]
	if _, err := io.ReadFull(r, contents); err != nil || checksum(head[:checksumFrom], contents) != binary.BigEndian.Uint32(head[checksumFrom:]) {
		return p, errTorn
	}
	return p, nil
}
