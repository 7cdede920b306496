package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// object is a JSON object whose values are not read yet. Unlike a struct it
// tells a key from one in other letters, and a missing one from null.
type object map[string]json.RawMessage

// parseBork reads the JSON of a correctness checker. Keys that the format does
// not know are passed over. Either of the two lists may be missing, which is
// an empty one, but not both: then the output is something else.
func parseBork(out []byte, redact func(string) string) ([]Finding, error) {
	top, err := parseTop(out)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	lists := 0
	for _, key := range []string{"per_file_findings", "overall_findings"} {
		raw, ok := top[key]
		if !ok {
			continue
		}
		lists++
		found, err := parseList(raw, key, redact)
		if err != nil {
			return nil, err
		}
		findings = append(findings, found...)
	}
	if lists == 0 {
		return nil, errors.New(`it has neither "per_file_findings" nor "overall_findings"`)
	}
	return findings, nil
}

// parseTop reads the one object that the output is.
func parseTop(out []byte) (object, error) {
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, errors.New("it is empty")
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	var top object
	if err := dec.Decode(&top); err != nil {
		return nil, positioned(out, err)
	}
	if top == nil {
		return nil, errors.New("it is null, not an object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something follows the object in line %d", lineAt(out, dec.InputOffset()))
	}
	return top, nil
}

// positioned words a decoder's error with the line that it stands in.
func positioned(out []byte, err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d: %w", lineAt(out, syntax.Offset), err)
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errors.New("it is not an object")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends before the object does")
	}
	return err
}

// lineAt is the number of the line that so many bytes end in.
func lineAt(text []byte, offset int64) int {
	offset = min(max(offset, 0), int64(len(text)))
	return 1 + bytes.Count(text[:offset], []byte("\n"))
}

func parseList(raw json.RawMessage, key string, redact func(string) string) ([]Finding, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil || items == nil {
		return nil, fmt.Errorf("%q is not a list", key)
	}
	findings := make([]Finding, 0, len(items))
	for i, item := range items {
		f, err := parseFinding(item, key == "per_file_findings", redact)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", key, i, err)
		}
		findings = append(findings, f)
	}
	return findings, nil
}

// parseFinding reads one finding, of either provenance. Where it must name a
// file, it must.
func parseFinding(raw json.RawMessage, needsFile bool, redact func(string) string) (Finding, error) {
	var o object
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		return Finding{}, errors.New("it is not an object")
	}
	provenance, err := o.text("provenance", redact)
	if err != nil {
		return Finding{}, err
	}
	f := Finding{Source: SourceBork}
	if _, ok := o["file"]; ok || needsFile {
		file, err := o.text("file", redact)
		if err != nil {
			return Finding{}, err
		}
		f.File = file
	}
	switch provenance {
	case "code-review":
		f.Text, err = o.text("finding", redact)
		f.Text = cut(f.Text, MaxText)
	case "command":
		f.Text, err = o.command(redact)
	default:
		err = fmt.Errorf(`"provenance" is %q, neither "code-review" nor "command"`, provenance)
	}
	return f, err
}

// command words a command that the checker ran.
func (o object) command(redact func(string) string) (string, error) {
	exit, err := o.integer("exit-code")
	if err != nil {
		return "", err
	}
	texts := map[string]string{}
	for _, key := range []string{"command", "stdout", "stderr"} {
		if texts[key], err = o.text(key, redact); err != nil {
			return "", err
		}
	}
	text := fmt.Sprintf("The checker ran this command, whose exit status was %d:\n\n    %s\n", exit, indent(cut(texts["command"], MaxText)))
	text += section("Its standard output", cut(texts["stdout"], MaxText))
	return text + section("Its standard error", cut(texts["stderr"], MaxText)), nil
}

// text is a string that must be there, without secrets, and with what is not
// UTF-8 replaced (ruling B11).
func (o object) text(key string, redact func(string) string) (string, error) {
	raw, ok := o[key]
	if !ok {
		return "", fmt.Errorf("%q is missing", key)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil || raw[0] != '"' {
		return "", fmt.Errorf("%q is not a string", key)
	}
	if !utf8.Valid(raw) {
		return notUTF8, nil
	}
	return clean(redact, s), nil
}

// integer is a whole number that must be there.
func (o object) integer(key string) (int, error) {
	raw, ok := o[key]
	if !ok {
		return 0, fmt.Errorf("%q is missing", key)
	}
	var n int
	if err := json.Unmarshal(raw, &n); err != nil || strings.HasPrefix(string(raw), "n") {
		return 0, fmt.Errorf("%q is not a whole number", key)
	}
	return n, nil
}
