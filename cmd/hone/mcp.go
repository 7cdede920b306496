package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hone/cmd/hone/failure"
	"hone/group"
	"hone/loop"
)

func (a *app) mcpCommand() *cobra.Command {
	var dir string
	c := helped("mcp", &cobra.Command{
		Args: func(c *cobra.Command, args []string) error {
			if at := c.ArgsLenAtDash(); at > 0 || at < 0 && len(args) > 0 {
				return fmt.Errorf("flags of the loops stand after --")
			}
			return nil
		},
		RunE: func(c *cobra.Command, typed []string) error { return a.mcp(c.Context(), dir, typed) },
	})
	registerDir(c, &dir)
	return c
}

func (a *app) mcp(ctx context.Context, dir string, typed []string) error {
	s := mcpServer{app: a, typed: typed, loops: evalLoops()}
	var err error
	if s.dir, err = loop.AbsDir(dir); err != nil {
		return err
	}
	if s.logs, err = group.Cache("mcp"); err != nil {
		return failure.Of(err, "")
	}
	if s.program, err = os.Executable(); err != nil {
		return err
	}
	if _, err := a.onlyFlags(s.loops[0], typed); err != nil {
		return failure.UsageOf(err, "hone help "+s.loops[0].Name)
	}
	return s.serve(ctx)
}

// workFlags are the flags that describe the work. The others say how it is judged, what it costs,
// or what it may do.
var workFlags = []string{"check", "metric", "lower", "higher", "target", "confirm", "profile", "files", "query"}

func (a *app) clientFlags(k loop.Kind, args []string) error {
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
