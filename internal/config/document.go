package config

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Document is a TOML file and the struct that it fills. go-toml decodes it; a
// Document adds the place of each key, which go-toml does not return.
type Document struct {
	file   string        // for errors
	text   []byte        // of the file, with dashes for underscores in keys
	into   reflect.Value // a struct with a pointer to each section
	keys   []key         // tables and settings, in the order of the file
	shared bool          // ignores the tables that into does not have
}

type key struct {
	file    string
	path    []string // with dashes; see Entry
	spelled []string // as in the file
	at      unstable.Position
}

func (k key) wrong(problem, hint string) error {
	return &Error{File: k.file, Line: k.at.Line, Key: keyText(k.spelled), Problem: problem, Hint: hint}
}

func (d *Document) fill() error {
	for _, step := range []func() error{d.readKeys, d.decode, d.validate} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// It notes the keys up to the first syntax error.
func (d *Document) readKeys() error {
	var p unstable.Parser
	p.Reset(d.text)
	root := key{file: d.file}
	table := root
	for p.NextExpression() {
		if e := p.Expression(); e.Kind == unstable.KeyValue {
			d.noteSetting(&p, table, e)
		} else {
			table = d.note(&p, root, e)
			if v, _, ok := d.lookup(table.path); ok && e.Kind == unstable.ArrayTable && isTables(v) {
				table = d.noteEntry(table)
			}
		}
	}
	if d.shared {
		d.keys = slices.DeleteFunc(d.keys, func(k key) bool { _, _, ok := d.lookup(k.path[:1]); return !ok })
	}
	for _, k := range d.keys {
		if err := d.checkKnown(k); err != nil {
			return err
		}
	}
	return nil
}

func (d *Document) noteSetting(p *unstable.Parser, table key, node *unstable.Node) {
	k := d.note(p, table, node)
	if node.Value().Kind != unstable.InlineTable {
		return
	}
	for members := node.Value().Children(); members.Next(); {
		d.noteSetting(p, k, members.Node())
	}
}

func (d *Document) note(p *unstable.Parser, table key, node *unstable.Node) key {
	k := table
	for parts := node.Key(); parts.Next(); {
		raw, name := parts.Node().Raw, string(parts.Node().Data)
		k.spelled = append(slices.Clip(k.spelled), name)
		if v, _, _ := d.lookup(k.path); v.Kind() != reflect.Map { // users choose the names in a map
			text := d.text[raw.Offset:][:raw.Length]
			copy(text, dashed(string(text)))
			name = dashed(name)
		}
		k.path = append(slices.Clip(k.path), name)
		k.at = p.Shape(raw).Start
		d.keys = append(d.keys, k)
	}
	return k
}

func (d *Document) noteEntry(list key) key {
	n := 0
	for ok := true; ok; n++ {
		list.path = append(slices.Clip(list.path[:len(list.spelled)]), Entry(n))
		_, ok = d.find(list.path...)
	}
	list.spelled = append(slices.Clip(list.spelled), list.path[len(list.spelled)])
	d.keys = append(d.keys, list)
	return list
}

// Entry returns the part of a key that selects a table in a list of tables, such as [[job]],
// by its index from 0. Errors do not show it.
func Entry(n int) string { return entryMark + strconv.Itoa(n) }

const entryMark = "\x00" // which a key does not contain

func isTables(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct
}

func (d *Document) checkKnown(k key) error {
	last := len(k.path) - 1
	v, _, ok := d.lookup(k.path)
	first, _ := d.find(k.path...)
	switch {
	case ok && first.spelled[last] != k.spelled[last]:
		return k.wrong(fmt.Sprintf("line %d already sets it as %s", first.at.Line, first.spelled[last]), "keep one of the two")
	case ok && isTables(v):
		if _, ok := d.find(append(slices.Clip(k.path), Entry(0))...); !ok {
			return d.mistyped(k)
		}
		return nil
	case ok:
		return nil
	case v.Kind() != reflect.Struct:
		table, _ := d.find(k.path[:last]...)
		return d.mistyped(table)
	}
	var known []string
	for f := range fieldsOf(v) {
		known = append(known, f.Tag.Get("toml"))
	}
	slices.Sort(known)
	problem := "unknown key"
	if last == 0 {
		problem = "unknown section"
		switch in := d.sectionsWith(k.path[0]); len(in) {
		case 0:
		case 1:
			return k.wrong("it is outside of its section", "write it below "+in[0])
		default:
			return k.wrong("it is outside of its section", "write it below one of: "+strings.Join(in, ", "))
		}
	}
	return k.wrong(problem, unknownHint(k.path[last], known))
}

func (d *Document) sectionsWith(key string) (headers []string) {
	for f := range fieldsOf(d.into) {
		name := f.Tag.Get("toml")
		v, _, _ := d.lookup([]string{name})
		header := "[" + name + "]"
		if isTables(v) {
			v, header = reflect.Zero(v.Type().Elem()), "["+header+"]"
		}
		if v.Kind() != reflect.Struct {
			continue
		}
		for inner := range fieldsOf(v) {
			if inner.Tag.Get("toml") == key {
				headers = append(headers, header)
			}
		}
	}
	return headers
}

func (d *Document) find(path ...string) (key, bool) {
	i := slices.IndexFunc(d.keys, func(k key) bool { return slices.Equal(k.path, path) })
	if i < 0 {
		return key{}, false
	}
	return d.keys[i], true
}

// In a map, the tag is that of the map. Without such a field, ok is false and v is the last value on the way.
func (d *Document) lookup(path []string) (v reflect.Value, tag reflect.StructTag, ok bool) {
	v = d.into
	for _, name := range path {
		var inner reflect.Value
		switch v.Kind() {
		case reflect.Slice:
			if n, ok := strings.CutPrefix(name, entryMark); ok && isTables(v) {
				inner = reflect.Zero(v.Type().Elem())
				if i, _ := strconv.Atoi(n); i < v.Len() {
					inner = v.Index(i)
				}
			}
		case reflect.Map:
			if inner = v.MapIndex(reflect.ValueOf(name)); !inner.IsValid() {
				inner = reflect.Zero(v.Type().Elem())
			}
		case reflect.Struct:
			for f, value := range fieldsOf(v) {
				if f.Tag.Get("toml") == name {
					if value.Kind() == reflect.Pointer && value.IsNil() {
						value = reflect.New(value.Type().Elem())
					}
					inner, tag = reflect.Indirect(value), f.Tag
				}
			}
		}
		if !inner.IsValid() {
			return v, tag, false
		}
		v = inner
	}
	return v, tag, true
}

// Those of embedded structs are in their place, as go-toml decodes them.
func fieldsOf(v reflect.Value) iter.Seq2[reflect.StructField, reflect.Value] {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		for _, f := range reflect.VisibleFields(v.Type()) {
			if !f.Anonymous && !yield(f, v.FieldByIndex(f.Index)) {
				return
			}
		}
	}
}

