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

// Document is a file whose keys and values have been checked, with the place of each.
type Document struct {
	file  string // for errors
	rows  rows
	exact bool           // a key has one spelling: in JSON
	lines map[string]int // of keys, by their paths; see joined
	found []place        // with dashes, in the order of the file
	wrong *Error         // the first; nil means none
}

// place is a key or a table of a document.
type place struct {
	path  []string
	row   string // its key
	line  int
	value any // of the row's type; nil for a table
}

// rows are what a file may have, by key. In a key, "*" stands for a name that the user chooses
// and "#" for the index of a table in a list. A row of a table has the type [kind].
type rows map[string]*Row

type kind int

const (
	aTable kind = iota
	aMap        // of tables; Valid is the rule of their names
	aList       // of tables
)

// Parse reads a TOML file other than a configuration, such as a list of cases, with the
// errors of [Load]. into is a pointer to the struct to fill, which has a struct, a map of
// structs or a slice of structs for each table. file is the name for errors.
//
// Each field has the tag "toml" with its key, in which users may write underscores for dashes, and
// may have the tags "valid" and "opens" for the columns of [Row]. Its type is string, bool, int,
// int64, float64, []string or []int.
func Parse(file string, text []byte, into any) (*Document, error) {
	d := &Document{file: file, rows: rows{}}
	d.rows.addFields("", reflect.TypeOf(into).Elem(), "")
	return d, d.read(text, into)
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
			row.standard = aList
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

func (d *Document) read(text []byte, into any) error {
	if err := checkText(d.file, text); err != nil {
		return err
	}
	decode := decodeTOML
	if d.exact {
		decode = decodeJSON
	}
	var values map[string]any
	if values, d.lines, d.wrong = decode(text); d.wrong == nil {
		values = d.check(values, place{})
	}
	if d.wrong != nil {
		d.wrong.File = d.file
		return d.wrong
	}
	slices.SortStableFunc(d.found, func(a, b place) int { return a.line - b.line })
	text, err := toml.Marshal(values)
	if err == nil {
		err = toml.Unmarshal(text, into)
	}
	return err
}

// check returns a table with dashes in its keys and values of the rows' types.
func (d *Document) check(table map[string]any, in place) map[string]any {
	checked := map[string]any{}
	for _, spelled := range slices.Sorted(maps.Keys(table)) {
		at, name := d.below(in, spelled), spelled
		if at.row += "*"; d.rows[at.row] == nil {
			if !d.exact {
				name = dashed(spelled)
			}
			at.row = in.row + keyText(name)
		}
		r, value := d.rows[at.row], table[spelled]
		switch _, twice := checked[name]; {
		case r != nil && value == nil && r.Valid == "program": // as if there were no key
			continue
		case r == nil:
			d.fail(at, "unknown key", d.unknownHint(in.row, name))
			continue
		case twice:
			d.fail(at, "it is there twice, with a dash and with an underscore", "keep one of the two")
		}
		checked[name] = d.convert(&at, r, value)
		if names, ok := strings.CutSuffix(at.row, ".*"); ok {
			problem, hint := textProblem(d.rows[names].Valid, name)
			d.fail(at, problem, hint)
		}
		at.path[len(at.path)-1] = name
		d.found = append(d.found, at)
	}
	return checked
}

func (d *Document) below(in place, name string) place {
	at := place{path: append(slices.Clone(in.path), name), row: in.row}
	at.line = cmp.Or(d.lines[joined(at.path)], in.line)
	return at
}

func (d *Document) convert(at *place, r *Row, value any) any {
	inner, key := *at, keyText(at.path...)
	switch r.standard {
	case aTable, aMap:
		if table, ok := value.(map[string]any); ok {
			inner.row += "."
			return d.check(table, inner)
		}
		if r.standard == aMap {
			key += ".NAME"
		}
		d.fail(*at, "it is not a table", "write ["+key+"], and its keys below it")
		return nil
	case aList:
		inner.row += ".#."
		var tables []any
		list, ok := value.([]any)
		for i, element := range list {
			table, isTable := element.(map[string]any)
			ok = ok && isTable
			tables = append(tables, d.check(table, d.below(inner, Entry(i))))
		}
		if !ok {
			d.fail(*at, "it is not a list of tables", "write [["+key+"]], and its keys below it")
		}
		return tables
	}
	checked, problem, hint := r.check(value)
	name := keyText(at.path[len(at.path)-1]) + " = "
	if d.exact {
		name = ""
	}
	d.fail(*at, problem, strings.ReplaceAll(hint, "KEY = ", name))
	at.value = checked
	return checked
}

// fail notes an error, if there is one and no other is before it in the file.
func (d *Document) fail(at place, problem, hint string) {
	if problem != "" && (d.wrong == nil || at.line < d.wrong.Line) {
		d.wrong = &Error{Line: at.line, Key: keyText(at.path...), Problem: problem, Hint: hint}
	}
}

// Entry returns the part of a key that selects a table in a list of tables, such as [[job]],
// by its index from 0. Errors do not show it.
func Entry(n int) string { return "#" + strconv.Itoa(n) }

// Wrong returns an error about a key, or about the nearest table around it that the file
// has.
func (d *Document) Wrong(problem, hint string, path ...string) error {
	for n := len(path); n > 0; n-- {
		if line := d.lines[joined(path[:n])]; line > 0 {
			return &Error{File: d.file, Line: line, Key: keyText(path[:n]...), Problem: problem, Hint: hint}
		}
	}
	return &Error{File: d.file, Problem: problem, Hint: hint}
}

// Names returns the names in a map of tables, in the order of the file.
func (d *Document) Names(table string) []string {
	var names []string
	for _, at := range d.found {
		if at.row == table+".*" {
			names = append(names, at.path[1])
		}
	}
	return names
}

func (d *Document) unknownHint(table, name string) string {
	var known []string
	for _, key := range slices.Sorted(maps.Keys(d.rows)) {
		if inner, ok := strings.CutPrefix(key, table); ok && !strings.Contains(inner, ".") {
			known = append(known, inner)
		}
	}
	if best := near.Name(dashed(name), known); best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "remove it, or use one of: " + strings.Join(known, ", ")
}

// go-toml does not return where an accepted value is.
func decodeTOML(text []byte) (values map[string]any, lines map[string]int, wrong *Error) {
	if err := toml.Unmarshal(text, &values); err != nil {
		wrong = &Error{Problem: strings.TrimPrefix(err.Error(), "toml: "), Hint: "write TOML: sections in brackets, and lines such as rounds = 5"}
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			wrong.Line, _ = at.Position()
			wrong.Key = keyText(at.Key()...)
		}
		return nil, nil, wrong
	}
	lines = map[string]int{}
	lists := map[string]int{} // numbers of their tables so far
	var p unstable.Parser
	p.Reset(text)
	var note func(path []string, node *unstable.Node) ([]string, int)
	note = func(path []string, node *unstable.Node) (_ []string, line int) {
		for parts := node.Key(); parts.Next(); {
			if n := lists[joined(path)]; n > 0 { // [job.sub] after [[job]]
				path = append(slices.Clip(path), Entry(n-1))
			}
			path = append(slices.Clip(path), string(parts.Node().Data))
			line = p.Shape(parts.Node().Raw).Start.Line
			lines[joined(path)] = cmp.Or(lines[joined(path)], line)
		}
		if node.Kind == unstable.KeyValue && node.Value().Kind == unstable.InlineTable {
			for members := node.Value().Children(); members.Next(); {
				note(path, members.Node())
			}
		}
		return path, line
	}
	var table []string
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind == unstable.KeyValue {
			note(table, e)
			continue
		}
		var line int
		if table, line = note(nil, e); e.Kind == unstable.ArrayTable {
			lists[joined(table)]++
			table = append(table, Entry(lists[joined(table)]-1))
			lines[joined(table)] = line
		}
	}
	return values, lines, nil
}

// joined makes a path one text, which is the same for dashes and underscores.
func joined(path []string) string { return dashed(strings.Join(path, "\x00")) }

func dashed(key string) string { return strings.ReplaceAll(key, "_", "-") }

func keyText(path ...string) string {
	var parts []string
	for _, p := range path {
		if strings.HasPrefix(p, "#") { // an entry of a list
			continue
		}
		if !bare.MatchString(p) {
			p = strconv.Quote(p)
		}
		parts = append(parts, p)
	}
	return strings.Join(parts, ".")
}
