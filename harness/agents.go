package harness

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"hone"
	"hone/internal/config"
	"hone/loop"
	"hone/model"
	"hone/model/command"
	"hone/model/forward"
	"hone/sandbox"
)

// agentProvider is how a command-line agent is named as a model:
// command/NAME, or command/NAME/MODEL.
const agentProvider = "command"

// appoint finds the agent that a model's name names, among those of the
// configuration.
func appoint(m *loop.Model, allowed bool, agents map[string]config.Agent, root string) error {
	p, rest, err := split(m.Name)
	if err != nil || p.Name != agentProvider {
		return err
	}
	if !allowed {
		return loop.Usage(m.Name+": a command-line agent can only be the executor of task, or the builder or verifier of phase", "name a model: --model gemini/gemini-2.5-pro")
	}
	name, asked, _ := strings.Cut(rest, "/")
	agent, ok := agents[name]
	if !ok {
		return loop.Usage(fmt.Sprintf("there is no command-line agent %q", name),
			fmt.Sprintf("write [commands.%s] with argv = […] into %s; docs/agents.md has examples for gemini, codex, claude, opencode, qwen and aider", name, config.HonePath))
	}
	if agent.Read, err = loop.PlacedAll(root, agent.Read); err != nil {
		return err
	}
	if agent.Write, err = loop.PlacedAll(root, agent.Write); err != nil {
		return err
	}
	for _, p := range agent.Write {
		if _, err := os.Stat(p); err != nil {
			return loop.Usage(fmt.Sprintf("%s: commands.%s.write: %s does not exist", config.HonePath, name, p), "create it, or remove it from the list")
		}
	}
	m.Agent = &loop.Agent{Name: name, Agent: agent, Asked: cmp.Or(asked, agent.Model)}
	m.Reach("") // it is reached by the address of its section
	return nil
}

// forwarded is whom an agent asks by its forwarder; ok is false where it has
// none.
func forwarded(s *loop.Agent) (p Provider, ok bool) {
	i := slices.IndexFunc(Providers(), func(p Provider) bool { return s.Wire != "" && p.Name == s.Wire })
	if i < 0 {
		return p, false
	}
	return Providers()[i], true
}

// endpoint is where its calls go; empty for the provider's own place.
func (h Host) endpoint(s *loop.Agent) string {
	p, _ := forwarded(s)
	return cmp.Or(s.BaseURL, h.getenv(p.Base))
}

// Ready says what a command-line agent lacks, before anything is written.
func (h Host) Ready(m loop.Model) error {
	s := m.Agent
	if _, err := agentModel(s, nil, "", nil); err != nil {
		return err
	}
	if p, ok := forwarded(s); ok {
		if key, variable := p.Key(h.getenv); key == "" && h.endpoint(s) == "" {
			return loop.Usage(fmt.Sprintf("the agent %s asks %s, which needs a key, and %s is not set", s.Name, p.Name, strings.Join(p.Keys, " or ")), fmt.Sprintf("export %s=…", variable))
		}
	}
	for _, name := range s.Env {
		if h.getenv(name) == "" {
			return loop.Usage(fmt.Sprintf("the agent %s has env = [%q], but the variable is not set", s.Name, name), fmt.Sprintf("export %s=…", name))
		}
	}
	return nil
}

// agentModel is an agent as a model, by a runner behind its walls.
func agentModel(s *loop.Agent, r sandbox.Runner, dir string, redact func(string) string) (*command.Agent, error) {
	agent, err := command.New(r, command.Config{
		Name: s.Name, Argv: s.Argv, Model: s.Asked, Stdin: command.Stdin(s.Stdin), Dir: dir,
		Timeout: s.Timeout.Value(), Exits: s.Exits, Answer: s.Answer, Redact: redact,
		Usage: command.Usage(s.Usage),
	})
	var wrong *model.Error
	if errors.As(err, &wrong) {
		return nil, loop.Usage(config.HonePath+": "+wrong.Message, wrong.Hint)
	}
	return agent, err
}

// enclosedAgent is an agent that works behind walls, and whose calls of models
// are passed on by a forwarder where it has one.
type enclosedAgent struct {
	model loop.Model
	role  string
	run   *hone.Run
	walls *walls
	inner *command.Agent

	config forward.Config // without a ledger where the agent has no forwarder
	door   int            // the forwarder's, among the walls' doors
	mu     sync.Mutex
	passes *forward.Forward // during a session; nil otherwise
	report forward.Report   // of the last session
}

var _ model.Model = (*enclosedAgent)(nil)