func (d *Document) decode() error {
	if err := toml.Unmarshal(d.text, new(map[string]any)); err != nil {
		return d.syntaxError(err)
	}
	decoder := toml.NewDecoder(bytes.NewReader(d.text))
	if !d.shared {
		decoder.DisallowUnknownFields()
	}
	err := decoder.Decode(d.into.Addr().Interface())
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		if k := d.keyOf(at); len(k.path) > 0 {
			return d.mistyped(k)
		}
	}
	if err != nil {
		return d.syntaxError(err)
	}
	return nil
}

func (d *Document) syntaxError(err error) error {
	e := &Error{File: d.file, Problem: strings.TrimPrefix(err.Error(), "toml: "), Hint: "write TOML: sections in brackets, and lines such as rounds = 5"}
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		e.Line, _ = at.Position()
		e.Key = keyText(at.Key())
	}
	return e
}

// keyOf returns the key whose value go-toml cannot decode: the last one before
// the place of the error, or the one that the error names. The former is only the
// first part of the key of a table, the latter only the table if that is inline.
func (d *Document) keyOf(e *toml.DecodeError) key {
	named, _ := d.find(e.Key()...)
	line, column := e.Position()
	for _, k := range slices.Backward(d.keys) {
		if k.at.Line < line || k.at.Line == line && k.at.Column <= column {
			if len(k.path) > len(named.path) {
				return k
			}
			break
		}
	}
	return named
}

