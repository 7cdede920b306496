package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Load reads .config/hone.toml below root.
//
// The values are those of the rows of the table, the prices and the agents. In a struct for
// [Parse], each field has the tag "toml" with its key, which is written with dashes; the file
// may have underscores instead. The type is string, bool, int, int64, float64, [Duration],
// [Size], []string or []int. A number must not be negative.
//
// The rule in the column Valid, or the tag "valid", restricts a value further: "positive" for
// a number; for a string, or each string of a list, a choice such as "ask|none|all", or one of
//
//	line      one line of text
//	model     "provider/name"
//	models    the same, or several with commas between them
//	url       an http or https URL
//	loopback  the http URL of a server on this machine
//	variable  the name of an environment variable
//	glob      a pattern relative to the root
//	path      a path, which may begin with ~/
//
// An int64 with the rule "size", or "size>0", is a number of bytes. A struct that is a
// [Validator] checks the rest itself.
//
// The column Opens, or the tag "opens", says what the setting permits, to the user who is
// asked to trust it. A tag on a table applies to all settings in it. It is "-" for a setting
// that needs no trust, and "program" for one that names a program in the project. A setting
// without either needs trust.
func Load(root string) (File, error) { return loadFile(root, false) }

// LoadShared is Load for a program with a loop of its own: it ignores the tables of loops.
func LoadShared(root string) (File, error) { return loadFile(root, true) }

func loadFile(root string, shared bool) (File, error) {
	text, ok, err := read(root, HonePath)
	if err != nil || !ok {
		return File{}, err
	}
	return parseHone(text, shared)
}

func parseHone(text []byte, shared bool) (File, error) {
	f := File{keys: map[string]any{}}
	d := &Document{file: HonePath, text: slices.Clone(text), into: target(&f, shared), shared: shared}
	if err := d.fill(); err != nil {
		return File{}, err
	}
	if err := f.completePrices(d); err != nil {
		return File{}, err
	}
	for _, k := range d.keys {
		if v, _, _ := d.lookup(k.path); len(k.path) == 2 && v.Kind() != reflect.Struct {
			f.keys[keyText(k.path)] = plain(v.Interface())
		}
	}
	f.Opens = d.settingsToTrust()
	return f, nil
}

func plain(value any) any {
	switch value := value.(type) {
	case Duration:
		return value.Value()
	case Size:
		return int64(value)
	}
	return value
}

// Validator is implemented by tables that have more to check than the tags say.
type Validator interface {
	// Valid returns the key of the first wrong value, what is wrong with it, and
	// what the user should write instead. An empty key means the whole table. An
	// empty problem means that all is well. The tags have been checked before.
	Valid() (key, problem, hint string)
}

// Parse reads a TOML file other than a configuration, such as a list of cases, with the
// tags and errors of [Load]. into is a pointer to the struct to fill, which has a pointer
// to a struct, a map of structs or a slice of structs for each table. file is the name for
// errors.
func Parse(file string, text []byte, into any) (*Document, error) {
	if err := checkText(file, text); err != nil {
		return nil, err
	}
	d := &Document{file: file, text: slices.Clone(text), into: reflect.ValueOf(into).Elem()}
	return d, d.fill()
}

// Names returns the names in a map of tables, in the order of the file.
func (d *Document) Names(table string) []string {
	var names []string
	for _, k := range d.keys {
		if len(k.path) == 2 && k.path[0] == table && !slices.Contains(names, k.path[1]) {
			names = append(names, k.path[1])
		}
	}
	return names
}

// Wrong returns an error about a key, or about the nearest table around it that the file
// has.
func (d *Document) Wrong(problem, hint string, path ...string) error {
	for n := len(path); n > 0; n-- {
		if k, ok := d.find(path[:n]...); ok {
			return k.wrong(problem, hint)
		}
	}
	return &Error{File: d.file, Problem: problem, Hint: hint}
}

// target returns a struct with a pointer to each section.
func target(f *File, shared bool) reflect.Value {
	var sections []string
	fields := map[string][]reflect.StructField{}
	add := func(r *Row, full string) {
		section, key, _ := strings.Cut(full, ".")
		if fields[section] == nil {
			sections = append(sections, section)
		}
		fields[section] = append(fields[section], reflect.StructField{Name: fmt.Sprintf("F%d", len(fields[section])), Type: r.fileType(),
			Tag: reflect.StructTag(fmt.Sprintf("toml:%q valid:%q opens:%q", key, r.Valid, r.Opens))})
	}
	for _, key := range slices.Sorted(maps.Keys(keys())) {
		if section, _, _ := strings.Cut(key, "."); !shared || !hasWord(loopNames, section) {
			add(keys()[key], key)
		}
	}
	all := []reflect.StructField{{Name: "Prices", Type: reflect.TypeOf(&f.Prices), Tag: `toml:"prices" valid:"priced" opens:"costs are counted at this price"`},
		{Name: "Commands", Type: reflect.TypeOf(&f.Commands), Tag: `toml:"commands" valid:"agent" opens:"this program takes the place of a model, as you"`}}
	for i, name := range sections {
		all = append(all, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: reflect.PointerTo(reflect.StructOf(fields[name])), Tag: reflect.StructTag(fmt.Sprintf("toml:%q", name))})
	}
	into := reflect.New(reflect.StructOf(all)).Elem()
	for i := range all {
		into.Field(i).Set(reflect.New(all[i].Type.Elem()))
	}
	into.Field(0).Set(reflect.ValueOf(&f.Prices))
	into.Field(1).Set(reflect.ValueOf(&f.Commands))
	return into
}

// keys returns the rows by the keys of the file, such as "task.rounds".
func keys() map[string]*Row {
	rows := map[string]*Row{}
	for _, r := range table {
		for _, loop := range strings.Fields(loopNames) {
			for _, key := range r.keys(loop) {
				rows[key] = r
			}
		}
	}
	return rows
}

func (r *Row) fileType() reflect.Type {
	switch r.standard.(type) {
	case time.Duration:
		return reflect.TypeFor[Duration]()
	case int64:
		if strings.HasPrefix(r.Valid, "size") {
			return reflect.TypeFor[Size]()
		}
	}
	return reflect.TypeOf(r.standard)
}

// A missing price of other tokens than cached ones is an error.
func (f *File) completePrices(d *Document) error {
	for _, k := range d.keys {
		if len(k.path) != 2 || k.path[0] != "prices" {
			continue
		}
		price := f.Prices[k.path[1]]
		for _, key := range []string{"input", "output"} {
			if _, ok := d.find("prices", k.path[1], key); !ok {
				return k.wrong(fmt.Sprintf("the key %q is missing", key), fmt.Sprintf("write %s = 0 if it costs nothing", key))
			}
		}
		if _, ok := d.find("prices", k.path[1], "cache-read"); !ok {
			price.CacheRead = price.Input
		}
		if _, ok := d.find("prices", k.path[1], "cache-write"); !ok {
			price.CacheWrite = price.Input
		}
		f.Prices[k.path[1]] = price
	}
	return nil
}
