package workspace

import (
	"bytes"
	"fmt"
	"strings"
)

// changes turn one manifest, the base, into another. They include stamps, so
// that the result is exactly the other manifest. The zero value changes
// nothing.
type changes struct {
	base string // the name of the base's text: a SHA-256 in hex
	// list holds the entries that the base lacks or has in another state, and
	// entries with only a path for those to remove; sorted by path.
	list []Entry
}

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

// changesTo returns the entries that turn m, whose text is text, into the
// manifest encoded in other. It does not decode lines that both texts share.
func (m Manifest) changesTo(text, other []byte) (list []Entry, err error) {
	own := text[len(manifestHead):]
	rest, err := cutHead(other)
	if err != nil {
		return nil, err
	}
	var d decoder
	advance := func() {
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
		for ; len(m) > 0 && m[0].Path < e.Path; advance() {
			list = append(list, Entry{Path: m[0].Path})
		}
		if !same && (len(m) == 0 || !m[0].equal(e)) {
			list = append(list, e)
		}
		if len(m) > 0 && m[0].Path == e.Path {
			advance()
		}
	}
	for ; len(m) > 0; advance() {
		list = append(list, Entry{Path: m[0].Path})
	}
	return list, nil
}

func (e Entry) equal(o Entry) bool { return e.stamp == o.stamp && e.equalButStamp(o) }

// changesHead starts the first line of the text form; the base's name follows.
const changesHead = "hone manifest 1 since "

// removedWord starts the line of a removed path. It is not a [Kind].
const removedWord = "gone "

// encode returns the changes as text: a first line with the version and the
// base's name, then one line per path, in order. A line is that of an entry as
// in [Manifest.Encode], or "gone" and the quoted path.
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
	b = append(b, removedWord...)
	b = appendQuoted(b, e.Path)
	return append(b, '\n')
}

func isChanges(text []byte) bool { return bytes.HasPrefix(text, []byte(changesHead)) }

// decodeChanges parses the output of encode and is as strict as
// [DecodeManifest]. [Series.MoveTo] checks what needs the base: that removed
// paths existed and that changed entries differ.
func decodeChanges(text []byte) (changes, error) {
	head, lines, _ := bytes.Cut(text, []byte("\n"))
	name, ok := strings.CutPrefix(string(head), changesHead)
	if !ok || !isDigest(name) || len(head) == len(text) {
		return changes{}, fmt.Errorf("decode manifest: the first line is not %q with an object's name", strings.TrimSpace(changesHead))
	}
	list, err := decodeLines(string(lines), (*decoder).change)
	return changes{base: name, list: list}, err
}

func (d *decoder) change(line string) (Entry, error) {
	quoted, ok := strings.CutPrefix(line, removedWord)
	if !ok {
		return d.entry(line)
	}
	f := fields{rest: quoted}
	e := Entry{Path: f.quoted()}
	switch {
	case f.err != nil:
		return Entry{}, f.err
	case e.Path == "":
		return Entry{}, fmt.Errorf("a removed path is empty")
	case string(appendChange(d.rewritten[:0], e)) != line:
		return Entry{}, fmt.Errorf("%q is not as it would be written", strings.TrimSuffix(line, "\n"))
	}
	return e, nil
}
