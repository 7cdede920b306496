package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
)

// BorkFile is the content of .config/bork.json (ruling B1). A missing or empty
// file gives the zero BorkFile.
type BorkFile struct {
	Checker string   `toml:"correctness-checker" valid:"program"` // executable: a clean path with slashes, relative to the root; empty means none
	Approve []string `toml:"edits-require-approval" valid:"glob"` // paths and globs of files that need approval to change
	NotSent []string `toml:"not-sent" valid:"glob"`               // paths and globs of files that the model knows by name only and cannot change
}

// Bork reads .config/bork.json below root, which is the root of the Git
// repository.
func Bork(root string) (BorkFile, error) {
	text, ok, err := read(root, BorkPath)
	if err != nil || !ok {
		return BorkFile{}, err
	}
	return parseBork(text)
}

func parseBork(text []byte) (f BorkFile, err error) {
	d := &Document{file: BorkPath, rows: rows{}, exact: true}
	d.rows.addFields("", reflect.TypeOf(f), "")
	if err = d.read(text, &f); err != nil {
		return BorkFile{}, err
	}
	if f.Checker != "" {
		f.Checker = path.Clean(f.Checker)
	}
	return f, nil
}

// A decoder into a struct ignores letter case and repeated keys, and reports no lines.
func decodeJSON(text []byte) (values map[string]any, lines map[string]int, wrong *Error) {
	values, lines = map[string]any{}, map[string]int{}
	text = bytes.TrimRight(text, " \t\r\n")
	if len(text) == 0 {
		return values, lines, nil
	}
	line := func(offset int64) int { return 1 + bytes.Count(text[:offset], []byte("\n")) }
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(text, new(any))); ok {
		return nil, nil, &Error{Line: line(min(syntax.Offset-1, int64(len(text)))), Problem: "it is not JSON: " + syntax.Error(),
			Hint: "write strict JSON: one object, double quotes, a comma between two members and none after the last, no comments"}
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if start, _ := dec.Token(); start != json.Delim('{') {
		return nil, nil, &Error{Line: 1, Problem: "it is not an object", Hint: `write {"correctness-checker": "./check.sh"}, or remove the file`}
	}
	for dec.More() {
		token, _ := dec.Token()
		key, _ := token.(string)
		at := line(dec.InputOffset())
		if _, twice := values[key]; twice {
			return nil, nil, &Error{Line: at, Key: keyText(key), Problem: fmt.Sprintf("line %d already sets it", lines[joined([]string{key})]), Hint: "keep one of the two"}
		}
		lines[joined([]string{key})] = at
		var value any
		_ = dec.Decode(&value) // it is JSON
		values[key] = value
	}
	return values, lines, nil
}
