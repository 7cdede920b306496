package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

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

// batch returns the status of a batch, or an error for the user. If no worker answers, this
// process does until the connection is closed.
func (c *connection) batch(ctx context.Context, id string) (flow.Status, error) {
	s, err := readWithin(ctx, c, id, workersTime)
	if !noWorker(err) {
		return s, serverFailure(err, id)
	}
	queue, err := flow.Queue(ctx, c, id)
	if err == nil && c.served[queue] == nil {
		err = c.standIn(queue)
	}
	if err == nil {
		s, err = readWithin(ctx, c, id, answerWithin)
	}
	return s, serverFailure(err, id)
}

// standIn lets this process answer for the batches in a queue.
func (c *connection) standIn(queue string) error {
	stop, err := flow.StandIn(c.Client, queue)
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

// readWithin reads the status of a batch, and gives up after some time.
func readWithin(ctx context.Context, t client.Client, id string, time time.Duration) (flow.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, time)
	defer cancel()
	s, err := flow.Read(ctx, t, id)
	if err == nil {
		err = plainNames(s)
	}
	return s, err
}

// noWorker reports whether a query failed because no worker is running.
func noWorker(err error) bool {
	idle := (*serviceerror.FailedPrecondition)(nil) // no worker was there for a while
	late := (*serviceerror.DeadlineExceeded)(nil)
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &late) || errors.As(err, &idle) && strings.Contains(idle.Message, "no poller")
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
