package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

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

func (d *Document) settingsToTrust() []Opening {
	var all []Opening
	for _, k := range d.keys {
		v, _, _ := d.lookup(k.path)
		text := d.opensText(k)
		isTable := v.Kind() == reflect.Struct || v.Kind() == reflect.Map
		isEmpty := v.Kind() == reflect.Slice && v.Len() == 0
		if isTable || isEmpty || text == "-" || text == "program" {
			continue
		}
		all = append(all, Opening{File: HonePath, Line: k.at.Line, Key: keyText(k.path), Value: valueText(v), Opens: text})
	}
	return all
}

func (d *Document) opensText(k key) string {
	for n := len(k.path); n > 0; n-- {
		_, tag, _ := d.lookup(k.path[:n])
		if text := tag.Get("opens"); text != "" {
			return text
		}
	}
	return ""
}

func valueText(v reflect.Value) string {
	switch v = reflect.Indirect(v); v.Kind() {
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Slice:
		texts := make([]string, v.Len())
		for i := range texts {
			texts[i] = valueText(v.Index(i))
		}
		return "[" + strings.Join(texts, ", ") + "]"
	}
	return fmt.Sprint(v)
}
