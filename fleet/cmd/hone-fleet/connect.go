package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"hone/fleet/flow"
)

// answerWithin is how long the commands wait for an answer of the server.
const answerWithin = 10 * time.Second

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
	o.Logger = log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	return o, err
}

// dial connects to the server.
func (a *app) dial(ctx context.Context) (client.Client, error) {
	o, err := a.server.options()
	if err != nil {
		return nil, usage(fmt.Sprintf("Temporal's configuration: %v", err), "correct the TEMPORAL_ variables, or Temporal's configuration file")
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, failed(fmt.Errorf("the Temporal server at %s does not answer: %w", o.HostPort, err),
			"start one with hone-fleet dev, or name yours with --address HOST:PORT")
	}
	return c, nil
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
	idle := (*serviceerror.FailedPrecondition)(nil) // no worker was there for a while
	if late := (*serviceerror.DeadlineExceeded)(nil); errors.As(err, &late) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &idle) && strings.Contains(idle.Message, "no poller") {
		return failed(fmt.Errorf("batch %s does not answer: no worker is running", id), "hone-fleet worker --store DIR --key FILE")
	}
	return failed(err, "")
}
