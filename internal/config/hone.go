package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// File is the content of .config/hone.toml.
type File struct {
	Prices   map[string]Price // [prices."provider/name"], by "provider/name"
	Commands map[string]Agent // [commands.NAME], by NAME, as in "command/NAME"

	// Opens are the settings that need the user's trust, in the order of the file.
	Opens []Opening

	keys  map[string]any // values by their keys, such as "task.rounds"
	lines map[string]int // of the keys
}

// Wrong returns an error about a key of the file, such as "task.rounds".
func (f File) Wrong(key, problem, hint string) error {
	return &Error{File: HonePath, Line: f.lines[key], Key: key, Problem: problem, Hint: hint}
}

// Price is one [prices."provider/name"] section, in USD per million tokens.
// Without cache-read or cache-write, cached tokens cost as much as Input.
type Price struct {
	Input      float64 `toml:"input"`
	Output     float64 `toml:"output"`
	CacheRead  float64 `toml:"cache-read"`
	CacheWrite float64 `toml:"cache-write"`
}

// Opening is a key of a configuration file that needs the user's trust (ruling G14).
type Opening struct {
	File  string // relative to the root of the project
	Line  int    // counted from 1
	Key   string // as in "model.base-url"
	Value string // as TOML writes it
	Opens string // what it permits, in words; empty if unknown
}

// String returns the setting without its line, so that it stays the same if other lines
// of the file change.
func (s Opening) String() string { return s.File + ": " + s.Key + " = " + s.Value }

// InWords returns the setting with its place, and what it opens. The text is not safe to print.
func (s Opening) InWords() string {
	text := fmt.Sprintf("%s:%d: %s = %s", s.File, s.Line, s.Key, s.Value)
	if s.Opens != "" {
		text += ": " + s.Opens
	}
	return text
}

// Load reads .config/hone.toml below root: the settings of the table, prices and agents.
func Load(root string) (File, error) {
	text, ok, err := read(root, HonePath)
	if err != nil || !ok {
		return File{}, err
	}
	return parseHone(text)
}

func parseHone(text []byte) (File, error) {
	tables := struct {
		Prices   map[string]Price `toml:"prices" valid:"priced" opens:"costs are counted at this price"`
		Commands map[string]Agent `toml:"commands" valid:"name" opens:"this program takes the place of a model, as you"`
	}{map[string]Price{}, map[string]Agent{}}
	f := File{keys: map[string]any{}, lines: map[string]int{}}
	d := &Document{file: HonePath, rows: rows{}}
	d.rows.addFields("", reflect.TypeOf(tables), "")
	for _, r := range table {
		for _, loop := range strings.Fields(loopNames) {
			for _, key := range r.keys(loop) {
				section, _, _ := strings.Cut(key, ".")
				d.rows[key], d.rows[section] = r, &Row{standard: aTable}
			}
		}
	}
	if err := d.read(text, &tables); err != nil {
		return File{}, err
	}
	for _, at := range d.found {
		r, value := d.rows[at.row], valueText(at.value)
		if at.value == nil {
			continue
		}
		if r.Name != "" {
			f.keys[at.row], f.lines[at.row] = at.value, at.line
		}
		if value != "[]" && r.Opens != safe && r.Opens != "program" {
			f.Opens = append(f.Opens, Opening{File: HonePath, Line: at.line, Key: keyText(at.path...), Value: value, Opens: r.Opens})
		}
	}
	f.Prices, f.Commands = tables.Prices, tables.Commands
	for _, name := range d.Names("prices") {
		p := f.Prices[name]
		given := func(key string) bool { return d.lines[joined([]string{"prices", name, key})] > 0 }
		for _, key := range []string{"input", "output"} {
			if !given(key) {
				return File{}, d.Wrong(fmt.Sprintf("the key %q is missing", key), fmt.Sprintf("write %s = 0 if it costs nothing", key), "prices", name)
			}
		}
		if !given("cache-read") {
			p.CacheRead = p.Input
		}
		if !given("cache-write") {
			p.CacheWrite = p.Input
		}
		f.Prices[name] = p
	}
	for _, name := range d.Names("commands") {
		if key, problem, hint := f.Commands[name].valid(); problem != "" {
			return File{}, d.Wrong(problem, hint, "commands", name, key)
		}
	}
	return f, nil
}

func valueText(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case []string:
		texts := make([]string, len(v))
		for i := range v {
			texts[i] = strconv.Quote(v[i])
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case []int64:
		return strings.ReplaceAll(fmt.Sprint(v), " ", ", ")
	}
	return fmt.Sprint(v)
}

// Programs returns the command lines of the file that only this loop runs, or, if loop is
// empty, those that all loops run, each with its key.
func (f File) Programs(loop string) (lines []string) {
	for _, r := range table {
		if line, _ := f.keys[r.Key].(string); r.Opens == "program" && line != "" && (r.Loops == "") == (loop == "") && r.has(loop) {
			lines = append(lines, fmt.Sprintf("%s (%s in %s)", line, r.Key, HonePath))
		}
	}
	return lines
}

// Variables returns the names of the user's variables that the file gives to commands,
// the check and agents, but not those of hooks.
func (f File) Variables() []string {
	v := f.Shared()
	names := slices.Concat(CheckEnv.In(v), Variables.In(v))
	for _, a := range f.Commands {
		names = append(names, a.Env...)
	}
	return names
}
