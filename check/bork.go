package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

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
