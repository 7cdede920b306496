// Package objects stores contents under their digests. [Store.Put] stores an object and
// [Store.NewPack] many. What is stored never changes, and is verified when it is read.
//
// A small object is appended to the log of its process, which [Store.Sync] makes durable:
// one call serves all objects that the next event names. Name no object in a durable
// place before that call. A large object has a file of its own, and many large ones share
// a pack; both are durable at once. A file or directory is synced before its name is, and
// a directory only after a name in it has changed.
//
// After a power failure a log ends with its last intact object, which is at or after the
// last one that was synced. What a killed process stored and did not sync can be read;
// Sync makes it durable before another process names it.
package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	stdhash "hash"
	"io"
	"io/fs"
	"os"

	"hone/internal/transient"
	"hone/journal/internal/dir"
)

// objectsDir is the directory of objects that have a file of their own.
const objectsDir = "objects"

// Store holds the objects below a directory. Concurrent calls are safe.
type Store struct {
	in    *dir.Dir
	packs packs
	log   writtenLog
	codec codec
	small int // maximum of bytes that are appended to the log at once
}

// In returns the store below a directory, which the caller may move.
func In(d *dir.Dir) *Store { return &Store{in: d, small: maxLogged} }

// Create creates the directories of the store, unless they exist.
func (s *Store) Create() error {
	return errors.Join(dir.Make(s.in.Root, objectsDir), dir.Make(s.in.Root, packsDir))
}

// Put stores an object and returns its name: the SHA-256 of its bytes in hex. The
// object can be read when Put returns, and is durable after the next [Store.Sync]. It is
// compressed if that saves space.
func (s *Store) Put(b []byte) (string, error) {
	o := place{digest: sha256.Sum256(b), size: int64(len(b))}
	name := o.digest.String()
	if p, ok := s.reuse(o.digest); ok && p.isLogged() {
		return name, nil
	}
	stored := s.smallest(b)
	o.stored = int64(len(stored))
	if len(stored) > s.small {
		if len(stored) < len(b) {
			return s.putFile(name, compressedSuffix, stored)
		}
		return s.putFile(name, "", b)
	}
	if err := s.appendLog([]place{o}, stored); err != nil {
		return "", fmt.Errorf("store an object: %w", err)
	}
	return name, nil
}

func (s *Store) smallest(b []byte) []byte {
	if len(b) >= minCompressed {
		if z := s.codec.compress(b); z != nil {
			return z
		}
	}
	return b
}

// PlainFile returns the path of a file with the contents of an object, for the user. It
// creates the file unless the object has one that is not compressed.
func (s *Store) PlainFile(name string) (path string, err error) {
	b, err := s.Get(name)
	if err == nil {
		_, err = s.putFile(name, "", b)
	}
	return s.in.At(objectFile(name)), err
}

func (s *Store) putFile(name, suffix string, b []byte) (string, error) {
	parent := objectsDir + "/" + name[:2]
	file := objectFile(name) + suffix
	if info, err := s.in.Root.Lstat(file); err == nil && info.Size() == int64(len(b)) {
		return name, nil
	}
	err := s.in.MakeDurable(parent)
	if err == nil {
		err = s.store(file, b)
	}
	if err == nil {
		err = s.in.Sync(parent)
	}
	if err != nil {
		return "", fmt.Errorf("store an object: %w", err)
	}
	return name, nil
}

func (s *Store) store(file string, b []byte) error {
	temp := file + ".tmp"
	f, err := s.in.Root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = s.in.SyncFile(file, f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.in.Root.Rename(temp, file)
	}
	if err != nil {
		_ = s.in.Root.Remove(temp)
	}
	return err
}

// Has reports whether an object is stored. It may miss one that another process
// has only just stored. A name that is not a digest is not stored.
// Has does not read the object; [Store.Get] and [Store.OpenObject] do, and detect
// damage.
func (s *Store) Has(name string) bool {
	d, err := parseDigest(name)
	if err != nil {
		return false
	}
	if _, ok := s.reuse(d); ok {
		return true
	}
	if s.hasFile(name, "") || s.hasFile(name, compressedSuffix) {
		return true
	}
	if err := s.refreshPacks(false); err != nil {
		return false
	}
	_, ok := s.reuse(d)
	return ok
}

