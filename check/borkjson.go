package check

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"hone/internal/excerpt"
)

// object is a JSON object with undecoded values. Unlike a struct, it
// distinguishes keys that differ in case, and a missing key from null.
type object map[string]json.RawMessage

// parseBork returns the findings in the output of a checker. Unknown keys are ignored. One of the two lists
// may be missing and counts as empty; if both are missing, the output is something else. If there is an error, the first good
// bytes are those up to the last finding, or up to the start of the object; 0 if there is no object.
func parseBork(out []byte, redact func(string) string) (found []Finding, good int64, err error) {
	d := json.NewDecoder(bytes.NewReader(out))
	switch start, err := d.Token(); {
	case errors.Is(err, io.EOF):
		return found, 0, errors.New("it is empty")
	case err != nil:
		return found, 0, unreadable(out, d, err)
	case start == nil:
		return found, 0, errors.New("it is null, not an object")
	case start != json.Delim('{'):
		return found, 0, errors.New("it is not an object")
	}
	good = d.InputOffset()
	lists := 0
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		switch {
		case err != nil:
		case key != "per_file_findings" && key != "overall_findings":
			err = d.Decode(&value)
		default:
			start, startErr := d.Token()
			if startErr == nil && start != json.Delim('[') {
				return found, good, fmt.Errorf("%q is not a list", key)
			}
			lists++
			for i := 0; err == nil && d.More(); i++ {
				if err = d.Decode(&value); err != nil {
					break
				}
				f, wrong := parseFinding(value, key == "per_file_findings", redact)
				if wrong != nil { // then its text is the finding
					f = asText(value, fmt.Errorf("%s[%d]: %w", key, i, wrong), redact)
				}
				found, good = append(found, f), d.InputOffset()
			}
			if err = cmp.Or(startErr, err); err == nil {
				_, err = d.Token() // the list's end
			}
		}
		if err != nil {
			return found, good, unreadable(out, d, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return found, good, unreadable(out, d, err)
	}
	if lists == 0 {
		return found, good, errors.New(`it has neither "per_file_findings" nor "overall_findings"`)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return found, good, inLine(out, d.InputOffset(), errors.New("there is more text after the object"))
	}
	return found, good, nil
}

func unreadable(out []byte, d *json.Decoder, err error) error {
	if _, ok := errors.AsType[*json.SyntaxError](err); !ok {
		return errors.New("it ends before the object does")
	}
	at := d.InputOffset() // of the value, in which the error may be further on
	if inside, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(out[at:], new(json.RawMessage))); ok {
		at += inside.Offset
	}
	return inLine(out, at, err)
}

func inLine(out []byte, at int64, err error) error {
	return fmt.Errorf("line %d: %w", 1+bytes.Count(out[:at], []byte("\n")), err)
}

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
	case "command":
		f.Text, err = o.command(redact)
	default:
		err = fmt.Errorf(`"provenance" is %q, neither "code-review" nor "command"`, provenance)
	}
	return f, err
}

func asText(raw json.RawMessage, why error, redact func(string) string) Finding {
	f := Finding{Source: SourceBork, Text: fmt.Sprintf("The checker reported this in a form that hone does not know (%s):\n", applyRedact(redact, why.Error()))}
	var o object
	if json.Unmarshal(raw, &o) != nil || o == nil {
		o = object{"finding": raw}
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		value, err := o.text(key, redact)
		if err != nil {
			value = applyRedact(redact, excerpt.Output(o[key]))
		}
		if key == "file" && err == nil {
			f.File = value
		}
		f.Text += section(applyRedact(redact, key), excerpt.Middle(excerpt.Screen(value), MaxText/2))
	}
	return f
}

func (o object) command(redact func(string) string) (string, error) {
	var exit *int
	if _, ok := o["exit-code"]; !ok {
		return "", errors.New(`"exit-code" is missing`)
	}
	if err := json.Unmarshal(o["exit-code"], &exit); err != nil || exit == nil {
		return "", errors.New(`"exit-code" is not a whole number`)
	}
	var err error
	texts := map[string]string{}
	for _, key := range []string{"command", "stdout", "stderr"} {
		if texts[key], err = o.text(key, redact); err != nil {
			return "", err
		}
	}
	text := fmt.Sprintf("The checker ran this command, which exited with status %d:\n\n    %s\n", *exit, indentRest(excerpt.Middle(texts["command"], maxFile/2)))
	text += section("Its standard output", excerpt.Middle(excerpt.Screen(texts["stdout"]), MaxText/2))
	return text + section("Its standard error", excerpt.Middle(excerpt.Screen(texts["stderr"]), MaxText/2)), nil
}

// It is redacted, or a placeholder if it is not UTF-8 (ruling B11).
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