func (d *Document) mistyped(k key) error {
	what, hint := d.expected(k)
	return k.wrong("it is not "+what, hint)
}

func (d *Document) expected(k key) (what, hint string) {
	v, tag, _ := d.lookup(k.path)
	rule := tag.Get("valid")
	name := k.spelled[len(k.spelled)-1]
	switch v.Interface().(type) {
	case Duration:
		return "a string", durationHint
	case Size:
		return "a size", `write a number of bytes, or a number with its unit, such as "4GB"`
	case string:
		return "a string", stringHint(rule)
	case bool:
		return "a boolean", "write true or false, without quotes"
	case float64:
		return "a number", "write US dollars as a number, such as 2.50"
	case []string:
		return "a list of strings", fmt.Sprintf("write a list, such as %s = [%q]", name, rules[rule].example)
	case []int:
		return "a list of whole numbers", "write a list, such as " + name + " = [0, 1]"
	}
	switch {
	case v.CanInt() && rule == "positive":
		return "a whole number", "write a whole number greater than 0"
	case v.CanInt():
		return "a whole number", "write 0 or a greater whole number"
	}
	path := k.spelled
	if isTables(v) {
		return "a list of tables", "write [[" + keyText(path) + "]], and its keys below it"
	}
	if rule != "" { // a map, or an entry of one
		path = []string{path[0], rules[rule].example}
	}
	return "a table", "write [" + keyText(path) + "], and its keys below it"
}

func (d *Document) validate() error {
	for _, k := range d.keys {
		if problem, hint := d.valueProblem(k); problem != "" {
			return k.wrong(problem, hint)
		}
	}
	for _, k := range d.keys {
		v, _, _ := d.lookup(k.path)
		if v.CanAddr() {
			v = v.Addr()
		}
		table, ok := v.Interface().(Validator)
		if !ok {
			continue
		}
		if name, problem, hint := table.Valid(); problem != "" {
			if setting, ok := d.find(append(slices.Clip(k.path), name)...); ok {
				k = setting
			}
			return k.wrong(problem, hint)
		}
	}
	return nil
}

// An empty problem means that all is well.
func (d *Document) valueProblem(k key) (problem, hint string) {
	last := len(k.path) - 1
	if table, tag, _ := d.lookup(k.path[:last]); table.Kind() == reflect.Map {
		return textProblem(tag.Get("valid"), k.path[last])
	}
	v, tag, _ := d.lookup(k.path)
	rule := tag.Get("valid")
	switch value := v.Interface().(type) {
	case Duration:
		return durationProblem(string(value))
	case string:
		return textProblem(rule, value)
	case []string:
		for _, text := range value {
			if problem, hint := textProblem(rule, text); problem != "" {
				return problem, hint
			}
		}
	}
	var n float64
	switch {
	case v.CanInt():
		n = float64(v.Int())
	case v.CanFloat():
		n = v.Float()
	default:
		return "", ""
	}
	what, hint := d.expected(k)
	switch small := n < 0 || n == 0 && (rule == "positive" || rule == "size>0"); {
	case small && v.Type() == reflect.TypeFor[Size]():
		return "it is not " + what, hint
	case small:
		return fmt.Sprintf("%v is too small", v), hint
	case math.IsNaN(n), math.IsInf(n, 0):
		return fmt.Sprintf("%v is not a finite number", v), hint
	}
	return "", ""
}

func dashed(key string) string { return strings.ReplaceAll(key, "_", "-") }

func keyText(path []string) string {
	var parts []string
	for _, p := range path {
		switch {
		case strings.HasPrefix(p, entryMark):
		case bare.MatchString(p):
			parts = append(parts, p)
		default:
			parts = append(parts, strconv.Quote(p))
		}
	}
	return strings.Join(parts, ".")
}
