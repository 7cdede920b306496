package workspace

import (
	"bytes"
	"fmt"
	"io/fs"
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

// plain reports whether quoting leaves a string unchanged.
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
	var d decoder
	last := ""
	for line := range bytes.Lines(lines) {
		var e Entry
		if len(earlier) > 0 && bytes.HasPrefix(known, line) && line[len(line)-1] == '\n' {
			e = earlier[0]
		} else if e, err = d.entry(string(line)); err != nil {
			return nil, fmt.Errorf("decode manifest: line %d: %w", len(m)+2, err)
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

type decoder struct {
	rewritten []byte // the last line, encoded again
}

// The returned entry shares the line's memory.
func (d *decoder) entry(line string) (Entry, error) {
	f := fields{rest: line}
	e := Entry{
		Kind:   Kind(f.word()),
		Mode:   fs.FileMode(f.number(8)),
		Size:   int64(f.number(10)),
		Digest: f.word(),
	}
	if e.Digest == "-" {
		e.Digest = ""
	}
	e.stamp = stamp{modified: f.signed(), changed: f.signed(), inode: f.number(10)}
	e.Path, e.Target, e.Note = f.quoted(), f.quoted(), f.quoted()
	if f.err != nil {
		return Entry{}, f.err
	}
	if err := e.validate(); err != nil {
		return Entry{}, err
	}
	if d.rewritten = appendEntry(d.rewritten[:0], e); string(d.rewritten) != line {
		return Entry{}, fmt.Errorf("%q is not in canonical form", strings.TrimSuffix(line, "\n"))
	}
	return e, nil
}

func (e Entry) validate() error {
	if e.Kind != Regular && e.Kind != Symlink && e.Kind != Other {
		return fmt.Errorf("unknown kind %q", e.Kind)
	}
	if e.Path == "" || e.Size < 0 || e.Mode != e.Mode.Perm() {
		return fmt.Errorf("the path is empty, the size negative, or the mode more than permission bits")
	}
	if e.Digest != "" && !isDigest(e.Digest) {
		return fmt.Errorf("%q is not a digest", e.Digest)
	}
	return nil
}

func isDigest(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 64
}

// fields splits a line. After an error it returns zero values.
type fields struct {
	rest string
	err  error
}

func (f *fields) word() string {
	word, rest, found := strings.Cut(f.rest, " ")
	if !found && f.err == nil {
		f.err = fmt.Errorf("a field is missing")
	}
	f.rest = rest
	return word
}

func (f *fields) number(base int) uint64 {
	n, err := strconv.ParseUint(f.word(), base, 64)
	if err != nil && f.err == nil {
		f.err = err
	}
	return n
}

func (f *fields) signed() int64 {
	n, err := strconv.ParseInt(f.word(), 10, 64)
	if err != nil && f.err == nil {
		f.err = err
	}
	return n
}

func (f *fields) quoted() string {
	if text, rest, found := strings.Cut(strings.TrimPrefix(f.rest, `"`), `"`); found && f.rest[0] == '"' && plain(text) {
		f.rest = strings.TrimPrefix(rest, " ")
		return text
	}
	quoted, err := strconv.QuotedPrefix(f.rest)
	if err == nil {
		f.rest = strings.TrimPrefix(f.rest[len(quoted):], " ")
		quoted, err = strconv.Unquote(quoted)
	}
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("a quoted field is missing: %w", err)
	}
	return quoted
}
