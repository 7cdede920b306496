package workspace

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

const manifestHead = "hone manifest 1\n"

// Encode returns the manifest as text: a first line with the version, then one
// line per entry. A line has nine fields separated by single spaces: kind,
// permission bits in octal, size, digest or "-", modification time, change time
// and inode (zeros if the stamp is not to be trusted), and path, link target
// and note. The last three are quoted as Go strings, which preserves all bytes.
func (m Manifest) Encode() []byte {
	out := make([]byte, 0, len(manifestHead)+160*len(m))
	out = append(out, manifestHead...)
	for _, e := range m {
		out = appendEntry(out, e)
	}
	return out
}

func appendEntry(b []byte, e Entry) []byte {
	b = append(b, e.Kind...)
	b = append(b, ' ')
	b = strconv.AppendUint(b, uint64(e.Mode), 8)
	b = append(b, ' ')
	b = strconv.AppendInt(b, e.Size, 10)
	b = append(b, ' ')
	if e.Digest == "" {
		b = append(b, '-')
	}
	b = append(b, e.Digest...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, e.stamp.modified, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, e.stamp.changed, 10)
	b = append(b, ' ')
	b = strconv.AppendUint(b, e.stamp.inode, 10)
	for _, text := range []string{e.Path, e.Target, e.Note} {
		b = append(b, ' ')
		b = appendQuoted(b, text)
	}
	return append(b, '\n')
}

func appendQuoted(b []byte, s string) []byte {
	if !plain(s) {
		return strconv.AppendQuoteToASCII(b, s)
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// DecodeManifest parses the output of Encode and nothing else. It returns an
// error for a field spelled differently than Encode does, for paths out of
// order or duplicated, and for a truncated last line.
func DecodeManifest(text []byte) (Manifest, error) { return decodeAfter(text, nil, nil) }

// decodeAfter does not decode the lines again that an earlier manifest has, whose text is given.
func decodeAfter(text []byte, earlier Manifest, earlierText []byte) (m Manifest, err error) {
	lines, ok := bytes.CutPrefix(text, []byte(manifestHead))
	if !ok {
		return nil, fmt.Errorf("decode manifest: the first line is not %q", strings.TrimSpace(manifestHead))
	}
	_, known, _ := bytes.Cut(earlierText, []byte("\n"))
	if n := bytes.Count(lines, []byte("\n")); n > 0 {
		m = make(Manifest, 0, n)
	}
	var again []byte
	last := ""
	for line := range bytes.Lines(lines) {
		var e Entry
		if len(earlier) > 0 && bytes.HasPrefix(known, line) && line[len(line)-1] == '\n' {
			e = earlier[0]
		} else if e = decodeEntry(string(line)); !e.isValid() {
			return nil, fmt.Errorf("decode manifest: line %d: %q is not an entry", len(m)+2, bytes.TrimSpace(line))
		} else if again = appendEntry(again[:0], e); !bytes.Equal(again, line) {
			return nil, fmt.Errorf("decode manifest: line %d: %q is not in canonical form", len(m)+2, bytes.TrimSpace(line))
		}
		if e.Path <= last {
			return nil, fmt.Errorf("decode manifest: line %d: %q is out of order", len(m)+2, e.Path)
		}
		m, last = append(m, e), e.Path
		for len(earlier) > 0 && earlier[0].Path <= last {
			_, known, _ = bytes.Cut(known, []byte("\n"))
			earlier = earlier[1:]
		}
	}
	return m, nil
}

// decodeEntry returns anything for a line that is not an entry in canonical form. The entry
// shares the line's memory.
func decodeEntry(line string) (e Entry) {
	var fields [7]string
	for i := range fields {
		fields[i], line, _ = strings.Cut(line, " ")
	}
	mode, _ := strconv.ParseUint(fields[1], 8, 32)
	e = Entry{Kind: Kind(fields[0]), Mode: fs.FileMode(mode), Digest: strings.TrimPrefix(fields[3], "-")}
	e.Size, _ = strconv.ParseInt(fields[2], 10, 64)
	e.stamp.modified, _ = strconv.ParseInt(fields[4], 10, 64)
	e.stamp.changed, _ = strconv.ParseInt(fields[5], 10, 64)
	e.stamp.inode, _ = strconv.ParseUint(fields[6], 10, 64)
	for _, text := range []*string{&e.Path, &e.Target, &e.Note} {
		quoted, _ := strconv.QuotedPrefix(line)
		*text, _ = strconv.Unquote(quoted)
		line = strings.TrimPrefix(line[len(quoted):], " ")
	}
	return e
}

func (e Entry) isValid() bool {
	isDigest := e.Digest == "" || len(e.Digest) == 2*sha256.Size && strings.Trim(e.Digest, "0123456789abcdef") == ""
	return slices.Contains([]Kind{Regular, Symlink, Other}, e.Kind) && e.Path != "" && e.Size >= 0 && e.Mode == e.Mode.Perm() && isDigest
}

// Stored is a stored manifest. The zero Stored was never stored.
type Stored struct {
	Name     string // SHA-256 of its text in hex
	Manifest Manifest
}

// StoreNext stores m as the successor of s. If m equals s, it stores nothing and returns s.
// After an error it returns s too.
//
// Contract: put stores a text and returns its SHA-256 in hex.
func (s Stored) StoreNext(m Manifest, put func(text []byte) (name string, err error)) (Stored, error) {
	if s.Name != "" && slices.EqualFunc(s.Manifest, m, Entry.equal) {
		return s, nil
	}
	name, err := put(m.Encode())
	if err != nil {
		return s, err
	}
	return Stored{name, m}, nil
}

// ReadManifest reads a manifest. get is as Series.Get.
func ReadManifest(name string, get func(name string) ([]byte, error)) (Stored, error) {
	s := Series{Get: get}
	_, err := s.MoveTo(name)
	return s.now, err
}

// Series reads manifests one after another, in any order, and decodes only what differs from
// the one before. A Series with Get set is ready to use and is at no manifest. It is not for
// use by several goroutines at once.
type Series struct {
	// Get reads a text by its name. Contract: it returns the text of that name
	// or an error; only hone wrote the texts.
	Get func(name string) ([]byte, error)

	now  Stored
	text []byte
}

// Name returns the name of the current manifest, empty before the first.
func (s *Series) Name() string { return s.now.Name }

// Entry returns the entry of a path in the current manifest and whether there
// is one.
func (s *Series) Entry(path string) (Entry, bool) { return s.now.Manifest.Entry(path) }

// Manifest returns the current manifest. The caller must not change it.
func (s *Series) Manifest() Manifest { return s.now.Manifest }

// Stored returns the current manifest with its name.
func (s *Series) Stored() Stored { return s.now }

// MoveTo moves to the manifest of a name and returns the differences, as
// [Manifest.Diff] does; nil for the first manifest.
func (s *Series) MoveTo(name string) ([]Delta, error) {
	if name == s.now.Name {
		return nil, nil
	}
	text, err := s.Get(name)
	var m Manifest
	if err == nil {
		m, err = decodeAfter(text, s.now.Manifest, s.text)
	}
	if err != nil {
		return nil, fmt.Errorf("manifest %.12s: %w", name, err)
	}
	before := s.now
	s.now, s.text = Stored{name, m}, text
	if before.Name == "" {
		return nil, nil
	}
	return before.Manifest.Diff(m), nil
}
