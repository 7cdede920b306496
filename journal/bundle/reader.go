package bundle

import (
	"archive/tar"
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	stdhash "hash"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"hone/journal"
)

const maxHeader = 4 << 20

// maxPadding is how many zeros may follow the archive, because tar writes whole records.
const maxPadding = 1 << 20

// DamageError says why a file is not a bundle, or not a complete one.
type DamageError struct {
	Why string
	Err error // nil if there is no cause
}

func (e *DamageError) Error() string {
	if e.Err == nil {
		return e.Why
	}
	return e.Why + ": " + e.Err.Error()
}

func (e *DamageError) Unwrap() error { return e.Err }

func damagedError(format string, args ...any) error {
	return &DamageError{Why: fmt.Sprintf(format, args...)}
}

// LimitError says that a bundle contains more bytes than its reader accepts.
type LimitError struct{ Limit int64 }

func (e *LimitError) Error() string { return fmt.Sprintf("it contains more than %d bytes", e.Limit) }

// Reader reads a bundle. It must not be used after an error.
type Reader struct {
	Header Header
	Events []journal.Event // all of them, verified

	zstd    *zstd.Decoder
	tar     *tar.Reader
	limit   int64
	left    int64 // bytes that may still be read
	seen    map[string]bool
	content *content // of the last object; nil before the first
}

// NewReader reads the header and the journal of a bundle. limit is how many bytes it may
// contain, decompressed. A file that is not a bundle is a [*DamageError], one that
// contains more a [*LimitError]. The caller closes the reader.
func NewReader(in io.Reader, limit int64) (*Reader, error) {
	buffered := bufio.NewReader(in)
	// An error of the file is left to its next reader.
	begin, err := buffered.Peek(len(magic))
	if (err == nil || err == io.EOF) && (len(begin) == 0 || !strings.HasPrefix(magic, string(begin))) {
		return nil, &DamageError{Why: "it is not a run that hone exported"}
	}
	z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, err
	}
	r := &Reader{zstd: z, tar: tar.NewReader(z), limit: limit, left: limit, seen: map[string]bool{}}
	if err = r.readHeader(); err == nil {
		err = r.readJournal()
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

const magic = "\x28\xb5\x2f\xfd"

// Close releases what the reader needs. It does not close the file.
func (r *Reader) Close() { r.zstd.Close() }

func (r *Reader) readHeader() error {
	entry, err := r.entry(headerName)
	if err != nil {
		return &DamageError{Why: "it is not a bundle of a run", Err: err}
	}
	text, err := io.ReadAll(io.LimitReader(entry, maxHeader+1))
	if err != nil {
		return err
	}
	if len(text) > maxHeader {
		return damagedError("%s is longer than %d bytes", headerName, maxHeader)
	}
	h := &r.Header
	if err := json.Unmarshal(text, h); err != nil {
		return &DamageError{Why: headerName + " cannot be read", Err: err}
	}
	switch {
	case h.Format != Format:
		return &DamageError{Why: fmt.Sprintf("it has the format %d, but this hone reads format %d", h.Format, Format)}
	case !journal.ValidRun(h.Run):
		return damagedError("%q is not the id of a run", h.Run)
	case h.Events <= 0 || h.Objects < 0:
		return damagedError("%s has impossible numbers", headerName)
	}
	return nil
}

func (r *Reader) readJournal() error {
	entry, err := r.entry(journalName)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(entry)
	if err != nil {
		return err
	}
	if r.Events, err = journal.Parse(r.Header.Run, text); err != nil {
		return &DamageError{Why: journalName, Err: err}
	}
	if n := len(r.Events); n != r.Header.Events || r.Events[n-1].Hash() != r.Header.Head {
		return damagedError("%s does not end with the event that %s names", journalName, headerName)
	}
	return nil
}

// Next returns the next object, which must be read before the next call. A last Read
// returns an error in place of [io.EOF] if the object does not have its name. The error
// is io.EOF at the end of a complete bundle.
func (r *Reader) Next() (name string, object io.Reader, err error) {
	if r.content != nil {
		if _, err := io.Copy(io.Discard, r.content); err != nil {
			return "", nil, err
		}
	}
	if len(r.seen) == r.Header.Objects {
		return "", nil, r.end()
	}
	entry, err := r.entry(objectPrefix)
	if err != nil {
		return "", nil, err
	}
	r.content = entry
	return entry.name, entry, nil
}

func (r *Reader) end() error {
	if _, err := r.tar.Next(); err != io.EOF {
		return cmp.Or(cutError(err), damagedError("more follows after its last object"))
	}
	rest := make([]byte, 512)
	for padding := 0; ; {
		n, err := r.zstd.Read(rest)
		padding += n
		if strings.Trim(string(rest[:n]), "\x00") != "" || padding > maxPadding {
			return damagedError("more follows after its end")
		}
		if err == io.EOF {
			return io.EOF
		}
		if err != nil {
			return cutError(err)
		}
	}
}

// entry returns the next entry, which must have a name, or one that begins with
// objectPrefix.
func (r *Reader) entry(want string) (*content, error) {
	h, err := r.tar.Next()
	if err != nil {
		return nil, cutError(err)
	}
	name, object := strings.CutPrefix(h.Name, objectPrefix)
	switch {
	case h.Typeflag != tar.TypeReg || h.Name != want && want != objectPrefix:
		return nil, damagedError("it has %q in place of %s", h.Name, want)
	case want != objectPrefix:
		return &content{reader: r, name: want}, nil
	case !object || !isDigest(name):
		return nil, damagedError("%q is not the name of an object", h.Name)
	case r.seen[name]:
		return nil, damagedError("it has the object %s twice", name)
	}
	r.seen[name] = true
	return &content{reader: r, name: name, sum: sha256.New()}, nil
}

func cutError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return damagedError("it is incomplete: its end is missing")
	}
	return &DamageError{Why: "it cannot be read", Err: err}
}

type content struct {
	reader *Reader
	name   string
	sum    stdhash.Hash // nil if the entry has no digest for a name
	err    error        // once it is read
}

func (c *content) Read(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.reader.tar.Read(b)
	c.reader.left -= int64(n)
	if c.sum != nil {
		c.sum.Write(b[:n])
	}
	switch {
	case c.reader.left < 0:
		c.err = &LimitError{c.reader.limit}
	case err == io.EOF && c.sum != nil && hex.EncodeToString(c.sum.Sum(nil)) != c.name:
		c.err = damagedError("the object %s has other contents", c.name)
	case err == io.EOF:
		c.err = err
	default:
		c.err = cutError(err)
	}
	return n, c.err
}

func isDigest(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}
