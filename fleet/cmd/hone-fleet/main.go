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
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"hone"
	"hone/cmd/hone/failure"
	"hone/fleet/flow"
	"hone/fleet/job"
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

// answerWithin is how long the commands wait for the server, and for a worker to answer for a batch.
const answerWithin = 15 * time.Second

// --address comes first, then the variables that Temporal's own command line reads (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE,
// TEMPORAL_TLS_…, TEMPORAL_API_KEY), then the profile of its configuration file that TEMPORAL_PROFILE names.
func (a *app) dial(ctx context.Context) (client.Client, error) {
	p, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{})
	p.Address, p.Namespace = cmp.Or(a.address, p.Address, client.DefaultHostPort), cmp.Or(p.Namespace, client.DefaultNamespace)
	var o client.Options
	if err == nil {
		o, err = p.ToClientOptions(envconfig.ToClientOptionsRequest{})
	}
	if err != nil {
		return nil, failure.Usage(fmt.Sprintf("Temporal's configuration: %v", err), "correct the TEMPORAL_ variables, or Temporal's configuration file")
	}
	o.Logger = log.NewStructuredLogger(slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn})))
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, failure.Of(fmt.Errorf("the Temporal server at %s does not answer: %w", o.HostPort, err),
			"start one with hone-fleet dev, or name yours with --address HOST:PORT")
	}
	return c, nil
}

// "last" is the newest batch.
func (a *app) withBatch(ctx context.Context, id string, do func(t client.Client, s flow.Status) error) error {
	t, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	if id, err = lastBatch(ctx, t, id); err != nil {
		return err
	}
	r := readAll(ctx, t, id)[id]
	if r.err != nil {
		return r.err
	}
	return do(t, r.Status)
}

type reading struct {
	flow.Status
	err error
}

// It reads at most 32 at the same time: one that does not answer does not delay the others.
func readAll(ctx context.Context, t client.Client, ids ...string) map[string]reading {
	all := map[string]reading{}
	var lock sync.Mutex
	var g errgroup.Group
	g.SetLimit(32)
	for _, id := range ids {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, answerWithin)
			defer cancel()
			s, err := flow.Read(ctx, t, id)
			for late(err) && ctx.Err() == nil { // the server needs ten seconds to notice that a worker died with a task of the batch
				s, err = flow.Read(ctx, t, id)
			}
			if err == nil {
				err = plainNames(s)
			}
			lock.Lock()
			defer lock.Unlock()
			all[id] = reading{s, serverFailure(err, id)}
			return nil
		})
	}
	_ = g.Wait() // each has its own error
	return all
}

// submit refuses other names. They become names of files and branches here, and others can start workflows without submit.
func plainNames(s flow.Status) error {
	for _, j := range s.Jobs {
		if !job.ValidName(s.ID) || !job.ValidName(j.Name) {
			return fmt.Errorf("job %q of batch %q was not submitted by hone-fleet", j.Name, s.ID)
		}
	}
	return nil
}

func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*serviceerror.DeadlineExceeded))
}

func serverFailure(err error, id string) error {
	idle := (*serviceerror.FailedPrecondition)(nil) // no worker was there for a while
	refused, declined := (*serviceerror.QueryFailed)(nil), (*temporal.ApplicationError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, flow.ErrUnknown):
		return failure.Usage("there is no batch "+id, "hone-fleet list")
	case errors.Is(err, flow.ErrEnded):
		return failure.Usage(fmt.Sprintf("batch %s has ended", id), "hone-fleet show "+id)
	case errors.As(err, &declined): // by the batch
		return failure.Usage(fmt.Sprintf("batch %s: %s", id, declined.Message()), "hone-fleet show "+id)
	case errors.As(err, &refused):
		return failure.Of(fmt.Errorf("batch %s: %w", id, err), "")
	case late(err), errors.As(err, &idle) && strings.Contains(idle.Message, "no poller"):
		return failure.Of(fmt.Errorf("batch %s does not answer: no worker is running", id), "hone-fleet worker --store DIR --key FILE")
	}
	return failure.Of(err, "")
}
