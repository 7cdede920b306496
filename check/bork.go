package check

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"hone/sandbox"
)

// BorkConfig is a correctness checker as Bork has it.
type BorkConfig struct {
	// Root is the Git root, absolute: the checker's working directory.
	Root string
	// Checker is the path of its executable below Root, with or without "./".
	// It is never looked up on PATH (ruling B1).
	Checker string
	// Env is its whole environment. A checker is the user's program and may
	// call a model itself, so keys may be in it (ruling G6).
	Env []string
	// Timeout ends it; 0 means one hour.
	Timeout time.Duration
	// MaxOutput is how many bytes of each of its streams are kept; 0 means the
	// runner's own limit. Findings that do not fit are no findings: it failed
	// to run.
	MaxOutput int64
	// Live, if not nil, is shown its standard error as it comes, a line at a
	// time.
	Live io.Writer
	// Redact takes secrets out of a text; nil leaves it as it is.
	// Contract: it is applied to all output before it is shown or found, and
	// must not block.
	Redact func(string) string
}

// Bork is the check by a correctness checker. It is run without arguments and
// says by its JSON what it found, and by its exit status whether it did: 0 for
// no findings, 1 for findings. Findings win over exit status 0. Whatever else
// happens (exit status 1 without findings, 2 or any other, output that is not
// the JSON, not executable, missing, killed, out of time) is "failed to run",
// which is one Broken finding and never success (ruling B9).
func Bork(r sandbox.Runner, c BorkConfig) Func {
	return func(ctx context.Context) ([]Finding, error) {
		name := filepath.FromSlash(c.Checker)
		if !filepath.IsLocal(name) {
			return c.broken("its path does not lie below the Git root", nil), nil
		}
		if c.Timeout == 0 {
			c.Timeout = time.Hour
		}
		watched := newLive(c.Live, c.Redact)
		result, err := r.Run(ctx, sandbox.Command{
			Argv: []string{filepath.Join(c.Root, name)}, Dir: c.Root, Env: c.Env,
			Timeout: c.Timeout, MaxOutput: c.MaxOutput, LiveErr: watched.writer(),
		})
		watched.close()
		if ctx.Err() != nil && (err != nil || result.Exit < 0) {
			return nil, fmt.Errorf("correctness checker: %w", context.Cause(ctx))
		}
		if err != nil {
			return c.broken(err.Error(), nil), nil
		}
		return c.judge(result), nil
	}
}

// judge is what a checker's end and output say.
func (c BorkConfig) judge(r sandbox.Result) []Finding {
	if r.TimedOut || r.Exit != 0 && r.Exit != 1 {
		return c.broken(outcome(r, c.Timeout), r.Stderr)
	}
	if most := cmp.Or(c.MaxOutput, sandbox.DefaultMaxOutput); r.Lost > 0 && int64(len(r.Stdout)) >= most {
		return c.broken(fmt.Sprintf("it printed more than is kept: %d bytes too many", r.Lost), r.Stderr)
	}
	findings, err := parseBork(r.Stdout, c.Redact)
	switch {
	case err != nil:
		return c.broken(fmt.Sprintf("exit status %d, and its output is not the JSON that a checker prints: %v", r.Exit, err), r.Stderr)
	case r.Exit == 1 && len(findings) == 0:
		return c.broken("exit status 1, which says that it has findings, and none in its output", r.Stderr)
	}
	return findings
}

// broken is the finding that the checker failed to run.
func (c BorkConfig) broken(why string, stderr []byte) []Finding {
	text := fmt.Sprintf("The correctness checker %s failed to run: %s.\n", c.Checker, clean(c.Redact, why))
	if len(stderr) > 0 {
		text += section("The end of its standard error", tail(clean(c.Redact, readable(stderr))))
	}
	return []Finding{{Source: SourceBork, Text: text, Broken: true}}
}
