package check

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"hone/sandbox"
)

// The sources of this package's findings.
const (
	SourceCommand = "check"   // a command that must exit 0
	SourceBork    = "checker" // a Bork correctness checker
)

// CommandConfig is a command that must exit 0.
type CommandConfig struct {
	// Command is given to the system's shell: sh, or cmd on Windows.
	Command string
	// Dir is its working directory, which must be there.
	Dir string
	// Env is its whole environment. Providers' keys do not belong in it
	// (ruling G6); see [sandbox.CleanEnv].
	Env []string
	// Timeout ends it; 0 means ten minutes. Not to end in time is a finding.
	Timeout time.Duration
	// MaxOutput is how many bytes of its output are kept; 0 means the
	// runner's own limit.
	MaxOutput int64
	// Live, if not nil, is shown the output as it comes, a line at a time.
	Live io.Writer
	// Redact takes secrets out of a text; nil leaves it as it is.
	// Contract: it is applied to all output before it is shown or found, and
	// must not block.
	Redact func(string) string
}

// Command is the check that a command exits 0. What it prints on either stream
// is the finding's text, in the order in which it was printed where the system
// has sh. A command that cannot be started, or whose shell says that there is
// no such program (exit status 126 or 127), could not run: that finding is
// Broken.
func Command(r sandbox.Runner, c CommandConfig) Func {
	return func(ctx context.Context) ([]Finding, error) {
		watched := newLive(c.Live, c.Redact)
		timeout := c.Timeout
		if timeout == 0 {
			timeout = 10 * time.Minute
		}
		result, err := r.Run(ctx, sandbox.Command{
			Argv: shell(c.Command), Dir: c.Dir, Env: c.Env,
			Timeout: timeout, MaxOutput: c.MaxOutput, Live: watched.writer(),
		})
		watched.close()
		if ctx.Err() != nil && (err != nil || result.Exit < 0) {
			return nil, fmt.Errorf("check command: %w", context.Cause(ctx))
		}
		if err != nil {
			text := fmt.Sprintf("The check command could not be started: %v\n\n    %s\n", err, indent(c.Command))
			return []Finding{{Source: SourceCommand, Text: clean(c.Redact, text), Broken: true}}, nil
		}
		return c.findings(result, timeout), nil
	}
}

// shell is how the system runs a command line. The outer sh puts both streams
// into one, in their order; the inner one sees the command as it was given,
// with its own line numbers.
func shell(command string) []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/C", command}
	}
	return []string{"sh", "-c", `exec sh -c "$0" 2>&1`, command}
}

// findings is what a command's end says of the tree.
func (c CommandConfig) findings(r sandbox.Result, timeout time.Duration) []Finding {
	if r.Exit == 0 && !r.TimedOut {
		return nil
	}
	f := Finding{Source: SourceCommand, Broken: !r.TimedOut && (r.Exit == 126 || r.Exit == 127)}
	what := "The check command failed: " + outcome(r, timeout)
	if f.Broken {
		what = fmt.Sprintf("The check command could not run: the shell ended with exit status %d, which says that there is no such program or that it is not executable", r.Exit)
	}
	text := fmt.Sprintf("%s.\n\n    %s\n", what, indent(clean(c.Redact, c.Command)))
	text += section("Its output", cut(clean(c.Redact, readable(r.Stdout)), MaxText))
	if len(r.Stderr) > 0 {
		text += section("Its standard error", cut(clean(c.Redact, readable(r.Stderr)), MaxText))
	}
	if r.Lost > 0 {
		text += fmt.Sprintf("\n[... %d more bytes came after that and were not kept ...]\n", r.Lost)
	}
	f.Text = text
	return []Finding{f}
}

// outcome says how a command ended that did not exit 0.
func outcome(r sandbox.Result, timeout time.Duration) string {
	switch {
	case r.TimedOut:
		return fmt.Sprintf("it had not ended after %v, and was ended", timeout)
	case r.Signal != "":
		return fmt.Sprintf("a signal ended it (%s)", r.Signal)
	}
	return fmt.Sprintf("exit status %d", r.Exit)
}

// indent sets every further line of a text like the first.
func indent(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

// All runs several checks one after the other and joins what they find. The
// first that cannot be asked ends it. Without a check it finds nothing.
func All(fs ...Func) Func {
	return func(ctx context.Context) ([]Finding, error) {
		var all []Finding
		for _, f := range fs {
			found, err := f(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
		return all, nil
	}
}
