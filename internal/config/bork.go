package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
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

func parseBork(text []byte) (BorkFile, error) {
	end := len(bytes.TrimRight(text, " \t\r\n"))
	if end == 0 {
		return BorkFile{}, nil
	}
	r := &borkReader{text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	err := json.Unmarshal(text, new(any))
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return BorkFile{}, &Error{File: BorkPath, Line: r.line(min(int(syntax.Offset)-1, end)), Problem: "it is not JSON: " + err.Error(),
			Hint: "write strict JSON: one object, double quotes, a comma between two members and none after the last, no comments"}
	}
	if start, _ := r.dec.Token(); start != json.Delim('{') {
		return BorkFile{}, r.wrong("it is not an object", `write {"correctness-checker": "./check.sh"}, or remove the file`)
	}
	lines := map[string]int{}
	for r.dec.More() {
		if err := r.member(lines); err != nil {
			return BorkFile{}, err
		}
	}
	return r.file, nil
}

// borkReader reads valid JSON key by key: a decoder into a struct ignores
// letter case and repeated keys, and reports no lines.
type borkReader struct {
	text []byte
	dec  *json.Decoder
	key  string // that is being read
	file BorkFile
}

// lines has the lines of earlier keys.
func (r *borkReader) member(lines map[string]int) error {
	token, _ := r.dec.Token()
	r.key, _ = token.(string)
	if first, ok := lines[r.key]; ok {
		return r.wrong(fmt.Sprintf("line %d already sets it", first), "keep one of the two")
	}
	lines[r.key] = r.line(int(r.dec.InputOffset()))
	switch r.key {
	case "correctness-checker":
		return r.checker()
	case "edits-require-approval":
		return r.globs(&r.file.Approve)
	case "not-sent":
		return r.globs(&r.file.NotSent)
	}
	return r.wrong("unknown key", unknownHint(r.key, []string{"correctness-checker", "edits-require-approval", "not-sent"}))
}

// The checker is the path of a program in the project, or null.
func (r *borkReader) checker() error {
	const hint = `write a path relative to the root of the Git repository, such as "./check.sh", or null for none`
	var name *string
	if r.dec.Decode(&name) != nil {
		return r.wrong("it is not a string", hint)
	}
	if name == nil {
		return nil
	}
	r.file.Checker = path.Clean(*name)
	switch {
	case strings.ContainsRune(*name, 0):
		return r.wrong("the path contains a NUL character", hint)
	case path.IsAbs(*name) || filepath.IsAbs(filepath.FromSlash(*name)):
		return r.wrong(fmt.Sprintf("%q is an absolute path", *name), hint)
	case r.file.Checker == "." || strings.HasSuffix(*name, "/"):
		return r.wrong(fmt.Sprintf("%q is not the path of a file", *name), hint)
	case !filepath.IsLocal(filepath.FromSlash(r.file.Checker)):
		return r.wrong(fmt.Sprintf("%q is outside the project", *name), hint)
	}
	return nil
}

func (r *borkReader) globs(into *[]string) error {
	var globs []*string
	if r.dec.Decode(&globs) != nil || globs == nil || slices.Contains(globs, nil) {
		return r.wrong("it is not a list of strings", `write a list, such as ["flake.lock", "docs/**"]`)
	}
	for _, glob := range globs {
		if problem, hint := textProblem("glob", *glob); problem != "" {
			return r.wrong(problem, hint)
		}
		*into = append(*into, *glob)
	}
	return nil
}

func (r *borkReader) line(offset int) int { return 1 + bytes.Count(r.text[:offset], []byte("\n")) }

// The error is at what the reader read last.
func (r *borkReader) wrong(problem, hint string) error {
	e := &Error{File: BorkPath, Line: r.line(int(r.dec.InputOffset())), Problem: problem, Hint: hint}
	if r.key != "" {
		e.Key = keyText([]string{r.key})
	}
	return e
}
