package workspace

import (
	"bytes"
	"fmt"
	"strings"
)

// changes are what makes one manifest, the base, into another. Stamps count, so
// that what is made is the other to the last bit. Zero changes nothing.
type changes struct {
	base string // the name of the base's text: a SHA-256 in hex
	// list are the entries that the base has not, or has otherwise, and, with no
	// more than a path, what only the base has; sorted by path.
	list []Entry
}

// changesSince finds what makes base into m; name is that of base.
func (m Manifest) changesSince(base Manifest, name string) changes {
	c := changes{base: name}
	for len(m) > 0 || len(base) > 0 {
		switch order := compareHeads(base, m); {
		case order < 0:
			c.list = append(c.list, Entry{Path: base[0].Path})
			base = base[1:]
		case order > 0:
			c.list = append(c.list, m[0])
			m = m[1:]
		default:
			if !base[0].equal(m[0]) {
				c.list = append(c.list, m[0])
			}
			base, m = base[1:], m[1:]
		}
	}
	return c
}

// changesTo is the list of changes that make m, whose text is given, into the
// manifest of another text. Lines that both have are not decoded.
func (m Manifest) changesTo(text, other []byte) (list []Entry, err error) {
	own := text[len(manifestHead):]
	rest, err := cutHead(other)
	if err != nil {
		return nil, err
	}
	var d decoder
	pass := func() {
		_, own, _ = bytes.Cut(own, []byte("\n"))
		m = m[1:]
	}
	number, last := 1, ""
	for line := range bytes.Lines(rest) {
		number++
		same := len(m) > 0 && bytes.HasPrefix(own, line) && bytes.HasSuffix(line, []byte("\n"))
		var e Entry
		if same {
			e = m[0]
		} else if e, err = d.entry(string(line)); err != nil {
			return nil, fmt.Errorf("decode manifest: line %d: %w", number, err)
		}
		if e.Path <= last {
			return nil, fmt.Errorf("decode manifest: line %d: %q is out of order", number, e.Path)
		}
		last = e.Path
		for ; len(m) > 0 && m[0].Path < e.Path; pass() {
			list = append(list, Entry{Path: m[0].Path})
		}
		if !same && (len(m) == 0 || !m[0].equal(e)) {
			list = append(list, e)
		}
		if len(m) > 0 && m[0].Path == e.Path {
			pass()
		}
	}
	for ; len(m) > 0; pass() {
		list = append(list, Entry{Path: m[0].Path})
	}
	return list, nil
}

// equal reports whether two entries are encoded alike.
func (e Entry) equal(o Entry) bool { return e.stamp == o.stamp && e.same(o) }

// changesHead begins the first line of the text form; the base's name follows.
const changesHead = "hone manifest 1 since "

// gone begins the line of a path that is not there any more, and is no [Kind].
const gone = "gone "

// encode returns the changes as text: a first line with the version and the
// base's name, then a line a path, in order: an entry's as [Manifest.Encode]
// has it, or "gone" and the path, quoted as there.
func (c changes) encode() []byte {
	out := make([]byte, 0, len(changesHead)+65+160*len(c.list))
	out = append(out, changesHead...)
	out = append(out, c.base...)
	out = append(out, '\n')
	for _, e := range c.list {
		out = appendChange(out, e)
	}
	return out
}

func appendChange(b []byte, e Entry) []byte {
	if e.Kind != "" {
		return appendEntry(b, e)
	}
	b = append(b, gone...)
	b = appendQuoted(b, e.Path)
	return append(b, '\n')
}

// isChanges reports whether a text is of changes, or of nothing that is known.
func isChanges(text []byte) bool { return bytes.HasPrefix(text, []byte(changesHead)) }

// decodeChanges reads what encode wrote, and is as strict as [DecodeManifest].
// What only the base can tell, that a path which is gone was there or that an
// entry is another, it leaves to [Series.Go].
func decodeChanges(text []byte) (changes, error) {
	head, lines, _ := bytes.Cut(text, []byte("\n"))
	name, ok := strings.CutPrefix(string(head), changesHead)
	if !ok || !isDigest(name) || len(head) == len(text) {
		return changes{}, fmt.Errorf("decode manifest: the first line is not %q with an object's name", strings.TrimSpace(changesHead))
	}
	list, err := decodeLines(string(lines), (*decoder).change)
	return changes{base: name, list: list}, err
}

// change reads a line of changes.
func (d *decoder) change(line string) (Entry, error) {
	quoted, ok := strings.CutPrefix(line, gone)
	if !ok {
		return d.entry(line)
	}
	f := fields{rest: quoted}
	e := Entry{Path: f.quoted()}
	switch {
	case f.err != nil:
		return Entry{}, f.err
	case e.Path == "":
		return Entry{}, fmt.Errorf("an empty path is gone")
	case string(appendChange(d.again[:0], e)) != line:
		return Entry{}, fmt.Errorf("%q is not as it would be written", strings.TrimSuffix(line, "\n"))
	}
	return e, nil
}
