package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"hone/fleet/flow"
	"hone/fleet/leg"
	"hone/fleet/store"
)

// workerFlags are the flags of worker; dev has some of them.
type workerFlags struct {
	store    string
	key      string
	dir      string
	hone     string
	queue    string
	sandbox  string
	trust    string
	parallel int
}

func (a *app) workerCommand() *cobra.Command {
	var f workerFlags
	c := &cobra.Command{
		Use:   "worker --store DIR|s3://… --key FILE",
		Short: "work on jobs until Ctrl-C",
		Long: `worker takes jobs from the server and works on each with hone. Start as many workers as you like, on as many
machines. Ctrl-C or SIGTERM interrupts its jobs, which other workers continue.

--store is what all workers share: a directory, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME, with AWS's usual
variables for its credentials. --key is a file with 32 bytes or more that all workers share. They sign what
they keep in the store with it, and continue no run that is not signed.

The keys of models, and of repositories, are those of the worker's environment. hone and the commands of
jobs run as the user who starts the worker, with hone's walls. --trust lets the repositories of all jobs
configure hone, and run their own checkers: give it if you trust everybody who can submit.`,
		Example: `  (umask 077 && head -c 32 /dev/urandom | base64 >fleet.key)
  hone-fleet worker --store /srv/hone --key fleet.key --parallel 4`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.worker(c.Context(), f) },
	}
	l := c.Flags()
	l.StringVar(&f.store, "store", os.Getenv(storeVariable), "where workers keep runs and results: DIR or s3://BUCKET (default "+storeVariable+")")
	l.StringVar(&f.key, "key", "", "a file with the key that the workers share")
	l.StringVar(&f.dir, "dir", "", "where clones are kept (default in the cache directory of the user)")
	l.StringVar(&f.queue, "queue", queueName, "take only jobs that were submitted with the same --queue")
	l.StringVar(&f.trust, "trust", "", "let the repositories of jobs configure hone and run their own checkers; =DIGEST: with these settings only")
	l.Lookup("trust").NoOptDefVal = "1"
	l.IntVar(&f.parallel, "parallel", 2, "how many jobs to work on at the same time")
	f.registerShared(c)
	return c
}

// registerShared registers the flags that dev has, too.
func (f *workerFlags) registerShared(c *cobra.Command) {
	c.Flags().StringVar(&f.hone, "hone", "", "the program hone (default the one beside hone-fleet, or on your PATH)")
	c.Flags().StringVar(&f.sandbox, "sandbox", "", "the walls of hone's commands, as hone --sandbox (default the strongest)")
}

func (a *app) worker(ctx context.Context, f workerFlags) error {
	w, err := f.leg()
	if err != nil {
		return err
	}
	t, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	stop, err := startWorker(t, f, w)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintf(a.out, "working on at most %d jobs at a time, from queue %s; Ctrl-C stops\n", f.parallel, f.queue)
	<-ctx.Done()
	fmt.Fprintln(a.err, "hone-fleet: interrupting the jobs; other workers can continue them")
	return nil
}

// leg returns what works on jobs.
func (f workerFlags) leg() (*leg.Worker, error) {
	if f.store == "" {
		return nil, usage("a worker needs a store that all workers share", "add --store DIR or --store s3://BUCKET, or set "+storeVariable)
	}
	if f.parallel < 1 {
		return nil, usage("--parallel must be greater than 0", "")
	}
	if f.key == "" {
		return nil, usage("a worker needs a key that all workers share", "(umask 077 && head -c 32 /dev/urandom | base64 >fleet.key), then add --key fleet.key")
	}
	key, err := leg.ReadKey(f.key)
	if err != nil {
		return nil, usage(err.Error(), hintOf(err))
	}
	hone, err := findHone(f.hone)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(f.store)
	if err != nil {
		return nil, usage(err.Error(), "")
	}
	if f.dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, failed(err, "name a directory: --dir DIR")
		}
		f.dir = filepath.Join(cache, "hone-fleet")
	}
	w := &leg.Worker{Store: s, Key: key, Hone: hone, Dir: f.dir, Trust: f.trust}
	if f.sandbox != "" {
		w.Args = []string{"--sandbox", f.sandbox}
	}
	return w, nil
}

// findHone returns the path of hone.
func findHone(named string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", failed(err, "name hone: --hone PATH")
	}
	for _, name := range []string{named, filepath.Join(filepath.Dir(self), "hone"), "hone"} {
		if found, err := exec.LookPath(name); err == nil && (named == "" || name == named) {
			return filepath.Abs(found)
		}
	}
	return "", usage(cmp.Or(named, "the program hone")+" cannot be found", "name hone: --hone PATH")
}

// stopWorker is how long a worker has to store its runs when it stops.
const stopWorker = 45 * time.Second

// startWorker starts a worker and returns what stops it.
func startWorker(t client.Client, f workerFlags, legs *leg.Worker) (func(), error) {
	w := worker.New(t, f.queue, worker.Options{MaxConcurrentActivityExecutionSize: f.parallel, WorkerStopTimeout: stopWorker})
	flow.Register(w)
	w.RegisterActivityWithOptions(legs.Leg, activity.RegisterOptions{Name: flow.Leg})
	if err := w.Start(); err != nil {
		return nil, failed(err, "")
	}
	return w.Stop, nil
}

// hintOf returns what an error of another package says to type next; empty if it says
// nothing.
func hintOf(err error) string {
	if h := hinter(nil); errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}
