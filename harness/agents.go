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
	"sync/atomic"
	"time"

	"hone"
	"hone/internal/config"
	"hone/loop"
	"hone/model"
	"hone/model/agent"
	"hone/sandbox"
)

// agentProvider is the provider of command-line agents: command/NAME, or
// command/NAME/MODEL.
const agentProvider = "command"

func assignAgent(m *loop.Model, allowed bool, agents map[string]config.Agent, root string) error {
	p, rest, err := splitModel(m.Name)
	if err != nil || p.Name != agentProvider {
		return err
	}
	if !allowed {
		return &hone.UsageError{Why: m.Name + ": a command-line agent can only be the model of fix, the executor of task, or the builder or verifier of phase",
			Next: hone.Next{First: "name a model", Flags: []hone.Flag{{Name: "model", Value: "gemini/gemini-2.5-pro"}},
				Or: &hone.Next{First: "run the loop fix", Flags: []hone.Flag{{Name: "model", Value: m.Name}}}}}
	}
	name, asked, _ := strings.Cut(rest, "/")
	section, ok := agents[name]
	if !ok {
		return loop.Usage(fmt.Sprintf("there is no command-line agent %q", name),
			fmt.Sprintf("write [commands.%s] with argv = […] into %s; docs/agents.md has examples for gemini, codex, claude, opencode, qwen and aider", name, config.HonePath))
	}
	for _, list := range []*[]string{&section.Read, &section.Write} {
		if *list, err = loop.AbsPaths(root, *list); err != nil {
			return err
		}
	}
	for _, p := range section.Write {
		if _, err := os.Stat(p); err != nil {
			return loop.Usage(fmt.Sprintf("%s: commands.%s.write: %s does not exist", config.HonePath, name, p), "create it, or remove it from the list")
		}
	}
	m.Agent = &loop.Agent{Name: name, Agent: section, Asked: cmp.Or(asked, section.Model)}
	m.SetBaseURL("") // its section of the configuration has its address
	m.KeyCommand = ""
	return nil
}

func wireProvider(s *loop.Agent) (Provider, bool) {
	for _, p := range Providers() {
		if s.Wire != "" && p.Name == s.Wire {
			return p, true
		}
	}
	return Provider{}, false
}

// Empty means the provider's own.
func (h Host) endpoint(s *loop.Agent) string {
	p, _ := wireProvider(s)
	return cmp.Or(s.BaseURL, h.getenv(p.Base))
}

