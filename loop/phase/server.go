package phase

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
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

// Server connects the verifier's walls to the project's server, which runs behind
// walls of its own while a suite runs (rulings A9 and A13). It accepts connections
// only while an instance or a stub is up.
type Server struct {
	url  string
	port int

	mu      sync.Mutex
	live    func(net.Conn) // serves a connection; nil while no server is up
	address string         // where commands find it
}

// NewServer returns the Server for the URL of a server on this machine, such as
// http://localhost:3000. The URL must name a port.
func NewServer(address string) (*Server, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL: %w", address, err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil || port < 1 || port > 65535 {
		return nil, fmt.Errorf("%q names no port", address)
	}
	return &Server{url: address, port: port, address: address}, nil
}

// Door returns the door of the verifier's walls. In walls with a network of their
// own it listens at the server's address. In other walls the server itself
// has that address, and the door listens on any free port: see [Server.SetAddr].
func (s *Server) Door(ownNet bool) sandbox.Door {
	addr := "127.0.0.1:0"
	if ownNet {
		addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
	}
	return sandbox.Door{Addr: addr, Serve: s.serve}
}

// SetAddr sets the address at which the door listens, once the walls exist.
func (s *Server) SetAddr(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, port, err := net.SplitHostPort(addr); err == nil && port != strconv.Itoa(s.port) {
		s.address = "http://" + addr
	}
}

// URL returns the URL that NewServer was given.
func (s *Server) URL() string { return s.url }

// Address returns the URL at which the verifier's commands reach the server.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// nil closes the connections of commands.
func (s *Server) setHandler(live func(net.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = live
}

func (s *Server) serve(c net.Conn) {
	s.mu.Lock()
	live := s.live
	s.mu.Unlock()
	if live == nil {
		c.Close()
		return
	}
	live(c)
}

var errDown = errors.New("the server is not up")

func (g *instance) dial(ctx context.Context) (net.Conn, error) {
	g.mu.Lock()
	up := g.up
	g.mu.Unlock()
	if up == nil {
		return nil, errDown
	}
	return up.running.Dial(ctx, g.server.port)
}

// stub answers every request with one status and an empty body, in place of the project's server, so that a suite can be seen
// to fail (ruling A14). It serves until end is called, which returns how many requests it has answered. No other server may be up.
func (s *Server) stub(status int) (end func() int) {
	var requests atomic.Int64
	s.setHandler(func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			requests.Add(1)
			if req.Header.Get("Expect") != "" {
				fmt.Fprint(c, "HTTP/1.1 100 Continue\r\n\r\n")
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
			if _, err := fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\n\r\n", status, http.StatusText(status)); err != nil || req.Close {
				return
			}
		}
	})
	return func() int {
		s.setHandler(nil)
		return int(requests.Load())
	}
}

// instance is the project's server for one run of the test suite. The server is
// not a step: the first step that is not replayed starts it, and so a run that
// resumes in the middle of a verification starts it again (ruling A9).
type instance struct {
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

// The run of the suite began with the last step that the round took of a name, since. The first requests are recorded, at most
// most of them but always the first. Nothing is started; end it with stop.
func (s *Server) instance(ctx context.Context, r *hone.Run, hooks Hooks, since string, most int) *instance {
	g := &instance{ctx: ctx, run: r, server: s, hooks: hooks}
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

// started is the outcome of starting the server.
type started struct {
	Up  bool   `json:"up"`
	Why string `json:"why,omitempty"` // why it is not up
	// The report's Log is the server's output if it is not up.
	history.Report
}

func (g *instance) ensureUp(ctx context.Context) error {
	g.mu.Lock()
	up := g.up != nil
	g.mu.Unlock()
	if up {
		return nil
	}
	before := g.countRecorded(history.Up) > 0
	got, err := g.start(ctx)
	if err == nil && !got.Up {
		err = &hone.Stop{Kind: hone.KindFailed, Why: "the server started before, but does not now: " + got.Why,
			Next: hone.Next{First: "read " + devLog, Verb: hone.Resume}}
	}
	g.mu.Lock()
	g.restarted = before
	g.mu.Unlock()
	return err
}

// countRecorded counts in this run of the suite, also in earlier processes.
func (g *instance) countRecorded(what string) (n int) {
	for _, s := range history.Of[history.Served](g.since()) {
		if s.What == what {
			n++
		}
	}
	return n
}

// The server must be down.
func (g *instance) start(ctx context.Context) (started, error) {
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

func (g *instance) startWith(ctx context.Context, c *conductor) (started, error) {
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

func (g *instance) log() string {
	for _, name := range []string{devLog, otherDevLog} {
		if text, err := artifact.Read(g.run.Tree.Dir(), name, maxLog); err == nil {
			return excerpt.Middle(string(text), maxExcerpt)
		}
	}
	return ""
}

// It stops the server, if it is up, and all processes that it started.
func (g *instance) stop() error {
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

// The server is up for the role whenever a model call or a command of it is not replayed.
func (g *instance) role(role hone.Role) hone.Role {
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

type servedModel struct {
	*instance
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
func (g *instance) command(run func(context.Context, tool.Input) (tool.Result, error)) func(context.Context, tool.Input) (tool.Result, error) {
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
