package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"golang.org/x/sync/errgroup"

	"hone/fleet/flow"
)

// answerWithin is how long the commands wait for an answer of the server.
const answerWithin = 15 * time.Second

// server names the Temporal server that the commands talk to.
type server struct{ address, namespace, profile string }

func (s *server) register(c *cobra.Command) {
	f := c.PersistentFlags()
	f.StringVar(&s.address, "address", "", "HOST:PORT of the Temporal server (default TEMPORAL_ADDRESS, or "+client.DefaultHostPort+")")
	f.StringVar(&s.namespace, "namespace", "", "namespace on the server (default TEMPORAL_NAMESPACE, or "+client.DefaultNamespace+")")
	f.StringVar(&s.profile, "profile", "", "profile in Temporal's configuration file (default TEMPORAL_PROFILE)")
}

// options returns the options of a client: the flags, else the variables that Temporal's
// own command line reads (TEMPORAL_ADDRESS, TEMPORAL_TLS_…, TEMPORAL_API_KEY), else the
// profile of its configuration file.
func (s *server) options() (client.Options, error) {
	p, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{ConfigFileProfile: s.profile})
	if err != nil {
		return client.Options{}, err
	}
	p.Address = cmp.Or(s.address, p.Address, client.DefaultHostPort)
	p.Namespace = cmp.Or(s.namespace, p.Namespace, client.DefaultNamespace)
	o, err := p.ToClientOptions(envconfig.ToClientOptionsRequest{})
	return o, err
}

// connection is a connection to the server.
type connection struct {
	client.Client
	app    *app
	served map[string]func() // by queue: they end the stand-ins of this process
}

// Close ends the stand-ins and the connection.
func (c *connection) Close() {
	for _, stop := range c.served {
		stop()
	}
	c.Client.Close()
}

// dial connects to the server.
func (a *app) dial(ctx context.Context) (*connection, error) {
	o, err := a.server.options()
	if err != nil {
		return nil, usage(fmt.Sprintf("Temporal's configuration: %v", err), "correct the TEMPORAL_ variables, or Temporal's configuration file")
	}
	o.Logger = &sdkLog{app: a}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, failed(fmt.Errorf("the Temporal server at %s does not answer: %w", o.HostPort, err),
			"start one with hone-fleet dev, or name yours with --address HOST:PORT")
	}
	return &connection{c, a, map[string]func(){}}, nil
}

// workersTime is how long a command waits for a worker to answer for a batch, before it
// answers for itself.
const workersTime = 3 * time.Second

// reading is the status of a batch, or why there is none.
type reading struct {
	flow.Status
	err error
}

// batch returns the status of a batch, or an error for the user. If no worker answers, this
// process does until the connection is closed.
func (c *connection) batch(ctx context.Context, id string) (flow.Status, error) {
	r := c.read(ctx, id)[id]
	return r.Status, r.err
}

// read is [connection.batch] for several batches.
func (c *connection) read(ctx context.Context, ids ...string) map[string]reading {
	all := readWithin(ctx, c, ids, workersTime)
	var silent []string
	for _, id := range ids {
		if !noWorker(all[id].err) {
			continue
		}
		if err := c.standIn(ctx, id); err != nil {
			all[id] = reading{err: err}
			continue
		}
		silent = append(silent, id)
	}
	maps.Copy(all, readWithin(ctx, c, silent, answerWithin))
	for id, r := range all {
		r.err = serverFailure(r.err, id)
		all[id] = r
	}
	return all
}

// standIn lets this process answer for the batches in the queue of a batch.
func (c *connection) standIn(ctx context.Context, id string) error {
	queue, err := flow.Queue(ctx, c, id)
	if err != nil || c.served[queue] != nil {
		return err
	}
	stop, err := flow.StandIn(c.Client, queue, id)
	if err != nil {
		return err
	}
	c.served[queue] = stop
	hint := "hone-fleet worker --store DIR --key FILE"
	if queue != queueName {
		hint += " --queue " + queue
	}
	c.app.say("note", "no worker answers; jobs continue when one is running: "+hint)
	return nil
}

// maxReads is the maximum number of batches that are read at the same time.
const maxReads = 32

// readWithin reads batches, and gives up each after some time.
func readWithin(ctx context.Context, t client.Client, ids []string, time time.Duration) map[string]reading {
	list := make([]reading, len(ids))
	var g errgroup.Group
	g.SetLimit(maxReads)
	for i, id := range ids {
		g.Go(func() error {
			list[i].Status, list[i].err = readOne(ctx, t, id, time)
			return nil
		})
	}
	_ = g.Wait() // each has its own error
	all := map[string]reading{}
	for i, id := range ids {
		all[id] = list[i]
	}
	return all
}

// readOne reads the status of a batch. It asks again until the time is over, because the SDK
// gives up after half of it, and the server needs ten seconds to notice that a worker died
// with a task of the batch.
func readOne(ctx context.Context, t client.Client, id string, time time.Duration) (s flow.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, time)
	defer cancel()
	for {
		s, err = flow.Read(ctx, t, id)
		if !late(err) || ctx.Err() != nil {
			break
		}
	}
	if err == nil {
		err = plainNames(s)
	}
	return s, err
}

// late reports whether a call ended because its time was over.
func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*serviceerror.DeadlineExceeded))
}

// noWorker reports whether a query failed because no worker is running.
func noWorker(err error) bool {
	idle := (*serviceerror.FailedPrecondition)(nil) // no worker was there for a while
	return late(err) || errors.As(err, &idle) && strings.Contains(idle.Message, "no poller")
}

// serverFailure words the error of a call about a batch.
func serverFailure(err error, id string) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, flow.ErrUnknown) {
		return usage("there is no batch "+id, "hone-fleet list")
	}
	if refused := (*serviceerror.QueryFailed)(nil); errors.As(err, &refused) {
		return failed(fmt.Errorf("batch %s: %w", id, err), "")
	}
	if noWorker(err) {
		return failed(fmt.Errorf("batch %s does not answer: no worker is running", id), "hone-fleet worker --store DIR --key FILE")
	}
	return failed(err, "")
}
