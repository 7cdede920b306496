// Command hone-fleet runs loops of hone in many repositories, on many machines, within one
// budget. "hone fleet" runs it.
//
// Most commands are clients of a Temporal server: submit starts a batch; list, show, answer
// and cancel query or change it; results reads from the store what its jobs changed. worker works on jobs until it is stopped; any number of workers
// can run, on any number of machines. dev starts all of this on one machine. The package
// words errors and hints, and chooses exit statuses. Package flow schedules jobs and keeps
// the budget; package leg does a job's work.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"hone"
	"hone/cmd/hone/failure"
	"hone/internal/render"
	"hone/sandbox/wall"
)

// Version is the version of the program. Release builds set it.
var Version = "devel"

func main() {
	wall.Helper() // in a helper process this call does not return
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := &app{out: os.Stdout, err: os.Stderr}
	status := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

type app struct {
	out, err io.Writer
	address  string // of the Temporal server; empty means that of Temporal's own configuration
	parsed   bool   // the command line is valid
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.command()
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	c, err := root.ExecuteContextC(ctx)
	switch {
	case ctx.Err() != nil:
		return failure.ExitStatus(hone.KindInterrupted)
	case err == nil:
		return 0
	}
	f, ok := failure.Explain(err, "")
	if !ok && !a.parsed {
		f.Kind, f.Hint = hone.KindUsage, cmp.Or(f.Hint, c.CommandPath()+" --help")
	}
	a.say("error", f.Error())
	a.say("hint", f.Hint)
	return failure.ExitStatus(f.Kind)
}

func (a *app) say(what, text string) {
	if text != "" {
		fmt.Fprintf(a.err, "hone-fleet: %s: %s\n", what, strings.TrimRight(render.Escape(text), "\n"))
	}
}

func (a *app) command() *cobra.Command {
	cobra.EnableCommandSorting = false // the help lists commands in the order of their use
	root := &cobra.Command{
		Use:   "hone-fleet",
		Short: "run loops of hone in many repositories, on many machines",
		Long: `hone-fleet runs a loop of hone in each of many repositories, on many machines, within one budget. A Temporal
server distributes the jobs to workers. If a machine fails, another one continues its jobs; you never pay
twice for a recorded reply.

Start with: hone-fleet dev`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		PersistentPreRun: func(*cobra.Command, []string) {
			a.parsed = true
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetVersionTemplate("hone-fleet {{.Version}}\n")
	root.PersistentFlags().StringVar(&a.address, "address", "", "HOST:PORT of the Temporal server (default TEMPORAL_ADDRESS, or "+client.DefaultHostPort+")")
	root.AddCommand(a.submitCommand(), a.listCommand(), a.showCommand(), a.answerCommand(), a.cancelCommand(),
		a.resultsCommand(), a.workerCommand(), a.devCommand())
	return root
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return fmt.Sprintf("%s (%.12s)", Version, s.Value)
		}
	}
	return Version
}

// The first argument is a batch. A negative most means no maximum.
func batchArgs(form string, least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		return failure.Usage(fmt.Sprintf("%s takes %s", c.Name(), form), "hone-fleet list shows the ids of batches")
	}
}
