package forward

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

// object is a JSON object in a body. Its values are not decoded, so that setting
// one does not change the others.
type object struct{ members []member }

type member struct {
	name  string // unescaped
	value json.RawMessage
}

// parseObject parses an object; text must be valid JSON. Two equal names are an
// error, even if they differ in case or underscores, because servers interpret
// such duplicates differently.
func parseObject(text []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return object{}, errors.New("the value is not an object")
	}
	var o object
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
		if seen[canon(m.name)] {
			return object{}, fmt.Errorf("duplicate member %q", m.name)
		}
		seen[canon(m.name)] = true
		o.members = append(o.members, m)
	}
	return o, nil
}

// set sets the value of a member, which may be missing.
func (o *object) set(name string, value []byte) {
	i := slices.IndexFunc(o.members, func(m member) bool { return m.name == name })
	if i < 0 {
		i = len(o.members)
		o.members = append(o.members, member{name: name})
	}
	o.members[i].value = value
}

// text returns the object as JSON.
func (o *object) text() []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o.members {
		if i > 0 {
			b.WriteByte(',')
		}
		// Marshal cannot fail for a string.
		name, _ := json.Marshal(m.name)
		b.Write(name)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
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
