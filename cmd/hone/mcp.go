package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/mcp"
	"hone/group"
	"hone/loop"
)

func (a *app) mcpCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "mcp [-- FLAGS]",
		Short: "serve hone to other agents, over the Model Context Protocol",
		Long: `mcp serves hone on standard input and output to an agent such as Claude Code, Codex or Gemini CLI, which starts it. The
agent can run the check, start a run in this directory, wait for it, look at it, stop it, and undo it. Runs go on if the
agent ends, and the next mcp in the same directory finds them.

FLAGS are flags of the loops for every run that the agent starts, such as --model and --max-cost. They have precedence. The
agent is a model, so it cannot choose a model or a limit, weaken a wall, give trust, or answer a question: a change that
needs your approval waits until you resume the run. It can stop and undo only what it has started.`,
		Example: `  claude mcp add hone -- hone mcp -- -m openai/gpt-5.4 --max-cost 2
  codex mcp add hone -- hone mcp -C ~/src/parser -- --max-tokens 2000000`,
		Args: func(c *cobra.Command, args []string) error {
			if at := c.ArgsLenAtDash(); at > 0 || at < 0 && len(args) > 0 {
				return fmt.Errorf("flags of the loops stand after --")
			}
			return nil
		},
		RunE: func(c *cobra.Command, typed []string) error { return a.mcp(c.Context(), dir, typed) },
	}
	registerDir(c, &dir)
	return c
}

func (a *app) mcp(ctx context.Context, dir string, typed []string) error {
	o := mcp.Options{Version: version(), Typed: typed, Environ: a.environ, Valid: a.clientFlags}
	var err error
	if o.Dir, err = loop.AbsDir(dir); err != nil {
		return err
	}
	if o.Logs, err = group.Cache("mcp"); err != nil {
		return failure.Of(err, "")
	}
	if o.Program, err = os.Executable(); err != nil {
		return err
	}
	all := evalLoops()
	for _, k := range all {
		o.Loops = append(o.Loops, k.Name)
	}
	if _, err := a.onlyFlags(all[0], typed); err != nil {
		return failure.UsageOf(err, "hone help "+all[0].Name)
	}
	return mcp.Serve(ctx, o)
}

// workFlags are the flags that describe the work. The others say how it is judged, what it costs,
// or what it may do.
var workFlags = []string{"check", "metric", "lower", "higher", "target", "confirm", "profile", "files", "query"}

// clientFlags returns why an agent may not give a loop these flags.
func (a *app) clientFlags(name string, args []string) error {
	all := evalLoops()
	k := all[slices.IndexFunc(all, func(k loop.Kind) bool { return k.Name == name })]
	given, err := a.onlyFlags(k, args)
	if err != nil {
		return err
	}
	for _, f := range given {
		if !slices.Contains(workFlags, f.Name) {
			return fmt.Errorf("only the user can give --%s, after hone mcp --", f.Name)
		}
	}
	return nil
}

// onlyFlags returns the flags that a command line of a loop has; there may be nothing else.
func (a *app) onlyFlags(k loop.Kind, args []string) ([]*pflag.Flag, error) {
	given, rest, err := a.parseOnly(k, args)
	if err == nil && (slices.Contains(args, "--") || len(rest) > 0) {
		err = fmt.Errorf("%q is not a flag", append(rest, "--")[0])
	}
	return given, err
}
