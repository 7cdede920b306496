package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"hone/internal/excerpt"
)

// object is a JSON object with undecoded values. Unlike a struct, it
// distinguishes keys that differ in case, and a missing key from null.
type object map[string]json.RawMessage

// parseBork parses the JSON of a correctness checker. It ignores unknown keys.
// One of the two lists may be missing and counts as empty; if both are missing,
// the output is something else.
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

// parseTop parses the single object of the output.
func parseTop(out []byte) (object, error) {
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, errors.New("it is empty")
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	var top object
	if err := dec.Decode(&top); err != nil {
		return nil, withLine(out, err)
	}
	if top == nil {
		return nil, errors.New("it is null, not an object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line %d: there is more text after the object", lineAt(out, dec.InputOffset()))
	}
	return top, nil
}

// withLine returns a decoder's error with the line that it occurred in.
func withLine(out []byte, err error) error {
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

// lineAt returns the number of the line that contains an offset.
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

// parseFinding parses one finding of either provenance. It requires a file if
// needsFile is set.
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
		f.Text = excerpt.Middle(f.Text, MaxText)
	case "command":
		f.Text, err = o.command(redact)
	default:
		err = fmt.Errorf(`"provenance" is %q, neither "code-review" nor "command"`, provenance)
	}
	return f, err
}

// command returns the text of a finding about a command that the checker ran.
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
	text := fmt.Sprintf("The checker ran this command, which exited with status %d:\n\n    %s\n", exit, indentRest(excerpt.Middle(texts["command"], MaxText)))
	text += section("Its standard output", excerpt.Middle(texts["stdout"], MaxText))
	return text + section("Its standard error", excerpt.Middle(texts["stderr"], MaxText)), nil
}

// text returns a required string, redacted, or a placeholder if it is not UTF-8
// (ruling B11).
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
	return applyRedact(redact, s), nil
}

// integer returns a required integer.
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