func (s *Store) hasFile(name, suffix string) bool {
	info, err := s.in.Root.Lstat(objectFile(name) + suffix)
	return err == nil && info.Mode().IsRegular()
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

// OpenObject opens an object for reading. If its contents do not match its
// digest, the last Read returns an error that names the file instead of
// [io.EOF]; do not use what was read before. Closing it early is not an error.
// If the object is not stored, or was in a damaged pack, the error is a
// [*MissingError].
func (s *Store) OpenObject(name string) (io.ReadCloser, error) {
	d, err := parseDigest(name)
	if err != nil {
		return nil, err
	}
	for _, suffix := range []string{"", compressedSuffix} {
		o, err := s.openLoose(d, suffix)
		if err == nil {
			return o, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read an object: %w", err)
		}
	}
	return s.openPacked(d)
}

func (s *Store) openLoose(d digest, suffix string) (io.ReadCloser, error) {
	file := objectFile(d.String()) + suffix
	f, err := s.in.Open(file)
	if err != nil {
		return nil, err
	}
	o := &object{from: f, file: f, sum: sha256.New(), want: d, path: s.in.At(file)}
	if suffix == "" {
		return o, nil
	}
	size, err := recordedSize(f)
	if err != nil {
		f.Close()
		return nil, o.explain(err)
	}
	return o.decompressed(size)
}

func (s *Store) openPacked(d digest) (io.ReadCloser, error) {
	p, ok := s.packs.find(d)
	if !ok {
		if err := s.refreshPacks(true); err != nil {
			return nil, fmt.Errorf("read an object: %w", err)
		}
		s.refreshLogs()
		if p, ok = s.packs.find(d); !ok {
			return nil, &MissingError{Name: d.String(), DamagedPacks: s.packs.damageErrors(true)}
		}
	}
	return s.openPlace(p)
}

func (s *Store) openPlace(p place) (io.ReadCloser, error) {
	file := packsDir + "/" + p.pack
	f, err := s.in.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	o := &object{from: io.NewSectionReader(f, p.offset, p.stored), file: f, sum: sha256.New(), want: p.digest, path: s.in.At(file)}
	if p.stored == p.size {
		return o, nil
	}
	return o.decompressed(p.size)
}

// It verifies the object at the end.
type object struct {
	from  io.Reader // the object only
	unzip io.Closer // releases what from needs; nil if it is not compressed
	file  *os.File
	sum   stdhash.Hash
	want  digest
	path  string
}

func (o *object) decompressed(size int64) (io.ReadCloser, error) {
	d, err := decompress(o.from, size)
	if err != nil {
		o.file.Close()
		return nil, err
	}
	o.from, o.unzip = d, d
	return o, nil
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
	return fmt.Errorf("%s was changed after it was stored: it no longer contains the object %s", o.path, o.want)
}

func (o *object) Close() error {
	if o.unzip != nil {
		o.unzip.Close()
	}
	return o.file.Close()
}

// MissingError says that an object is not stored. It wraps [fs.ErrNotExist].
type MissingError struct {
	Name string
	// DamagedPacks has an error for each damaged pack. Any may have held the
	// object.
	DamagedPacks []error
}

func (e *MissingError) Error() string {
	s := fmt.Sprintf("the object %s is not stored", e.Name)
	switch n := len(e.DamagedPacks); n {
	case 0:
		return s
	case 1:
		return fmt.Sprintf("%s; it may have been in a damaged pack: %v", s, e.DamagedPacks[0])
	default:
		return fmt.Sprintf("%s; it may have been in one of %d damaged packs: %v, and others", s, n, e.DamagedPacks[0])
	}
}

func (e *MissingError) Unwrap() error { return fs.ErrNotExist }

func objectFile(name string) string { return objectsDir + "/" + name[:2] + "/" + name[2:] }

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