// enclose puts an agent behind the walls of its role.
func (s *Session) enclose(m loop.Model, role string, walls *walls) (*enclosedAgent, error) {
	e := &enclosedAgent{model: m, role: role, run: s.run, walls: walls}
	var err error
	if e.inner, err = agentModel(m.Agent, e, walls.want.Root, s.guard.Redact); err != nil {
		return nil, err
	}
	if p, ok := forwarded(m.Agent); ok {
		key, _ := p.Key(s.host.getenv)
		e.config = forward.Config{Wire: forward.Wire(m.Agent.Wire), Base: s.host.endpoint(m.Agent), Key: key, Ledger: e,
			Hosted: m.Agent.Hosted, Timeouts: model.Timeouts{Idle: m.Idle, Total: m.Total}}
		probe, err := forward.New(e.config)
		if err != nil {
			return nil, loop.Usage(fmt.Sprintf("the agent %s: %v", m.Agent.Name, err), "see base-url in [commands."+m.Agent.Name+"]")
		}
		probe.Close()
		e.door = len(walls.want.Doors)
		walls.want.Doors = append(walls.want.Doors, sandbox.Door{Addr: "127.0.0.1:0", Serve: e.serve})
	}
	walls.want.Settings.Net = walls.want.Settings.Net || m.Agent.Net
	walls.want.Settings.Read = slices.Concat(walls.want.Settings.Read, placedHome(m.Agent.Home), m.Agent.Read)
	walls.want.Settings.Write = slices.Concat(walls.want.Settings.Write, placedHome(m.Agent.HomeWrite), m.Agent.Write)
	walls.want.home = slices.Concat(m.Agent.Home, m.Agent.HomeWrite)
	walls.want.keep = slices.Concat(walls.want.keep, m.Agent.Env)
	walls.exposed = m.Exposed()
	return e, nil
}

// placedHome are paths below the user's home, absolute, of what is there.
func placedHome(paths []string) []string {
	var placed []string
	home, err := os.UserHomeDir()
	for _, p := range paths {
		at := filepath.Join(home, strings.TrimPrefix(p, "~/"))
		if _, statErr := os.Lstat(at); err == nil && statErr == nil {
			placed = append(placed, at)
		}
	}
	return placed
}

// Generate has the agent hold a session. What it could not do because its
// calls were refused is the budget's doing, not its own, whatever it says and
// however it ends.
func (e *enclosedAgent) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	e.report = forward.Report{}
	reply, err := e.inner.Generate(ctx, req)
	var stop *hone.Stop
	var over *forward.Overrun
	switch {
	case ctx.Err() != nil:
	case errors.As(e.report.Stopped, &over):
		return reply, &hone.Stop{Kind: hone.KindBudget, Why: over.Error(), Next: hone.Next{First: "choose another model", Verb: hone.NewRun}}
	case errors.As(e.report.LedgerErr, &stop) || errors.As(e.report.Stopped, &stop):
		return reply, stop
	}
	return reply, err
}

// serve answers one connection of the agent's.
func (e *enclosedAgent) serve(c net.Conn) {
	e.mu.Lock()
	passes := e.passes
	e.mu.Unlock()
	if passes == nil {
		c.Close()
		return
	}
	passes.ServeConn(c)
}

// pass lets calls through until they are closed, when every reserve is
// settled.
func (e *enclosedAgent) pass(to *forward.Forward) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.passes = to
}

// Reserve puts a call of the agent's on the run's ledger.
func (e *enclosedAgent) Reserve(_ context.Context, c forward.Call) (forward.Reservation, error) {
	m := loop.Model{Name: e.model.Agent.Wire + "/" + strings.TrimPrefix(c.Model, "models/")}
	if m.Name == e.model.PricedAs() {
		m.MaxOutput, m.Price = e.model.MaxOutput, e.model.Price
	}
	complete(&m)
	if c.MaxOutput > 0 {
		m.MaxOutput = c.MaxOutput
	}
	most, settle, err := e.run.Reserve(m.Role(e.role, ""), c.RequestBytes)
	return forward.Reservation{MaxOutput: most, Commit: settle}, err
}

// Run runs the agent behind its walls, with what it needs to find its
// forwarder.
func (e *enclosedAgent) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	if err := e.walls.stand(ctx); err != nil {
		return sandbox.Result{}, err
	}
	vars, config := slices.Clone(e.model.Agent.Set), e.config
	if e.model.Agent.KeyEnv != "" {
		config.Secret = dummyKey + rand.Text()
		vars = append(vars, e.model.Agent.KeyEnv+"="+config.Secret)
	}
	if e.config.Ledger == nil {
		return e.walls.runWith(ctx, c, vars)
	}
	passes, err := forward.New(config)
	if err != nil {
		return sandbox.Result{}, err
	}
	vars = append(vars, e.model.Agent.BaseURLEnv+"="+passes.URL(e.walls.up.DoorAddr(e.door)))
	e.pass(passes)
	result, err := e.walls.runWith(ctx, c, vars)
	e.pass(nil)
	passes.Close()
	e.report = passes.Report()
	return result, err
}

// dummyKey begins what an agent has in the place of a key: the forwarder adds
// the real one. What follows is another in each session, by which the forwarder
// knows the agent.
const dummyKey = "the-key-is-added-outside-of-the-walls-"
