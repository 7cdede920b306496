package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"hone/internal/excerpt"
	"hone/sandbox"
)

// BorkConfig describes a correctness checker of Bork. A checker is the user's program and
// may call a model itself, so Env may contain keys (ruling G6). Live receives its standard
// error.
type BorkConfig struct {
	Program // in the Git root
	// Checker is the path of the executable below Dir, with or without "./".
	// It is never looked up on PATH (ruling B1).
	Checker string
	// Stdin is what the checker reads, such as the terminal if a user may answer its
	// questions; nil means nothing.
	Stdin io.Reader
}

// Bork returns a check that runs a correctness checker. The checker gets no
// arguments. It prints its findings as JSON and exits 0 without findings, 1
// with findings. Findings count even with exit status 0. Anything else (exit
// status 1 without findings, 2 or any other, output that is not the JSON, not
// executable, missing, killed, timed out) means that it failed to run: one
// Broken finding, never success (ruling B9). Of output that can be read in part, what can be
// read are its findings, and the rest is another one, as text (ruling B16). If the machine is
// short of what a start needs, or of room for the output, that is an error.
func Bork(r sandbox.Runner, c BorkConfig) Func {
	c.Timeout = cmp.Or(c.Timeout, time.Hour)
	return func(ctx context.Context) (found []Finding, err error) {
		name := filepath.FromSlash(c.Checker)
		if !filepath.IsLocal(name) {
			return c.failedToRun("its path is not below the Git root", "", nil), nil
		}
		out := spool{max: maxFindings}
		defer func() { err = errors.Join(err, out.remove()) }()
		watched := newLive(c.Live, c.Redact)
		result, unstarted, err := c.run(ctx, r, "correctness checker", sandbox.Command{
			Argv: []string{filepath.Join(c.Dir, name)}, Stdin: c.Stdin, MaxOutput: maxKept, LiveOut: &out, LiveErr: watched,
		}, watched)
		switch {
		case err != nil:
			return nil, err
		case unstarted != nil:
			return c.failedToRun(unstarted.Error(), "", nil), nil
		}
		if found, err = c.findings(result, &out); err != nil {
			return nil, fmt.Errorf("correctness checker: %w", err)
		}
		return found, nil
	}
}

const (
	maxFindings = 32 << 20 // bytes that a checker may print: one whose findings do not fit failed to run
	maxKept     = 8 << 20  // bytes of each stream that are kept in memory
)

// The error is that of storing the output, which is decoded from there: memory holds little of it.
func (c BorkConfig) findings(r sandbox.Result, out *spool) ([]Finding, error) {
	if r.TimedOut || r.Exit != 0 && r.Exit != 1 {
		return c.failedToRun(c.outcome(r), c.printed(r.Stdout), r.Stderr), nil
	}
	if out.size > maxFindings {
		return c.failedToRun(fmt.Sprintf("its output was %d bytes longer than the limit", out.size-maxFindings), "", r.Stderr), nil
	}
	stored, err := out.reader()
	if err != nil {
		return nil, err
	}
	read, err := parseBork(stored, c.Redact)
	findings := read.found.findings()
	switch {
	case err != nil: // what could be read is kept, and the rest is shown
		why, rest := err.Error(), ""
		stored, _ = out.reader()
		stdout, err := io.ReadAll(stored)
		if err != nil {
			return nil, err
		}
		if at, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(stdout, new(json.RawMessage))); ok && at.Offset < int64(len(stdout)) {
			why = fmt.Sprintf("line %d: %s", 1+bytes.Count(stdout[:at.Offset], []byte("\n")), why)
		}
		if read.good > 0 {
			rest = c.printed(stdout[read.good:])
		}
		return append(findings, c.failedToRun(fmt.Sprintf("exit status %d, and its output is not the JSON of a checker: %s", r.Exit, why), rest, r.Stderr)...), nil
	case r.Exit == 1 && len(findings) == 0:
		return c.failedToRun("exit status 1 means that it has findings, but its output has none", "", r.Stderr), nil
	}
	return findings, nil
}

func (c BorkConfig) printed(out []byte) string {
	return excerpt.Middle(applyRedact(c.Redact, excerpt.Output(out[:min(len(out), maxRead)])), MaxText/2)
}

func (c BorkConfig) failedToRun(why, stdout string, stderr []byte) []Finding {
	text := fmt.Sprintf("The correctness checker %s failed to run: %s.\n", c.Checker, applyRedact(c.Redact, why))
	if stdout != "" {
		text += section("What else it printed", stdout)
	}
	if len(stderr) > 0 {
		text += section("The end of its standard error", excerpt.End(applyRedact(c.Redact, excerpt.Output(stderr)), tailText))
	}
	return []Finding{{Source: SourceBork, Text: text, Broken: true}}
}

// object is a JSON object with undecoded values. Unlike a struct, it
// distinguishes keys that differ in case, and a missing key from null.
type object map[string]json.RawMessage

// borkDecoder decodes the output of a correctness checker.
type borkDecoder struct {
	*json.Decoder
	redact func(string) string
	found  bounded
	good   int64 // the offset after the last finding, or after the start of the object; 0 if there is none
}

// Unknown keys are ignored. One of the two lists may be missing and counts as empty; if both are missing, the output is
// something else. The findings are bounded ([Bound]). After an error they are those before it, in the first good bytes of the
// output.
func parseBork(out io.Reader, redact func(string) string) (*borkDecoder, error) {
	d := &borkDecoder{Decoder: json.NewDecoder(out), redact: redact}
	err := d.output()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends before the object does")
	}
	return d, err
}

func (d *borkDecoder) output() error {
	switch start, err := d.Token(); {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case err != nil:
		return err
	case start == nil:
		return errors.New("it is null, not an object")
	case start != json.Delim('{'):
		return errors.New("it is not an object")
	}
	d.good = d.InputOffset()
	lists := 0
	for d.More() {
		isList, err := d.member()
		if err != nil {
			return err
		}
		if isList {
			lists++
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if lists == 0 {
		return errors.New(`it has neither "per_file_findings" nor "overall_findings"`)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more text after the object")
	}
	return nil
}

func (d *borkDecoder) member() (isList bool, err error) {
	key, err := d.Token()
	if err != nil {
		return false, err
	}
	if key != "per_file_findings" && key != "overall_findings" {
		return false, d.Decode(new(json.RawMessage))
	}
	start, err := d.Token()
	if err != nil {
		return true, err
	}
	if start != json.Delim('[') {
		return true, fmt.Errorf("%q is not a list", key)
	}
	for i := 0; d.More(); i++ {
		var item json.RawMessage
		if err := d.Decode(&item); err != nil {
			return true, err
		}
		f, err := parseFinding(item, key == "per_file_findings", d.redact)
		if err != nil {
			f = asText(item, fmt.Errorf("%s[%d]: %w", key, i, err), d.redact)
		}
		d.found.add(f)
		d.good = d.InputOffset()
	}
	_, err = d.Token()
	return true, err
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
