package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"hone/internal/excerpt"
	"hone/internal/transient"
	"hone/sandbox"
)

// SourceBuild is the source of findings of a build.
const SourceBuild = "build"

// MaxBuildText is how much of a build's output a model is sent by default, in bytes (ruling
// C11).
const MaxBuildText = 64 << 10

// BuildConfig describes how a project is built.
type BuildConfig struct {
	Program
	// Script is the name of the build script in Dir. It runs directly if it is
	// executable, otherwise with bash (ruling C12).
	Script string
	// MaxText is the length in bytes above which the middle of the output is
	// omitted from the finding; 0 means [MaxBuildText] (ruling C11).
	MaxText int
	// StoreOutput, if not nil, receives the complete output, redacted, however
	// large it is and however the build ended. Contract: it reads to the end
	// before it returns. An error from StoreOutput is the error of the check.
	StoreOutput func(output io.Reader) error
	// Reader finds findings in the output of a build that failed. If one blocks, they are the
	// result.
	Reader Reader
}

// Build returns a check that passes if a build script exits 0. The text of its
// finding is standard output, then standard error, then how the build failed.
func Build(r sandbox.Runner, c BuildConfig) Func {
	if c.MaxText == 0 {
		c.MaxText = MaxBuildText
	}
	return func(ctx context.Context) (found []Finding, err error) {
		var out, errs spool
		defer func() { err = errors.Join(err, out.remove(), errs.remove()) }()
		result, text, err := c.build(ctx, r, &out, &errs)
		if err != nil {
			return nil, err
		}
		if c.StoreOutput != nil {
			if err := c.storeOutput(result, text, &out, &errs); err != nil {
				return nil, err
			}
		}
		if result != nil && result.Exit == 0 && !result.TimedOut {
			return nil, nil
		}
		if result != nil && !result.TimedOut {
			if found = c.Reader.read(text, result.Exit); Blocking(found) {
				for i := range found {
					found[i].Source = SourceBuild
				}
				return found, nil
			}
		}
		return []Finding{{Source: SourceBuild, Text: excerpt.Middle(text, c.MaxText), Broken: result == nil}}, nil
	}
}

// Each stream is copied to its spool. If the build cannot be started, the result is nil and text says why; otherwise text is
// the build's output. The error is the context's, or that of a machine that is short of what a start needs.
func (c BuildConfig) build(ctx context.Context, r sandbox.Runner, out, errs *spool) (*sandbox.Result, string, error) {
	argv, err := c.argv()
	if err != nil {
		return nil, "", fmt.Errorf("build: %w", err)
	}
	watched, whole, wholeErr := newLive(c.Live, c.Redact), newLive(out, c.Redact), newLive(errs, c.Redact)
	result, unstarted, err := c.run(ctx, r, "build", sandbox.Command{Argv: argv, Live: watched, LiveOut: whole, LiveErr: wholeErr}, watched, whole, wholeErr)
	switch {
	case err != nil:
		return nil, "", err
	case unstarted != nil:
		return nil, applyRedact(c.Redact, fmt.Sprintf("%s could not be run: %v\n", c.Script, unstarted)), nil
	}
	return &result, c.text(result), nil
}

// The spools count if the text is incomplete.
func (c BuildConfig) storeOutput(result *sandbox.Result, text string, out, errs *spool) error {
	if result == nil || result.Discarded == 0 {
		return c.StoreOutput(strings.NewReader(text))
	}
	stdout, err := out.reader()
	stderr, err2 := errs.reader()
	if err := cmp.Or(err, err2); err != nil {
		return fmt.Errorf("store the build's output: %w", err)
	}
	return c.StoreOutput(io.MultiReader(strings.NewReader("STDOUT:\n"), stdout, strings.NewReader("\n\nSTDERR:\n"), stderr,
		strings.NewReader("\n"+c.failureLine(*result))))
}

// The start says what else is wrong with the script. An error may pass.
func (c BuildConfig) argv() ([]string, error) {
	script := filepath.Join(c.Dir, c.Script)
	switch info, err := os.Stat(script); {
	case transient.Is(err):
		return nil, err
	case err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 == 0:
		return []string{"bash", script}, nil
	}
	return []string{script}, nil
}

func (c BuildConfig) text(r sandbox.Result) string {
	text := fmt.Sprintf("STDOUT:\n%s\n\nSTDERR:\n%s\n", excerpt.Output(r.Stdout), excerpt.Output(r.Stderr))
	if r.Discarded > 0 {
		text += fmt.Sprintf("\n[... %d more bytes followed; they are only in the log ...]\n", r.Discarded)
	}
	return applyRedact(c.Redact, text+c.failureLine(r))
}

func (c BuildConfig) failureLine(r sandbox.Result) string {
	if r.Exit == 0 && !r.TimedOut {
		return ""
	}
	return fmt.Sprintf("\n%s: %s\n", c.Script, c.outcome(r)+silenceCause(r)) + hiddenNote(r)
}
