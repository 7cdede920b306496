package phase

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"hone"
	"hone/history"
	"hone/internal/artifact"
	"hone/internal/excerpt"
	"hone/model"
	"hone/sandbox"
	"hone/tool"
)

// Instance is the project's server for one run of the test suite. The server is
// not a step: the first step that is not replayed starts it, and so a run that
// resumes in the middle of a verification starts it again (ruling A9).
type Instance struct {
	ctx     context.Context // of the round: the server lives longer than a step
	run     *hone.Run
	server  *Server
	hooks   Hooks
	since   func() []history.Event // what happened in the run of the suite
	forward *sandbox.Forwarding

	requests atomic.Int64

	mu        sync.Mutex
	up        *conductor // nil while the server is down
	restarted bool       // the server was up before in this suite, which the verifier does not know yet
}

// Instance returns the server for the run of the suite that began with the last
// step that the round took of a name, since. It records the first requests, at most most of them but
// always the first. It starts nothing; end it with [Instance.Stop].
func (s *Server) Instance(ctx context.Context, r *hone.Run, hooks Hooks, since string, most int) *Instance {
	g := &Instance{ctx: ctx, run: r, server: s, hooks: hooks}
	began, _ := r.Taken(since)
	g.since = func() []history.Event { return r.Past().Since(began) }
	g.forward = sandbox.ForwardBy(net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), g.dial, func() {
		if n := int(g.requests.Add(1)); n <= max(1, most) {
			// A request that cannot be recorded is not evidence; the next event ends the run.
			_ = r.Served(history.Served{What: history.Reached, URL: s.url, Requests: n})
		}
	})
	return g
}

// Requests returns how many requests have reached the server in this process.
func (g *Instance) Requests() int { return int(g.requests.Load()) }

// started is the outcome of starting the server.
type started struct {
	Up  bool   `json:"up"`
	Why string `json:"why,omitempty"` // why it is not up
	// The report's Log is the server's output if it is not up.
	history.Report
}

func (g *Instance) ensureUp(ctx context.Context) error {
	g.mu.Lock()
	up := g.up != nil
	g.mu.Unlock()
	if up {
		return nil
	}
	before := g.countRecorded(history.Up) > 0
	got, err := g.Start(ctx)
	if err == nil && !got.Up {
		err = &hone.Stop{Kind: hone.KindFailed, Why: "the server started before, but does not now: " + got.Why,
			Next: hone.Next{First: "read " + devLog, Verb: hone.Resume}}
	}
	g.mu.Lock()
	g.restarted = before
	g.mu.Unlock()
	return err
}

// RecordedRequests returns how many requests are recorded for this run of the suite, also by
// earlier processes.
func (g *Instance) RecordedRequests() int { return g.countRecorded(history.Reached) }

func (g *Instance) countRecorded(what string) (n int) {
	for _, s := range history.Of[history.Served](g.since()) {
		if s.What == what {
			n++
		}
	}
	return n
}

// Start starts the server, which must be down.
func (g *Instance) Start(ctx context.Context) (started, error) {
	c, err := g.hooks.startConductor(g.ctx)
	if err != nil {
		return started{}, err
	}
	got, err := g.startWith(ctx, c)
	if err != nil || !got.Up {
		return got, errors.Join(err, c.end(ctx))
	}
	g.mu.Lock()
	g.up = c
	g.mu.Unlock()
	g.server.setHandler(g.forward.Serve)
	return got, g.run.Served(history.Served{What: history.Up, URL: g.server.url})
}

func (g *Instance) startWith(ctx context.Context, c *conductor) (started, error) {
	if conn, err := c.running.Dial(ctx, g.server.port); err == nil {
		conn.Close()
		return started{}, &hone.Stop{Kind: hone.KindFailed, Why: fmt.Sprintf("another program answers on port %d, which the project's server needs", g.server.port),
			Next: hone.Next{First: "stop it", Verb: hone.Resume,
				Or: &hone.Next{First: "give the server another port in " + HooksName, Verb: hone.NewRun, Flags: []hone.Flag{{Name: "dev-url", Value: "URL"}}}}}
	}
	// A file of an earlier server must not be mistaken for one of this server.
	if err := artifact.Remove(g.run.Tree.Dir(), devPID); err != nil {
		return started{}, err
	}
	if err := c.must(ctx, "start_dev"); err != nil {
		return started{}, err
	}
	if why := c.await(ctx, g.server.port); why != "" {
		if ctx.Err() != nil {
			return started{}, context.Cause(ctx)
		}
		if output := c.output(); unwritableLog.FindString(output) != "" { // bash then does not start what would have written it
			return started{}, hookStop("start_dev", "could not write the server's log", output)
		}
		return started{Why: why, Report: history.Report{Said: "did not come up, see " + devLog, Log: g.log() + c.output()}}, nil
	}
	return started{Up: true, Report: history.Report{Said: "up at " + g.server.url}}, c.must(ctx, "reset_state")
}

func (g *Instance) log() string {
	for _, name := range []string{devLog, otherDevLog} {
		if text, err := artifact.Read(g.run.Tree.Dir(), name, maxLog); err == nil {
			return excerpt.Middle(string(text), maxExcerpt)
		}
	}
	return ""
}

// Stop stops the server and all processes that it started. It does nothing while
// the server is down.
func (g *Instance) Stop() error {
	g.mu.Lock()
	c := g.up
	g.up = nil
	g.mu.Unlock()
	if c == nil {
		return nil
	}
	g.server.setHandler(nil)
	g.forward.Close()
	err := c.end(g.ctx)
	return errors.Join(err, g.run.Served(history.Served{What: history.Down, URL: g.server.url}))
}

// Role returns a role for which the server is up whenever a model call or a command
// of it is not replayed.
func (g *Instance) Role(role hone.Role) hone.Role {
	role.Model = servedModel{g, role.Model}
	tools := make([]tool.Tool, len(role.Tools))
	for i, one := range role.Tools {
		if tools[i] = one; one.RunsCommands {
			tools[i].Run = g.command(one.Run)
			// The server's responses may differ each time, even if no file has changed.
			tools[i].MaxRepeats = max(one.MaxRepeats, maxRepeats)
		}
	}
	role.Tools = tools
	return role
}

// maxRepeats is how often the verifier may run the same command while no file
// in its directory changes.
const maxRepeats = 20

// servedModel is a model that is asked while the server is up.
type servedModel struct {
	*Instance
	inner model.Model
}

// Generate starts the server if it is down, before money is spent.
func (s servedModel) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	if err := s.ensureUp(ctx); err != nil {
		return model.Reply{}, err
	}
	return s.inner.Generate(ctx, req)
}

// restartNote precedes the output of the verifier's first command after a
// restart of the server.
const restartNote = "NOTE: the program that runs you was interrupted and has resumed. The server was just restarted and its state reset: the effects of earlier commands on it are lost. It answers at %s.\n\n"

// It starts the server if it is down.
func (g *Instance) command(run func(context.Context, tool.Input) (tool.Result, error)) func(context.Context, tool.Input) (tool.Result, error) {
	return func(ctx context.Context, in tool.Input) (tool.Result, error) {
		if err := g.ensureUp(ctx); err != nil {
			return tool.Result{}, err
		}
		result, err := run(ctx, in)
		g.mu.Lock()
		restarted := g.restarted
		g.restarted = false
		g.mu.Unlock()
		if restarted {
			result.Text = fmt.Sprintf(restartNote, g.server.Address()) + result.Text
		}
		return result, err
	}
}
