package check

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	// Keep, if not nil, is given the whole output, redacted, however the build
	// ended. Its error ends the check.
	Keep func(output string) error
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
	return func(ctx context.Context) ([]Finding, error) {
		watched := newLive(c.Live, c.Redact)
		result, err := r.Run(ctx, sandbox.Command{
			Argv: c.argv(), Dir: c.Root, Env: c.Env, Timeout: c.Timeout, Live: watched.writer(),
		})
		watched.close()
		if ctx.Err() != nil && (err != nil || result.Exit < 0) {
			return nil, fmt.Errorf("build: %w", context.Cause(ctx))
		}
		text := c.text(result, err)
		if c.Keep != nil {
			if err := c.Keep(text); err != nil {
				return nil, err
			}
		}
		if err == nil && result.Exit == 0 && !result.TimedOut {
			return nil, nil
		}
		return []Finding{{Source: SourceBuild, Text: cut(text, c.MaxText), Broken: err != nil}}, nil
	}
}

// argv is how the script is run.
func (c BuildConfig) argv() []string {
	script := filepath.Join(c.Root, c.Script)
	if info, err := os.Stat(script); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 == 0 {
		return []string{"bash", script}
	}
	return []string{script}
}

// text is what a build printed, and what its exit status does not say.
func (c BuildConfig) text(r sandbox.Result, err error) string {
	if err != nil {
		return clean(c.Redact, fmt.Sprintf("%s could not be run: %v\n", c.Script, err))
	}
	text := fmt.Sprintf("STDOUT:\n%s\n\nSTDERR:\n%s\n", readable(r.Stdout), readable(r.Stderr))
	if r.Lost > 0 {
		text += fmt.Sprintf("\n[... %d more bytes came after that and were not kept ...]\n", r.Lost)
	}
	if r.Exit != 0 || r.TimedOut {
		text += fmt.Sprintf("\n%s: %s\n", c.Script, outcome(r, c.Timeout))
	}
	return clean(c.Redact, text)
}
