package forward

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// object is a JSON object in a body. Its members are not decoded, so that an
// edit changes nothing else.
type object struct {
	start, end int // the first byte, and the one after the last
	members    []member
}

// member is a member of an object; begin and end are the offsets of its value.
type member struct {
	name       string // unescaped
	value      json.RawMessage
	begin, end int
}

// parseObject parses an object; text must be valid JSON. Offsets start at at.
// Two equal names are an error, even if they differ in case or underscores,
// because servers interpret such duplicates differently.
func parseObject(text []byte, at int) (object, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return object{}, errors.New("the value is not an object")
	}
	o := object{start: at + int(d.InputOffset()) - 1}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return object{}, err
		}
		m := member{name: fmt.Sprint(key)}
		if err := d.Decode(&m.value); err != nil {
			return object{}, err
		}
		m.end = at + int(d.InputOffset())
		m.begin = m.end - len(m.value)
		if seen[canon(m.name)] {
			return object{}, fmt.Errorf("duplicate member %q", m.name)
		}
		seen[canon(m.name)] = true
		o.members = append(o.members, m)
	}
	if _, err := d.Token(); err != nil && err != io.EOF {
		return object{}, err
	}
	o.end = at + int(d.InputOffset())
	return o, nil
}

// canon returns the canonical form of a name: protobuf accepts names with and
// without underscores, and some servers ignore case.
func canon(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' {
			return -1
		}
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}

// get returns the member with one of the spellings; nil if it is missing. Any
// other spelling of the name is an error.
func (o object) get(spellings ...string) (*member, error) {
	for i, m := range o.members {
		if canon(m.name) != canon(spellings[0]) {
			continue
		}
		if !slices.Contains(spellings, m.name) {
			return nil, fmt.Errorf("unsupported spelling %q of %q", m.name, spellings[0])
		}
		return &o.members[i], nil
	}
	return nil, nil
}

// null reports whether a member is missing or null.
func (m *member) null() bool { return m == nil || string(m.value) == "null" }

// number returns the member's value, a whole number from 1 to limit; 0 if the
// member is missing or null.
func (m *member) number(limit int64) (int64, error) {
	if m.null() {
		return 0, nil
	}
	var f float64
	if err := json.Unmarshal(m.value, &f); err != nil || f < 1 || f > float64(limit) || f != math.Trunc(f) {
		return 0, fmt.Errorf("%q is not a whole number from 1 to %d", m.name, limit)
	}
	return int64(f), nil
}

func (m *member) flag() (bool, error) {
	if m.null() {
		return false, nil
	}
	var b bool
	if err := json.Unmarshal(m.value, &b); err != nil {
		return false, fmt.Errorf("%q is neither true nor false", m.name)
	}
	return b, nil
}

// edit replaces a part of a body; an empty part is an insertion.
type edit struct {
	begin, end int
	text       string
}

// apply applies edits, which must not overlap.
func apply(body []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.begin - b.begin })
	out := make([]byte, 0, len(body)+128)
	at := 0
	for _, e := range edits {
		out = append(append(out, body[at:e.begin]...), e.text...)
		at = e.end
	}
	return append(out, body[at:]...)
}

// add returns the edit that adds a member at the end of the object.
func (o object) add(name, value string) edit {
	text := strconv.Quote(name) + ":" + value
	if n := len(o.members); n > 0 {
		at := o.members[n-1].end
		return edit{at, at, "," + text}
	}
	return edit{o.start + 1, o.start + 1, text}
}

// set returns the edit that sets a member's value; a nil member is added.
func (o object) set(m *member, name, value string) edit {
	if m == nil {
		return o.add(name, value)
	}
	return edit{m.begin, m.end, value}
}
