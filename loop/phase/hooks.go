package phase

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"hone"
	"hone/internal/excerpt"
	"hone/internal/lazyregexp"
	"hone/sandbox"
)

// Where the hooks are, and where start_dev leaves the server's output and the id
// of its process. Paths are relative to the project's root.
const (
	HooksName = "abl.config.sh"
	devLog    = "tests/results/dev.log"
	devPID    = "tests/results/dev.pid"

	otherDevLog = "logs/dev.log" // in ABL's later layout
)

// Hooks are the project's own commands: health_check, map_deps, start_dev,
// reset_state and stop_dev. They run code that a model wrote.
type Hooks struct {
	// Runner runs behind walls in which src/ and tests/results/ can be written,
	// abl.config.sh can be read, and no other part of the project exists.
	Runner HookRunner
	Dir    string // the project's root, absolute
	// Time limits a single hook; 0 means ten minutes.
	Time time.Duration
	// Up limits how long the server may take to accept connections after start_dev has
	// returned; 0 means two minutes.
	Up time.Duration
}

// HookRunner runs a hook, or holds one open with the processes that it started.
type HookRunner interface {
	sandbox.Runner
	// Start is the method of the walls; see hone/sandbox/wall.
	Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error)
}

// hookResult is the outcome of a hook.
type hookResult struct {
	Exit   int
	Output string // both streams, interleaved
}

const hookTime = 10 * time.Minute

func (h Hooks) time() time.Duration { return cmp.Or(h.Time, hookTime) }

// Call runs a hook to its end. It returns an error if the hook could not be run
// or was stopped. A nonzero exit status is not an error.
func (h Hooks) Call(ctx context.Context, name string, args ...string) (hookResult, error) {
	got, err := h.Runner.Run(ctx, sandbox.Command{
		Argv: append([]string{"bash", "-c", `exec bash "$0" "$@" 2>&1`, HooksName, name}, args...),
		Dir:  h.Dir, Timeout: h.time(), MaxOutput: maxLog,
	})
	output := excerpt.Output(got.Stdout) + excerpt.Output(got.Stderr)
	switch {
	case ctx.Err() != nil:
		return hookResult{}, context.Cause(ctx)
	case err != nil:
		return hookResult{}, hookStop(name, "could not be run: "+err.Error(), "")
	case got.TimedOut:
		return hookResult{}, hookStop(name, fmt.Sprintf("did not finish within %s", h.time()), output)
	case got.OverLimit != "":
		return hookResult{}, hookStop(name, "was stopped: it exceeded the limit of "+got.OverLimit, output)
	case got.Exit == 127 && strings.Contains(output, HooksName+": No such file"):
		return hookResult{}, hookStop(name, "cannot be run: there is no "+HooksName, "")
	}
	return hookResult{got.Exit, output}, nil
}

// In such a line bash says that abl.config.sh cannot write a log. That is not the fault of the code (ruling A15).
var unwritableLog = lazyregexp.New(`(?m)^abl\.config\.sh: line \d+: .*(?:\.log|logs/\S*|results/\S*)"?: (?:No such file or directory|Permission denied|Read-only file system|Is a directory|Not a directory)$`)

// Failed returns the error of a hook whose exit status is not 0. It ends the run, because the project's configuration
// is at fault and not the code.
func (r hookResult) Failed(name string) error {
	return hookStop(name, fmt.Sprintf("failed with exit status %d", r.Exit), r.Output)
}

func hookStop(name, what, output string) error {
	why := fmt.Sprintf("the hook %s in %s %s", name, HooksName, what)
	if output = strings.TrimSpace(strings.ToValidUTF8(output, "\uFFFD")); output != "" {
		why += "; it printed\n" + excerpt.Middle(output, 2<<10)
	}
	return &hone.Stop{Kind: hone.KindFailed, Why: why, Next: hone.Next{Verb: hone.Resume,
		First: "fix " + HooksName + " ([phase] hook-read, hook-env and hook-net in .config/hone.toml let it reach more)"}}
}