// Ready returns an error if a command-line agent lacks a key or a variable. It
// writes nothing.
func (h Host) Ready(m loop.Model) error {
	s := m.Agent
	if _, err := agentModel(s, nil, "", nil); err != nil {
		return err
	}
	if p, ok := wireProvider(s); ok {
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

func agentModel(s *loop.Agent, r sandbox.Runner, dir string, redact func(string) string) (*agent.Agent, error) {
	timeout, _ := time.ParseDuration(s.Timeout) // the configuration was checked
	a, err := agent.New(r, agent.Config{Name: s.Name, Argv: s.Argv, Model: s.Asked, Dir: dir, Timeout: timeout,
		Exits: s.Exits, Answer: s.Answer, Redact: redact, Usage: agent.Usage(s.Usage)})
	var wrong *model.Error
	if errors.As(err, &wrong) {
		return nil, loop.Usage(config.HonePath+": "+wrong.Message, wrong.Hint)
	}
	return a, err
}

// enclosedAgent is an agent behind walls. If it has a forwarder, that forwards
// and charges its model calls.
type enclosedAgent struct {
	model loop.Model
	role  string
	run   *hone.Run
	walls *Walls
	inner *agent.Agent

	config    agent.ForwardConfig           // has no Reserve if the agent has no forwarder
	door      int                           // index of the forwarder's door
	forwarder atomic.Pointer[agent.Forward] // nil unless a session is in progress
	refused   error                         // why the forwarder of the last session refused calls
}

var _ model.Model = (*enclosedAgent)(nil)

func (s *Session) enclose(m loop.Model, role string, walls *Walls) (*enclosedAgent, error) {
	e := &enclosedAgent{model: m, role: role, run: s.run, walls: walls}
	var err error
	if e.inner, err = agentModel(m.Agent, e, walls.Root, s.guard.Redact); err != nil {
		return nil, err
	}
	if p, ok := wireProvider(m.Agent); ok {
		key, _ := p.Key(s.host.getenv)
		e.config = agent.ForwardConfig{Wire: m.Agent.Wire, Base: s.host.endpoint(m.Agent), Key: key, Reserve: e.reserve, Reader: p.reader,
			Hosted: m.Agent.Hosted, Timeouts: model.Timeouts{Idle: m.Idle, Total: m.Total}}
		probe, err := agent.NewForward(e.config)
		if err != nil {
			return nil, loop.Usage(fmt.Sprintf("the agent %s: %v", m.Agent.Name, err), "see base-url in [commands."+m.Agent.Name+"]")
		}
		probe.Close()
		e.door = len(walls.Settings.Doors)
		walls.Settings.Doors = append(walls.Settings.Doors, sandbox.Door{Addr: "127.0.0.1:0", Serve: func(c net.Conn) {
			if f := e.forwarder.Load(); f != nil {
				f.ServeConn(c)
			}
			c.Close()
		}})
	}
	walls.Settings.Net = walls.Settings.Net || m.Agent.Net
	walls.Settings.Read = slices.Concat(walls.Settings.Read, placedHome(m.Agent.Home), m.Agent.Read)
	walls.Settings.Write = slices.Concat(walls.Settings.Write, placedHome(m.Agent.HomeWrite), m.Agent.Write)
	walls.homePaths = slices.Concat(m.Agent.Home, m.Agent.HomeWrite)
	walls.Plan.Env = slices.Concat(walls.Plan.Env, m.Agent.Env)
	walls.exposure = m.ExposureWarning()
	return e, nil
}

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

// Generate lets the agent hold a session. If the budget refused its calls the
// error is that [*hone.Stop], however the session ended.
func (e *enclosedAgent) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	e.refused = nil
	reply, err := e.inner.Generate(ctx, req)
	var stop *hone.Stop
	var over *agent.Overrun
	switch {
	case ctx.Err() != nil:
	case errors.As(e.refused, &over):
		return reply, &hone.Stop{Kind: hone.KindBudget, Why: over.Error(), Next: hone.Next{First: "choose another model", Verb: hone.NewRun}}
	case errors.As(e.refused, &stop):
		return reply, stop
	}
	return reply, err
}

func (e *enclosedAgent) reserve(asked string, bytes, maxOutput int64) (int64, func(*model.Usage, error) error, error) {
	other := *e.model.Agent
	other.Asked = strings.TrimPrefix(asked, "models/")
	m := loop.Model{Agent: &other}
	if m.Name = m.PricedAs(); m.Name == e.model.PricedAs() {
		m.MaxOutput, m.Price = e.model.MaxOutput, e.model.Price
	} else if e.walls.session.host.setPrice(&m, nil); m.PriceSource == localServer.Source {
		m.Price = nil // whatever the agent asks there, it must not pass a limit of the cost
	}
	if maxOutput > 0 {
		m.MaxOutput = maxOutput
	}
	return e.run.Account().Reserve(e.role, m.Candidate(), bytes)
}

// Run runs the agent behind its walls, with the variables that tell it where
// its forwarder is.
func (e *enclosedAgent) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	if err := e.walls.raise(ctx); err != nil {
		return sandbox.Result{}, err
	}
	vars, config := slices.Clone(e.model.Agent.Set), e.config
	if e.model.Agent.KeyEnv != "" {
		config.Secret = dummyKey + rand.Text()
		vars = append(vars, e.model.Agent.KeyEnv+"="+config.Secret)
	}
	if e.config.Reserve == nil {
		return behind{walls: e.walls, vars: vars, model: true}.Run(ctx, c)
	}
	f, err := agent.NewForward(config)
	if err != nil {
		return sandbox.Result{}, err
	}
	vars = append(vars, e.model.Agent.BaseURLEnv+"="+f.URL(e.walls.built.DoorAddr(e.door)))
	e.forwarder.Store(f)
	result, err := behind{walls: e.walls, vars: vars, model: true}.Run(ctx, c)
	e.forwarder.Store(nil)
	f.Close()
	e.refused = f.Err()
	return result, err
}

// dummyKey starts what an agent gets in place of a key: the forwarder adds the
// real one. The rest differs in each session, so that the forwarder recognizes
// the agent.
const dummyKey = "the-key-is-added-outside-of-the-walls-"
