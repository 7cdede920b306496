package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"hone/internal/near"
)

// Document is a TOML file, with the place of each key. go-toml decodes it, but does not return
// where an accepted value is.
type Document struct {
	file   string // for errors
	text   []byte // with dashes for underscores in keys
	rows   rows
	shared bool    // tables without a row are ignored
	keys   []place // tables and settings, in the order of the file
	values map[string]any
}

// rows are what a file may have, by key. In a key, "*" stands for a name that the user chooses
// and "#" for the index of a table in a list. A row of a table has the type [table].
type rows map[string]*Row

type kind int

const (
	aTable kind = iota
	aMap        // of tables; Valid is the rule of their names
	aList       // of tables
)

type place struct {
	path    []string // with dashes
	row     string   // its key
	spelled string   // for errors
	line    int
}

// Parse reads a TOML file other than a configuration, such as a list of cases, with the
// errors of [Load]. into is a pointer to the struct to fill, which has a struct, a map of
// structs or a slice of structs for each table. file is the name for errors.
//
// Each field has the tag "toml" with its key, in which users may write underscores for dashes, and
// may have the tags "valid" and "opens" for the columns of [Row]. Its type is string, bool, int,
// int64, float64, []string or []int.
func Parse(file string, text []byte, into any) (*Document, error) {
	if err := checkText(file, text); err != nil {
		return nil, err
	}
	d := &Document{file: file, rows: rows{}, text: slices.Clone(text)}
	d.rows.addFields("", reflect.TypeOf(into).Elem(), "")
	err := d.read(func(place, *Row, any) {})
	if err == nil {
		err = toml.Unmarshal(d.text, into)
	}
	return d, err
}

func (r rows) addFields(table string, of reflect.Type, opens string) {
	for _, f := range reflect.VisibleFields(of) {
		key, row := table+f.Tag.Get("toml"), &Row{Valid: f.Tag.Get("valid"), Opens: cmp.Or(f.Tag.Get("opens"), opens)}
		switch inner := f.Type; {
		case f.Anonymous: // its fields are visible
			continue
		case inner.Kind() == reflect.Map:
			row.standard, r[key+".*"] = aMap, &Row{standard: aTable}
			r.addFields(key+".*.", inner.Elem(), row.Opens)
		case inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct:
			row.standard, r[key+".#"] = aList, &Row{standard: aTable}
			r.addFields(key+".#.", inner.Elem(), row.Opens)
		case inner.Kind() == reflect.Struct:
			row.standard = aTable
			r.addFields(key+".", inner, row.Opens)
		default:
			row.standard = reflect.Zero(inner).Interface()
		}
		r[key] = row
	}
}

// read decodes the file, and calls each with every setting and table and its checked value.
func (d *Document) read(each func(at place, r *Row, value any)) error {
	var p unstable.Parser
	p.Reset(d.text)
	lists := map[string]int{}
	var table place
	for p.NextExpression() { // up to the first syntax error
		e := p.Expression()
		if e.Kind == unstable.KeyValue {
			d.noteSetting(&p, table, e)
			continue
		}
		if table = d.note(&p, place{}, e); e.Kind == unstable.ArrayTable {
			table.path = append(slices.Clip(table.path), Entry(lists[table.row]))
			lists[table.row]++
			table.row += ".#"
			d.keys = append(d.keys, table)
		}
	}
	if err := toml.Unmarshal(d.text, &d.values); err != nil {
		e := &Error{File: d.file, Problem: strings.TrimPrefix(err.Error(), "toml: "), Hint: "write TOML: sections in brackets, and lines such as rounds = 5"}
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			e.Line, _ = at.Position()
			e.Key = keyText(at.Key()...)
		}
		return e
	}
	for _, k := range d.keys {
		r := d.rows[k.row]
		if r == nil && d.shared && d.rows[keyText(k.path[0])] == nil {
			continue
		}
		if r == nil {
			return d.unknown(k)
		}
		value, ok := r.convert(d.value(k.path))
		if !ok || r.standard == aList && d.find(append(slices.Clip(k.path), Entry(0))) == nil {
			what, hint := d.expected(k, r)
			return k.wrong(d.file, "it is not "+what, hint)
		}
		problem, hint := r.problem(value)
		if names, ok := strings.CutSuffix(k.row, ".*"); ok {
			problem, hint = textProblem(d.rows[names].Valid, k.path[len(k.path)-1])
		}
		if problem != "" {
			return k.wrong(d.file, problem, hint)
		}
		each(k, r, value)
	}
	return nil
}

func (d *Document) noteSetting(p *unstable.Parser, table place, node *unstable.Node) {
	k := d.note(p, table, node)
	if node.Value().Kind != unstable.InlineTable {
		return
	}
	for members := node.Value().Children(); members.Next(); {
		d.noteSetting(p, k, members.Node())
	}
}

