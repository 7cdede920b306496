package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"hone/cmd/hone/failure"
	"hone/fleet/flow"
	"hone/fleet/job"
)

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
