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

// object is a JSON object within a body, read no deeper than its members, so
// that a change touches nothing else.
type object struct {
	start, end int // the first byte, and the one after the last
	members    []member
}

// member is one of an object's. Begin and end are those of its value.
type member struct {
	name       string // unescaped
	value      json.RawMessage
	begin, end int
}

// parseObject reads the object that text, which is valid JSON, consists of.
// Offsets count from at. A name that occurs twice is an error, also in another
// case or with other underscores: servers read those differently.
func parseObject(text []byte, at int) (object, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return object{}, errors.New("it is not an object")
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
			return object{}, fmt.Errorf("%q stands in it twice", m.name)
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

// canon is what all spellings of a name have in common: protobuf knows names
// with and without underscores, and some servers know no case.
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

// get is the member with one of the spellings; nil where it is missing. One
// that is spelt otherwise is an error.
func (o object) get(spellings ...string) (*member, error) {
	for i, m := range o.members {
		if canon(m.name) != canon(spellings[0]) {
			continue
		}
		if !slices.Contains(spellings, m.name) {
			return nil, fmt.Errorf("%q is not how %q is written", m.name, spellings[0])
		}
		return &o.members[i], nil
	}
	return nil, nil
}

// null reports whether a member is missing or says nothing.
func (m *member) null() bool { return m == nil || string(m.value) == "null" }

// number is the member's positive whole number, 0 where there is none.
func (m *member) number(most int64) (int64, error) {
	if m.null() {
		return 0, nil
	}
	var f float64
	if err := json.Unmarshal(m.value, &f); err != nil || f < 1 || f > float64(most) || f != math.Trunc(f) {
		return 0, fmt.Errorf("%q is not a whole number from 1 to %d", m.name, most)
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

// apply makes the edits, which do not overlap.
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

// add is the edit that gives the object one more member, its last.
func (o object) add(name, value string) edit {
	text := strconv.Quote(name) + ":" + value
	if n := len(o.members); n > 0 {
		at := o.members[n-1].end
		return edit{at, at, "," + text}
	}
	return edit{o.start + 1, o.start + 1, text}
}

// set is the edit that gives a member of the object a value.
func (o object) set(m *member, name, value string) edit {
	if m == nil {
		return o.add(name, value)
	}
	return edit{m.begin, m.end, value}
}
