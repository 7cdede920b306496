package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"hone"
	"hone/internal/config"
	"hone/model"
	"hone/model/command"
	"hone/model/forward"
	"hone/sandbox"
)

// agentProvider is how a command-line agent is named as a model:
// command/NAME, or command/NAME/MODEL.
const agentProvider = "command"

// agentSettings are a command-line agent that takes a role, resolved.
type agentSettings struct {
	Name string `json:"name"`
	config.Agent
	Asked string `json:"asked,omitempty"` // the model that it is to ask; empty: its own
}

// appoint finds the agent that a model's name names, among those of the
// configuration.
func (m *modelSettings) appoint(allowed bool, agents map[string]config.Agent, root string) error {
	p, rest, err := m.split()
	if err != nil || p.name != agentProvider {
		return err
	}
	if !allowed {
		return usage(m.Name+": a command-line agent can take the roles of phase and be the executor of task, and nothing else", "name a model: --model gemini/gemini-2.5-pro")
	}
	name, asked, _ := strings.Cut(rest, "/")
	agent, ok := agents[name]
	if !ok {
		return usage(fmt.Sprintf("there is no command-line agent %q", name),
			fmt.Sprintf("write [commands.%s] with argv = […] into %s; docs/agents.md has them for gemini, codex, claude, opencode, qwen and aider", name, config.HonePath))
	}
	if agent.Read, err = placedAll(root, agent.Read); err != nil {
		return err
	}
	if agent.Write, err = placedAll(root, agent.Write); err != nil {
		return err
	}
	for _, p := range agent.Write {
		if _, err := os.Stat(p); err != nil {
			return usage(fmt.Sprintf("%s: commands.%s.write: %s is not there", config.HonePath, name, p), "make it, or take it out of the list")
		}
	}
	m.Agent = &agentSettings{Name: name, Agent: agent, Asked: cmp.Or(asked, agent.Model)}
	m.reach("") // it is reached by the address of its section
	return nil
}

// asked is the model that is charged for: the agent's, where that is one.
func (m modelSettings) asked() string {
	if m.Agent == nil || m.Agent.Wire == "" {
		return m.Name
	}
	return m.Agent.Wire + "/" + m.Agent.Asked
}

// provider is whom the agent asks by its forwarder; ok is false where it has
// none.
func (s *agentSettings) provider() (p provider, ok bool) {
	i := slices.IndexFunc(providers(), func(p provider) bool { return s.Wire != "" && p.name == s.Wire })
	if i < 0 {
		return p, false
	}
	return providers()[i], true
}

// endpoint is where its calls go; empty for the provider's own place.
func (s *agentSettings) endpoint(env func(string) string) string {
	p, _ := s.provider()
	return cmp.Or(s.BaseURL, env(p.base))
}

// ready says what an agent lacks before anything is written.
func (s *agentSettings) ready(env func(string) string) error {
	if _, err := s.agent(nil, "", nil); err != nil {
		return err
	}
	if p, ok := s.provider(); ok {
		if key, variable := p.key(env); key == "" && s.endpoint(env) == "" {
			return usage(fmt.Sprintf("the agent %s asks %s, which needs a key, and %s is not set", s.Name, p.name, strings.Join(p.keys, " or ")), fmt.Sprintf("export %s=…", variable))
		}
	}
	for _, name := range s.Env {
		if env(name) == "" {
			return usage(fmt.Sprintf("the agent %s has env = [%q], and that is not set", s.Name, name), fmt.Sprintf("export %s=…", name))
		}
	}
	return nil
}

// agent is the agent as a model, by a runner behind its walls.
func (s *agentSettings) agent(r sandbox.Runner, dir string, redact func(string) string) (*command.Agent, error) {
	agent, err := command.New(r, command.Config{
		Name: s.Name, Argv: s.Argv, Model: s.Asked, Stdin: command.Stdin(s.Stdin), Dir: dir,
		Timeout: s.Timeout.Value(), Exits: s.Exits, Answer: s.Answer, Redact: redact,
		Usage: command.Usage(s.Usage),
	})
	var wrong *model.Error
	if errors.As(err, &wrong) {
		return nil, usage(config.HonePath+": "+wrong.Message, wrong.Hint)
	}
	return agent, err
}

// enclosedAgent is an agent that works behind walls, and whose calls of models
// are passed on by a forwarder where it has one (ruling A8).
type enclosedAgent struct {
	settings agentSettings
	model    modelSettings
	role     string
	run      *hone.Run
	walls    *runWalls
	inner    *command.Agent

	config forward.Config // without a ledger where the agent has no forwarder
	door   int            // the forwarder's, among the walls' doors
	mu     sync.Mutex
	passes *forward.Forward // during a session; nil otherwise
	report forward.Report   // of the last session
}

var _ model.Model = (*enclosedAgent)(nil)

