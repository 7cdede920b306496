package phase

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"hone"
	"hone/history"
	"hone/internal/artifact"
	"hone/model"
	"hone/sandbox"
	"hone/tool"
)

// stage holds the project's server open for one run of the suite. The server is
// no step: it is started by the first step that really runs, and a run that
// was resumed in the middle of a verification starts it again (ruling A9).
type stage struct {
	ctx     context.Context // the round's: the server lives longer than a step
	run     *hone.Run
	server  *Server
	hooks   Hooks
	forward *sandbox.Forwarding

	mu    sync.Mutex
	up    *conductor
	again bool // the server was up before for this suite, which nobody has been told yet
}

func (s *Server) stage(ctx context.Context, r *hone.Run, hooks Hooks) *stage {
	g := &stage{ctx: ctx, run: r, server: s, hooks: hooks}
	g.forward = sandbox.ForwardBy(net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), g.dial, func() {
		// What cannot be recorded is no evidence; the run ends by the next event.
		_ = r.Served(history.Served{What: history.Reached, URL: s.url})
	})
	return g
}

// started is what came of starting the server.
type started struct {
	Up  bool   `json:"up"`
	Why string `json:"why,omitempty"` // it is not up
	// Told's Log is what it wrote, where it is not up.
	history.Report
}

// first is the step that starts the server.
func (g *stage) first(ctx context.Context) (started, error) {
	if err := g.down(); err != nil {
		return started{}, err
	}
	return g.start(ctx)
}

// ensure starts the server where this process has not.
func (g *stage) ensure(ctx context.Context) error {
	g.mu.Lock()
	up := g.up != nil
	g.mu.Unlock()
	if up {
		return nil
	}
	before := served(g.run, history.Up)
	got, err := g.start(ctx)
	if err == nil && !got.Up {
		err = &hone.Stop{Kind: hone.KindFailed, Why: "the server started before, but does not now: " + got.Why,
			Next: hone.Next{First: "read " + serverLog, Verb: hone.Resume}}
	}
	g.mu.Lock()
	g.again = before
	g.mu.Unlock()
	return err
}

// served reports whether something happened to the server since the last
// verdict was removed.
func served(r *hone.Run, what string) bool {
	return slices.ContainsFunc(r.Past().Since(stepClear), func(e history.Event) bool {
		s, ok := e.Payload.(history.Served)
		return ok && s.What == what
	})
}

// start starts the server, waits until it answers, and resets its state.
func (g *stage) start(ctx context.Context) (started, error) {
	c, err := g.hooks.conduct(g.ctx)
	if err != nil {
		return started{}, err
	}
	got, err := g.raise(ctx, c)
	if err != nil || !got.Up {
		return got, errors.Join(err, c.end(ctx))
	}
	g.mu.Lock()
	g.up = c
	g.mu.Unlock()
	g.server.set(g)
	return got, g.run.Served(history.Served{What: history.Up, URL: g.server.url})
}

func (g *stage) raise(ctx context.Context, c *conductor) (started, error) {
	if conn, err := c.running.Dial(ctx, g.server.port); err == nil {
		conn.Close()
		return started{}, &hone.Stop{Kind: hone.KindFailed, Why: fmt.Sprintf("another program answers on port %d, which the project's server needs", g.server.port),
			Next: hone.Next{First: "stop it", Verb: hone.Resume, Or: "give the server another port, in " + ConfigName + " and with --dev-url, and start a new run"}}
	}
	if err := g.forget(serverPID); err != nil {
		return started{}, err
	}
	if err := c.must(ctx, "start_dev"); err != nil {
		return started{}, err
	}
	if why := c.answers(ctx, g.server.port); why != "" {
		if ctx.Err() != nil {
			return started{}, context.Cause(ctx)
		}
		return started{Why: why, Report: history.Report{Said: "did not come up, see " + serverLog, Log: g.log() + c.output()}}, nil
	}
	return started{Up: true, Report: history.Report{Said: "up at " + g.server.url}}, c.must(ctx, "reset_state")
}

// forget removes what an earlier server left, so that it is not taken for this
// one's.
func (g *stage) forget(name string) error {
	root, err := os.OpenRoot(g.run.Tree.Dir())
	if err != nil {
		return err
	}
	defer root.Close()
	return artifact.Remove(root, name)
}

// log is what the server wrote into the place that the seed has for it.
func (g *stage) log() string {
	root, err := os.OpenRoot(g.run.Tree.Dir())
	if err != nil {
		return ""
	}
	defer root.Close()
	text, err := artifact.Read(root, serverLog, mostLog)
	if err != nil {
		return ""
	}
	return middle(string(text), mostTold)
}

// down ends the server, with all that it started.
func (g *stage) down() error {
	g.mu.Lock()
	c := g.up
	g.up = nil
	g.mu.Unlock()
	if c == nil {
		return nil
	}
	g.server.set(nil)
	g.forward.Close()
	err := c.end(g.ctx)
	return errors.Join(err, g.run.Served(history.Served{What: history.Down, URL: g.server.url}))
}

// role is a verifier that finds the server up whenever something of it really
// runs.
func (g *stage) role(role hone.Role) hone.Role {
	role.Model = staged{g, role.Model}
	tools := make([]tool.Tool, len(role.Tools))
	for i, one := range role.Tools {
		if tools[i] = one; one.RunsCommands {
			tools[i].Run = g.command(one.Run)
			// What the server says is another thing each time, also where no file
			// has changed.
			tools[i].MaxRepeats = max(one.MaxRepeats, repeats)
		}
	}
	role.Tools = tools
	return role
}

// repeats is how often the verifier may run the same command while nothing in
// its folder changes.
const repeats = 20

// staged is a model that is asked while the server is up.
type staged struct {
	*stage
	inner model.Model
}

// Generate starts the server where it is not up, before money is spent.
func (s staged) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	if err := s.ensure(ctx); err != nil {
		return model.Reply{}, err
	}
	return s.inner.Generate(ctx, req)
}

// restarted is what the verifier is told with the first command after the
// server was started again.
const restarted = "NOTE: the program that runs you was interrupted and has resumed. The server was just restarted and its state reset: the effects of earlier commands on it are lost. It answers at %s.\n\n"

// command is a tool's command that finds the server up.
func (g *stage) command(run func(context.Context, tool.Input) (tool.Result, error)) func(context.Context, tool.Input) (tool.Result, error) {
	return func(ctx context.Context, in tool.Input) (tool.Result, error) {
		if err := g.ensure(ctx); err != nil {
			return tool.Result{}, err
		}
		result, err := run(ctx, in)
		g.mu.Lock()
		tell := g.again
		g.again = false
		g.mu.Unlock()
		if tell {
			result.Text = fmt.Sprintf(restarted, g.server.Address()) + result.Text
		}
		return result, err
	}
}

// Times of a server.
const (
	comeUp  = 2 * time.Minute // between the end of start_dev and the first answer
	goDown  = 10 * time.Second
	asking  = time.Second // one try to connect
	restful = 50 * time.Millisecond

	patience = 20 // tries after which it is looked whether there is anything to wait for
)
