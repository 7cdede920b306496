package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// BorkFile is what .config/bork.json says (ruling B1). The zero BorkFile is that of a
// missing or empty file.
type BorkFile struct {
	// Checker is the correctness checker's executable, relative to the root,
	// cleaned and with slashes; empty means that there is none.
	Checker string
	// Approve are the paths and globs whose changes a person must approve.
	Approve []string
	// NotSent are the paths and globs that a model is told of, and neither
	// shown nor allowed to change.
	NotSent []string
}

// The keys of .config/bork.json.
const (
	keyChecker = "correctness-checker"
	keyApprove = "edits-require-approval"
	keyNotSent = "not-sent"
)

func borkKeys() []string { return []string{keyChecker, keyApprove, keyNotSent} }

// Bork reads .config/bork.json below root, which is the Git root.
func Bork(root string) (BorkFile, error) {
	text, ok, err := read(root, BorkPath)
	if err != nil || !ok {
		return BorkFile{}, err
	}
	return parseBork(text)
}

// borkReader reads the file token by token, because a decoder into a struct
// tells neither lines nor keys that stand twice or in other letters.
type borkReader struct {
	text []byte
	dec  *json.Decoder
	key  string // being read
	line int    // where it stands
	bork BorkFile
}

func parseBork(text []byte) (BorkFile, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return BorkFile{}, nil
	}
	r := &borkReader{text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	if err := r.file(); err != nil {
		return BorkFile{}, err
	}
	return r.bork, nil
}

// file reads the one object that the file is.
func (r *borkReader) file() error {
	start, err := r.token()
	if err != nil {
		return err
	}
	if start != json.Delim('{') {
		return r.wrong("it is not an object", `write {"correctness-checker": "./check.sh"}, or remove the file`)
	}
	seen := map[string]int{}
	for r.dec.More() {
		if err := r.member(seen); err != nil {
			return err
		}
	}
	r.key, r.line = "", 0
	if _, err := r.token(); err != nil {
		return err
	}
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return r.wrong("something follows the object", "remove it")
	}
	return nil
}

// member reads a key and its value. seen has the lines of those before it.
func (r *borkReader) member(seen map[string]int) error {
	r.key, r.line = "", 0
	name, err := r.token()
	if err != nil {
		return err
	}
	key, ok := name.(string)
	if !ok {
		return r.wrong("a key is missing", "write a key in double quotes")
	}
	r.key, r.line = key, r.here()
	if !isOne(key, borkKeys()) {
		return r.wrong("there is no such key", unknownHint(key, borkKeys()))
	}
	if first, twice := seen[key]; twice {
		return r.wrong(fmt.Sprintf("it stands in line %d already", first), "keep one of the two")
	}
	seen[key] = r.line
	return r.value()
}

func (r *borkReader) value() error {
	switch r.key {
	case keyApprove:
		return r.patterns(&r.bork.Approve)
	case keyNotSent:
		return r.patterns(&r.bork.NotSent)
	}
	value, err := r.token()
	if err != nil || value == nil {
		return err
	}
	r.line = r.here()
	name, ok := value.(string)
	if !ok {
		return r.wrong("it is not a string", `write the path of a program in the project, such as "./check.sh", or null`)
	}
	r.bork.Checker, err = r.checker(name)
	return err
}

// checker is the cleaned path of a program in the project.
func (r *borkReader) checker(name string) (string, error) {
	const hint = `write a path from the Git root, such as "./check.sh"`
	clean := path.Clean(name)
	switch {
	case strings.ContainsRune(name, 0):
		return "", r.wrong("there is a NUL in the path", hint)
	case path.IsAbs(name) || filepath.IsAbs(filepath.FromSlash(name)):
		return "", r.wrong(fmt.Sprintf("%q is an absolute path", name), hint)
	case name == "" || clean == "." || strings.HasSuffix(name, "/"):
		return "", r.wrong(fmt.Sprintf("%q names no file", name), hint+", or null for none")
	case !filepath.IsLocal(filepath.FromSlash(clean)):
		return "", r.wrong(fmt.Sprintf("%q leads out of the project", name), hint)
	}
	return clean, nil
}

// patterns reads a list of paths and globs.
func (r *borkReader) patterns(into *[]string) error {
	start, err := r.token()
	if err != nil {
		return err
	}
	if start != json.Delim('[') {
		r.line = r.here()
		return r.wrong("it is not a list", `write a list of paths or globs, such as ["flake.lock", "docs/**"]`)
	}
	for r.dec.More() {
		item, err := r.token()
		if err != nil {
			return err
		}
		r.line = r.here()
		pattern, ok := item.(string)
		if !ok {
			return r.wrong("there is something else than a string in the list", `write a path or a glob in double quotes, such as "docs/**"`)
		}
		if problem, hint := badPattern(pattern); problem != "" {
			return r.wrong(problem, hint)
		}
		*into = append(*into, pattern)
	}
	_, err = r.token()
	return err
}

// badPattern says what is wrong with a path or glob that is relative to the
// root, and what to write instead; nothing where it is right.
func badPattern(pattern string) (problem, hint string) {
	const relative = `write it relative to the root, such as "docs/**"`
	parts := strings.Split(strings.ReplaceAll(pattern, `\`, "/"), "/")
	switch {
	case pattern == "":
		return "an empty pattern means nothing", "remove it"
	case strings.ContainsRune(pattern, 0):
		return fmt.Sprintf("there is a NUL in %q", pattern), "remove it"
	case strings.HasPrefix(pattern, "/") || filepath.IsAbs(filepath.FromSlash(pattern)):
		return fmt.Sprintf("%q is absolute", pattern), relative
	case slices.Contains(parts, ".."):
		return fmt.Sprintf(`%q has a ".." in it`, pattern), relative
	case !doublestar.ValidatePattern(pattern):
		return fmt.Sprintf("%q is not a glob", pattern), `close its brackets and braces, or write \[ and \{ for the letters themselves`
	}
	return "", ""
}

// token is the next one, or an error with its line.
func (r *borkReader) token() (json.Token, error) {
	token, err := r.dec.Token()
	if err == nil {
		return token, nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		r.line = r.lineAt(int64(len(bytes.TrimRight(r.text, " \t\r\n"))))
		return nil, r.wrong("it ends too early", "close what is open: strings, lists and the object")
	}
	offset := r.dec.InputOffset()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = syntax.Offset
	}
	r.line = r.lineAt(offset)
	return nil, r.wrong("it is not JSON: "+err.Error(), "write strict JSON: double quotes, a comma between two members and none after the last, no comments")
}

// here is the line in which the last token ends.
func (r *borkReader) here() int { return r.lineAt(r.dec.InputOffset()) }

func (r *borkReader) lineAt(offset int64) int {
	return 1 + bytes.Count(r.text[:min(offset, int64(len(r.text)))], []byte("\n"))
}

// wrong is an error at the key that is being read, or at the last token.
func (r *borkReader) wrong(problem, hint string) error {
	line := r.line
	if line == 0 {
		line = r.here()
	}
	key := ""
	if r.key != "" {
		key = keyText([]string{r.key})
	}
	return &Error{File: BorkPath, Line: line, Key: key, Problem: problem, Hint: hint}
}