// enclose puts an agent behind the walls of its role.
func (a *app) enclose(m modelSettings, role string, r *hone.Run, walls *runWalls, redact func(string) string) (*enclosedAgent, error) {
	e := &enclosedAgent{settings: *m.Agent, model: m, role: role, run: r, walls: walls}
	var err error
	if e.inner, err = m.Agent.agent(e, walls.want.root, redact); err != nil {
		return nil, err
	}
	if p, ok := m.Agent.provider(); ok {
		key, _ := p.key(a.env)
		e.config = forward.Config{Wire: forward.Wire(m.Agent.Wire), Base: m.Agent.endpoint(a.env), Key: key, Ledger: e,
			Hosted: m.Agent.Hosted, Timeouts: model.Timeouts{Idle: m.Idle, Total: m.Total}}
		probe, err := forward.New(e.config)
		if err != nil {
			return nil, usage(fmt.Sprintf("the agent %s: %v", m.Agent.Name, err), "see base-url in [commands."+m.Agent.Name+"]")
		}
		probe.Close()
		e.door = len(walls.want.doors)
		walls.want.doors = append(walls.want.doors, sandbox.Door{Addr: "127.0.0.1:0", Serve: e.serve})
	}
	walls.want.Net = walls.want.Net || m.Agent.Net
	walls.want.Read = slices.Concat(walls.want.Read, placedHome(m.Agent.Home), m.Agent.Read)
	walls.want.Write = slices.Concat(walls.want.Write, placedHome(m.Agent.HomeWrite), m.Agent.Write)
	walls.want.home = slices.Concat(m.Agent.Home, m.Agent.HomeWrite)
	walls.want.keep = slices.Concat(walls.want.keep, m.Agent.Env)
	return e, nil
}

// placedHome are paths below the person's home, absolute, of what is there.
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
		return reply, &hone.Stop{Exit: hone.ExitBudget, Result: "budget", Why: over.Error(), Hint: "start a new run with another model"}
	case errors.As(e.report.Why, &stop) || errors.As(e.report.Stopped, &stop):
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
func (e *enclosedAgent) Reserve(_ context.Context, c forward.Call) (forward.Grant, error) {
	m := modelSettings{Name: e.settings.Wire + "/" + strings.TrimPrefix(c.Model, "models/")}
	if m.Name == e.model.asked() {
		m.MaxOutput, m.Price = e.model.MaxOutput, e.model.Price
	}
	m.complete()
	if c.MaxOutput > 0 {
		m.MaxOutput = c.MaxOutput
	}
	most, settle, err := e.run.Reserve(m.role(e.role, "", nil), c.RequestBytes)
	return forward.Grant{MaxOutput: most, Commit: settle}, err
}

// Run runs the agent behind its walls, with what it needs to find its
// forwarder.
func (e *enclosedAgent) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	if err := e.walls.stand(ctx); err != nil {
		return sandbox.Result{}, err
	}
	vars, config := slices.Clone(e.settings.Set), e.config
	if e.settings.KeyEnv != "" {
		config.Secret = dummyKey + rand.Text()
		vars = append(vars, e.settings.KeyEnv+"="+config.Secret)
	}
	if e.config.Ledger == nil {
		return e.walls.runWith(ctx, c, vars)
	}
	passes, err := forward.New(config)
	if err != nil {
		return sandbox.Result{}, err
	}
	vars = append(vars, e.settings.BaseURLEnv+"="+passes.URL(e.walls.up.DoorAddr(e.door)))
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

// exposed says what an agent could do with its key, or with the network; empty
// where there is nothing to say.
func (m modelSettings) exposed() string {
	switch {
	case m.Agent == nil:
	case len(m.Agent.Env) > 0 && m.Agent.Net:
		return fmt.Sprintf("%s has %s and the network: whatever it runs can read and send that", m.Name, strings.Join(m.Agent.Env, ", "))
	case len(m.Agent.Env) > 0:
		return fmt.Sprintf("%s has %s: whatever it runs can read that", m.Name, strings.Join(m.Agent.Env, ", "))
	case m.Agent.Net:
		return m.Name + " has the network, and so has whatever it runs"
	}
	return ""
}

// lookAtAgents looks at the command-line agents of a folder's configuration.
// What is wrong with that is said by another look.
func (a *app) lookAtAgents(dir string) []diagnosis {
	root, err := findRoot(dir)
	if err != nil {
		return nil
	}
	file, _, err := loadConfig(root)
	if err != nil {
		return nil
	}
	var looks []diagnosis
	for _, name := range slices.Sorted(maps.Keys(file.Commands)) {
		looks = append(looks, a.lookAtAgent(modelSettings{Name: agentProvider + "/" + name, Agent: &agentSettings{Name: name, Agent: file.Commands[name], Asked: file.Commands[name].Model}}))
	}
	return looks
}

func (a *app) lookAtAgent(m modelSettings) diagnosis {
	program := m.Agent.Argv[0]
	at, err := exec.LookPath(program)
	if err != nil {
		return amiss("agent", m.Name+": "+program+" is not on your PATH", "install it, or name it whole in argv")
	}
	if m.Agent.Asked == "" {
		m.Agent.Asked = "NAME" // a role may name the model
	}
	if err := m.Agent.ready(a.env); err != nil {
		return amiss("agent", m.Name+": "+err.Error(), "")
	}
	found := m.Name + ": " + at
	if p, ok := m.Agent.provider(); ok {
		found += ", which asks " + p.name + " by a forwarder"
	}
	return diagnosis{what: "agent", found: found, hint: m.exposed()}
}