func (d *Document) note(p *unstable.Parser, k place, node *unstable.Node) place {
	for parts := node.Key(); parts.Next(); {
		raw, name := parts.Node().Raw, string(parts.Node().Data)
		if k.spelled != "" {
			k.spelled, k.row = k.spelled+".", k.row+"."
		}
		k.spelled += keyText(name)
		if d.rows[k.row+"#"] != nil { // [job.sub] after [[job]]
			k.row += "#."
		}
		if d.rows[k.row+"*"] != nil {
			k.row += "*"
		} else {
			text := d.text[raw.Offset:][:raw.Length]
			copy(text, dashed(string(text)))
			name = dashed(name)
			k.row += keyText(name)
		}
		k.path = append(slices.Clip(k.path), name)
		k.line = p.Shape(raw).Start.Line
		d.keys = append(d.keys, k)
	}
	return k
}

// Entry returns the part of a key that selects a table in a list of tables, such as [[job]],
// by its index from 0. Errors do not show it.
func Entry(n int) string { return strconv.Itoa(n) }

func (d *Document) value(path []string) any {
	var v any = d.values
	for _, name := range path {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			if i, _ := strconv.Atoi(name); i < len(in) {
				v = in[i]
			}
		}
	}
	return v
}

func (d *Document) find(path []string) *place {
	if i := slices.IndexFunc(d.keys, func(k place) bool { return slices.Equal(k.path, path) }); i >= 0 {
		return &d.keys[i]
	}
	return nil
}

func (k place) wrong(file, problem, hint string) error {
	return &Error{File: file, Line: k.line, Key: k.spelled, Problem: problem, Hint: hint}
}

// Wrong returns an error about a key, or about the nearest table around it that the file
// has.
func (d *Document) Wrong(problem, hint string, path ...string) error {
	for n := len(path); n > 0; n-- {
		if k := d.find(path[:n]); k != nil {
			return k.wrong(d.file, problem, hint)
		}
	}
	return &Error{File: d.file, Problem: problem, Hint: hint}
}

// Names returns the names in a map of tables, in the order of the file.
func (d *Document) Names(table string) []string {
	var names []string
	for _, k := range d.keys {
		if k.row == table+".*" && !slices.Contains(names, k.path[1]) {
			names = append(names, k.path[1])
		}
	}
	return names
}

func (d *Document) unknown(k place) error {
	name := k.path[len(k.path)-1]
	table := strings.TrimSuffix(k.row, keyText(name))
	var known, outside []string
	for _, key := range slices.Sorted(maps.Keys(d.rows)) {
		if inner, ok := strings.CutPrefix(key, table); ok && !strings.Contains(inner, ".") {
			known = append(known, inner)
		}
		if section := "[" + key + "]"; table == "" && !strings.Contains(key, ".") {
			if d.rows[key+"."+name] != nil {
				outside = append(outside, section)
			} else if d.rows[key+".#."+name] != nil {
				outside = append(outside, "["+section+"]")
			}
		}
	}
	problem := "unknown key"
	switch {
	case len(outside) == 1:
		return k.wrong(d.file, "it is outside of its section", "write it below "+outside[0])
	case len(outside) > 1:
		return k.wrong(d.file, "it is outside of its section", "write it below one of: "+strings.Join(outside, ", "))
	case table == "":
		problem = "unknown section"
	}
	return k.wrong(d.file, problem, unknownHint(name, known))
}

func unknownHint(key string, known []string) string {
	if best := near.Name(dashed(key), known); best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "remove it, or use one of: " + strings.Join(known, ", ")
}

func (d *Document) expected(k place, r *Row) (what, hint string) {
	name := keyText(k.path[len(k.path)-1])
	switch r.standard {
	case aList:
		return "a list of tables", "write [[" + k.spelled + "]], and its keys below it"
	case aMap:
		k.spelled += "." + keyText(rules[r.Valid].example)
	case aTable:
		if names, ok := strings.CutSuffix(k.row, ".*"); ok {
			k.spelled = strings.TrimSuffix(k.spelled, name) + keyText(rules[d.rows[names].Valid].example)
		}
	default:
		what, hint = r.expected()
		return what, strings.ReplaceAll(hint, "KEY", name)
	}
	return "a table", "write [" + k.spelled + "], and its keys below it"
}

func dashed(key string) string { return strings.ReplaceAll(key, "_", "-") }

func keyText(path ...string) string {
	var parts []string
	for _, p := range path {
		if !bare.MatchString(p) {
			p = strconv.Quote(p)
		}
		parts = append(parts, p)
	}
	return strings.Join(parts, ".")
}
