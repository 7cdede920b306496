package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hone/sandbox"
)

// SourceBuild is where the finding of a build comes from.
const SourceBuild = "build"

// BuildConfig says how a project is built.
type BuildConfig struct {
	// Root is the working directory, absolute.
	Root string
	// Script is the build script's name in Root. It is run as a program if it
	// is executable, else by bash (ruling C12).
	Script string
	// Env is its whole environment. Providers' keys do not belong in it
	// (ruling G6).
	Env []string
	// Timeout ends it with all that it started; 0 means ten minutes.
	Timeout time.Duration
	// MaxText is how many bytes of its output the finding has before the
	// middle is left out; 0 means [MaxText] (ruling C11).
	MaxText int
	// Live, if not nil, is shown the output as it comes, a line at a time.
	Live io.Writer
	// Redact takes secrets out of a text; nil leaves it as it is. Contract: as
	// in CommandConfig.
	Redact func(string) string
	// Keep, if not nil, is given the whole output, however large, redacted,
	// however the build ended. Contract: it reads to the end before it
	// returns. Its error ends the check.
	Keep func(output io.Reader) error
}

// Build is the check that a build script exits 0. Its finding's text is what
// the build printed, both streams one after the other, and how it ended where
// that was no exit status of its own.
func Build(r sandbox.Runner, c BuildConfig) Func {
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Minute
	}
	if c.MaxText == 0 {
		c.MaxText = MaxText
	}
	return func(ctx context.Context) (found []Finding, err error) {
		var out, errs spool
		defer func() { err = errors.Join(err, out.remove(), errs.remove()) }()
		result, text, err := c.run(ctx, r, &out, &errs)
		if err != nil {
			return nil, err
		}
		if c.Keep != nil {
			if err := c.keep(result, text, &out, &errs); err != nil {
				return nil, err
			}
		}
		if result != nil && result.Exit == 0 && !result.TimedOut {
			return nil, nil
		}
		return []Finding{{Source: SourceBuild, Text: cut(text, c.MaxText), Broken: result == nil}}, nil
	}
}

// run builds, with each stream into its spool. The result is nil where the
// build could not be started, and text says why then, and what was printed
// otherwise.
func (c BuildConfig) run(ctx context.Context, r sandbox.Runner, out, errs *spool) (*sandbox.Result, string, error) {
	watched, whole, wholeErr := newLive(c.Live, c.Redact), newLive(out, c.Redact), newLive(errs, c.Redact)
	result, err := r.Run(ctx, sandbox.Command{
		Argv: c.argv(), Dir: c.Root, Env: c.Env, Timeout: c.Timeout,
		Live: watched.writer(), LiveOut: whole.writer(), LiveErr: wholeErr.writer(),
	})
	watched.close()
	whole.close()
	wholeErr.close()
	switch {
	case ctx.Err() != nil && (err != nil || result.Exit < 0):
		return nil, "", fmt.Errorf("build: %w", context.Cause(ctx))
	case err != nil:
		return nil, clean(c.Redact, fmt.Sprintf("%s could not be run: %v\n", c.Script, err)), nil
	}
	return &result, c.text(result), nil
}

// keep hands on the whole output: the text, or what was spooled where the text
// does not have all of it.
func (c BuildConfig) keep(result *sandbox.Result, text string, out, errs *spool) error {
	if result == nil || result.Lost == 0 {
		return c.Keep(strings.NewReader(text))
	}
	stdout, err := out.reader()
	if err != nil {
		return fmt.Errorf("keep the build's output: %w", err)
	}
	stderr, err := errs.reader()
	if err != nil {
		return fmt.Errorf("keep the build's output: %w", err)
	}
	return c.Keep(io.MultiReader(strings.NewReader("STDOUT:\n"), stdout, strings.NewReader("\n\nSTDERR:\n"), stderr,
		strings.NewReader("\n"+c.ending(*result))))
}

// argv is how the script is run.
func (c BuildConfig) argv() []string {
	script := filepath.Join(c.Root, c.Script)
	if info, err := os.Stat(script); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 == 0 {
		return []string{"bash", script}
	}
	return []string{script}
}

// text is what a build printed, as far as it is held, and what its exit status
// does not say.
func (c BuildConfig) text(r sandbox.Result) string {
	text := fmt.Sprintf("STDOUT:\n%s\n\nSTDERR:\n%s\n", readable(r.Stdout), readable(r.Stderr))
	if r.Lost > 0 {
		text += fmt.Sprintf("\n[... %d more bytes came after that, and are in the log alone ...]\n", r.Lost)
	}
	return clean(c.Redact, text+c.ending(r))
}

// ending says how a build ended that failed.
func (c BuildConfig) ending(r sandbox.Result) string {
	if r.Exit == 0 && !r.TimedOut {
		return ""
	}
	return fmt.Sprintf("\n%s: %s\n", c.Script, outcome(r, c.Timeout))
}
