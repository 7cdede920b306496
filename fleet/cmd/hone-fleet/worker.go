package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"hone/cmd/hone/failure"
	"hone/fleet/flow"
	"hone/fleet/leg"
	"hone/fleet/store"
)

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
		Long: `worker takes jobs from the server, and runs hone for each. Start as many workers as you like, on as many machines
as you like. Ctrl-C or SIGTERM interrupts the jobs of a worker; other workers continue them.

--store is shared by all workers: a directory, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME with credentials in
AWS's usual variables. --key is a file of at least 32 bytes, the same for all workers. They sign with it what
they store, and never continue a run that is not signed.

The keys of models and repositories come from the worker's environment. hone and the commands of jobs run as the
user who starts the worker, behind hone's walls. --trust lets the repositories of all jobs configure hone and run
their own checkers: use it only if you trust everybody who can submit.`,
		Example: `  (umask 077 && head -c 32 /dev/urandom | base64 >fleet.key)
  hone-fleet worker --store /srv/hone --key fleet.key --parallel 4`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.worker(c.Context(), f) },
	}
	l := c.Flags()
	l.StringVar(&f.store, "store", os.Getenv(storeVariable), "where workers keep runs and results: DIR or s3://BUCKET (default "+storeVariable+")")
	l.StringVar(&f.key, "key", "", "file with the key that all workers share")
	l.StringVar(&f.dir, "dir", "", "directory for clones (default in your cache directory)")
	l.StringVar(&f.queue, "queue", queueName, "take only jobs that were submitted with the same --queue")
	l.StringVar(&f.trust, "trust", "", "let the repositories of jobs configure hone and run their own checkers; =DIGEST: only with these settings")
	l.Lookup("trust").NoOptDefVal = "1"
	l.IntVar(&f.parallel, "parallel", 2, "maximum number of jobs at the same time")
	f.registerShared(c)
	return c
}

func (f *workerFlags) registerShared(c *cobra.Command) {
	c.Flags().StringVar(&f.hone, "hone", "", "path of hone (default beside hone-fleet, or on your PATH)")
	c.Flags().StringVar(&f.sandbox, "sandbox", "", "walls around commands, as in hone --sandbox (default the strongest)")
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
	fmt.Fprintf(a.out, "working on at most %d jobs at a time from queue %s; Ctrl-C stops\n", f.parallel, f.queue)
	<-ctx.Done()
	fmt.Fprintln(a.err, "hone-fleet: interrupting the jobs; other workers can continue them")
	return nil
}

func (f workerFlags) leg() (*leg.Worker, error) {
	switch {
	case f.store == "":
		return nil, failure.Usage("a worker needs a store, the same for all workers", "add --store DIR or --store s3://BUCKET, or set "+storeVariable)
	case f.parallel < 1:
		return nil, failure.Usage("--parallel must be greater than 0", "")
	case f.key == "":
		return nil, failure.Usage("a worker needs a key, the same for all workers", "(umask 077 && head -c 32 /dev/urandom | base64 >fleet.key), then add --key fleet.key")
	}
	key, err := leg.ReadKey(f.key)
	if err != nil {
		return nil, failure.UsageOf(err, "")
	}
	hone, err := findHone(f.hone)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(f.store)
	if err != nil {
		return nil, failure.UsageOf(err, "")
	}
	if f.dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, failure.Of(err, "choose a directory with --dir DIR")
		}
		f.dir = filepath.Join(cache, "hone-fleet")
	}
	w := &leg.Worker{Store: s, Key: key, Hone: hone, Dir: f.dir, Trust: f.trust}
	if f.sandbox != "" {
		w.Args = []string{"--sandbox", f.sandbox}
	}
	return w, nil
}

func findHone(named string) (string, error) {
	found, err := findProgram(cmp.Or(named, "hone"), named != "")
	if err != nil {
		return "", failure.Usage("cannot find "+cmp.Or(named, "the program hone"), "name the program with --hone PATH")
	}
	return found, nil
}

// It is beside this program unless it is exact, or else on the PATH.
func findProgram(name string, exact bool) (string, error) {
	self, err := os.Executable()
	if beside, none := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil && none == nil && !exact {
		return beside, nil
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(found)
}

// stopWorker is how long a worker has to store its runs when it stops.
const stopWorker = 45 * time.Second

func startWorker(t client.Client, f workerFlags, legs *leg.Worker) (func(), error) {
	w := worker.New(t, f.queue, worker.Options{
		MaxConcurrentActivityExecutionSize: f.parallel, WorkerStopTimeout: stopWorker, MaxHeartbeatThrottleInterval: leg.Heartbeat,
	})
	flow.Register(w)
	w.RegisterActivityWithOptions(legs.Leg, activity.RegisterOptions{Name: flow.Leg})
	if err := w.Start(); err != nil {
		return nil, failure.Of(err, "")
	}
	return w.Stop, nil
}
