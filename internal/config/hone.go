package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Load reads .config/hone.toml below root. It also fills sections, the tables
// of the loops by name: each value is a pointer to a struct. A key that the file
// does not have leaves its field as it is. After an error the structs can be filled
// in part.
//
// Each field has the tag "toml" with its key, which is written with dashes; the
// file may have underscores instead. The type is string, bool, int, int64,
// float64, [Duration], [Size], []string or []int. A number must not be negative.
//
// The tag "valid" restricts a field further: "positive" for a number; for a
// string, or each string of a list, a choice such as "ask|none|all", or one of
//
//	line      one line of text
//	model     "provider/name"
//	models    the same, or several with commas between them
//	url       an http or https URL
//	variable  the name of an environment variable
//	glob      a pattern relative to the root
//	path      a path, which may begin with ~/
//
// A struct that is a [Validator] checks the rest itself.
//
// The tag "opens" says what the setting permits, to the user who is asked to trust it. A
// tag on a table applies to all settings in it. It is "-" for a setting that needs no
// trust, and "program" for one that names a program in the project. A setting without the
// tag needs trust.
func Load(root string, sections map[string]any) (File, error) {
	text, ok, err := read(root, HonePath)
	if err != nil || !ok {
		return File{}, err
	}
	return parseDocument(text, sections, false)
}

// LoadShared is Load for a program that does not know the tables of the loops: it
// ignores them.
func LoadShared(root string) (File, error) {
	text, ok, err := read(root, HonePath)
	if err != nil || !ok {
		return File{}, err
	}
	return parseDocument(text, nil, true)
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

func parseDocument(text []byte, sections map[string]any, shared bool) (File, error) {
	var f File
	d := &Document{file: HonePath, text: slices.Clone(text), into: target(&f, sections), shared: shared}
	if err := d.fill(); err != nil {
		return File{}, err
	}
	if err := f.completePrices(d); err != nil {
		return File{}, err
	}
	f.Opens = d.settingsToTrust()
	return f, nil
}

// target returns a struct with a pointer to each section.
func target(f *File, sections map[string]any) reflect.Value {
	var fields []reflect.StructField
	var pointers []reflect.Value
	for shared, value := range reflect.ValueOf(f).Elem().Fields() {
		if shared.Tag.Get("toml") == "-" {
			continue
		}
		fields = append(fields, reflect.StructField{Name: shared.Name, Type: reflect.PointerTo(shared.Type), Tag: shared.Tag})
		pointers = append(pointers, value.Addr())
	}
	for i, name := range slices.Sorted(maps.Keys(sections)) {
		pointer := reflect.ValueOf(sections[name])
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Section%d", i), Type: pointer.Type(), Tag: reflect.StructTag(fmt.Sprintf("toml:%q", name))})
		pointers = append(pointers, pointer)
	}
	all := reflect.New(reflect.StructOf(fields)).Elem()
	for i, pointer := range pointers {
		all.Field(i).Set(pointer)
	}
	return all
}

// completePrices sets the prices of cached tokens that the file does not set.
// A missing price of other tokens is an error.
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
