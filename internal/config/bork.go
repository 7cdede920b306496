package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// BorkFile is the content of .config/bork.json (ruling B1). A missing or empty
// file gives the zero BorkFile.
type BorkFile struct {
	Checker string   // executable of the correctness checker: a clean path with slashes, relative to the root; empty means none
	Approve []string // paths and globs of files that need approval to change
	NotSent []string // paths and globs of files that the model knows by name only and cannot change
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

// It reads key by key: a decoder into a struct ignores letter case and repeated keys, and
// reports no lines.
func parseBork(text []byte) (f BorkFile, err error) {
	text = bytes.TrimRight(text, " \t\r\n")
	if len(text) == 0 {
		return f, nil
	}
	line := func(offset int64) int { return 1 + bytes.Count(text[:offset], []byte("\n")) }
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(text, new(any))); ok {
		return f, &Error{File: BorkPath, Line: line(min(syntax.Offset-1, int64(len(text)))), Problem: "it is not JSON: " + syntax.Error(),
			Hint: "write strict JSON: one object, double quotes, a comma between two members and none after the last, no comments"}
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if start, _ := dec.Token(); start != json.Delim('{') {
		return f, &Error{File: BorkPath, Line: 1, Problem: "it is not an object", Hint: `write {"correctness-checker": "./check.sh"}, or remove the file`}
	}
	rows := map[string]*Row{"correctness-checker": {Valid: "program", standard: ""}, "edits-require-approval": {Valid: "glob", standard: f.Approve}, "not-sent": {Valid: "glob", standard: f.NotSent}}
	lines, values := map[string]int{}, map[string]any{}
	for dec.More() {
		token, _ := dec.Token()
		key, _ := token.(string)
		first, r := lines[key], rows[key]
		lines[key] = line(dec.InputOffset())
		var problem, hint string
		switch {
		case first > 0:
			problem, hint = fmt.Sprintf("line %d already sets it", first), "keep one of the two"
		case r == nil:
			problem, hint = "unknown key", unknownHint(key, slices.Sorted(maps.Keys(rows)))
		default:
			var value any
			var ok bool
			_ = dec.Decode(&value) // it is JSON
			if value == nil && r.Valid == "program" {
				continue // as if there were no key
			}
			if values[key], ok = r.convert(value); !ok {
				problem, hint = r.expected()
				problem, hint = "it is not "+problem, strings.Replace(hint, "KEY = ", "", 1)
			} else {
				problem, hint = r.problem(values[key])
			}
		}
		if problem != "" {
			return f, &Error{File: BorkPath, Line: line(dec.InputOffset()), Key: keyText(key), Problem: problem, Hint: hint}
		}
	}
	f.Approve, _ = values["edits-require-approval"].([]string)
	f.NotSent, _ = values["not-sent"].([]string)
	if checker, ok := values["correctness-checker"].(string); ok {
		f.Checker = path.Clean(checker)
	}
	return f, nil
}
