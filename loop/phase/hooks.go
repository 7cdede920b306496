package phase

import (
	"context"
	"fmt"
	"strings"
	"time"

	"hone"
	"hone/sandbox"
)

// Hooks are the project's own commands, in abl.config.sh (ruling A9):
// health_check, map_deps, start_dev, reset_state and stop_dev. They run code
// that a model wrote.
type Hooks struct {
	// Runner stands behind walls in which src/ and tests/results/ can be
	// written, abl.config.sh can be read, and nothing else of the project is
	// there.
	Runner HookRunner
	Dir    string // the project's root, absolute
	// Time is the most that one hook may take; 0 means ten minutes.
	Time time.Duration
	// Up is the most that the server may take until it answers, once start_dev
	// has ended; 0 means two minutes.
	Up time.Duration
}

// HookRunner runs a hook, or holds one open with what it started.
type HookRunner interface {
	sandbox.Runner
	// Start is that of the walls; see hone/sandbox/wall.
	Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error)
}

// said is what came of a hook.
type said struct {
	Exit   int
	Output string // both streams, as they came
}

const hookTime = 10 * time.Minute

func (h Hooks) time() time.Duration {
	if h.Time > 0 {
		return h.Time
	}
	return hookTime
}

// call runs a hook to its end. That one could not be run, or was ended, is an
// error; an exit status is none.
func (h Hooks) call(ctx context.Context, name string) (said, error) {
	got, err := h.Runner.Run(ctx, sandbox.Command{
		Argv: []string{"bash", "-c", `exec bash "$0" "$1" 2>&1`, ConfigName, name},
		Dir:  h.Dir, Timeout: h.time(), MaxOutput: mostLog,
	})
	output := string(got.Stdout) + string(got.Stderr)
	switch {
	case ctx.Err() != nil:
		return said{}, context.Cause(ctx)
	case err != nil:
		return said{}, hookStop(name, "could not be run: "+err.Error(), "")
	case got.TimedOut:
		return said{}, hookStop(name, fmt.Sprintf("did not finish within %s", h.time()), output)
	case got.OverLimit != "":
		return said{}, hookStop(name, "was stopped: it exceeded the limit of "+got.OverLimit, output)
	case got.Exit == 127 && strings.Contains(output, ConfigName+": No such file"):
		return said{}, hookStop(name, "cannot be run: there is no "+ConfigName, "")
	}
	return said{got.Exit, output}, nil
}

// must runs a hook whose failure ends the run: the project's set-up is at
// fault, not the code.
func (h Hooks) must(ctx context.Context, name string) (string, error) {
	got, err := h.call(ctx, name)
	if err == nil && got.Exit != 0 {
		err = hookStop(name, fmt.Sprintf("failed with exit status %d", got.Exit), got.Output)
	}
	return got.Output, err
}

// hookStop is the end of a run that a hook is the reason for.
func hookStop(name, what, output string) error {
	why := fmt.Sprintf("the hook %s in %s %s", name, ConfigName, what)
	if output = strings.TrimSpace(strings.ToValidUTF8(output, "\uFFFD")); output != "" {
		why += "; it printed\n" + middle(output, 2<<10)
	}
	return &hone.Stop{Kind: hone.KindFailed, Why: why, Next: hone.Next{Verb: hone.Resume,
		First: "fix " + ConfigName + " ([phase] hook_read, hook_env and hook_net in .config/hone.toml let it reach more)"}}
}
