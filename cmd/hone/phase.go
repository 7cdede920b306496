package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"hone"
	"hone/check"
	"hone/internal/config"
	"hone/internal/git"
	"hone/loop/phase"
	"hone/sandbox"
	"hone/workspace"
)

// phaseSettings are all that a phase run depends on, resolved: what its start
// event holds. Model is the builder's. Specifications are read when they are
// needed.
type phaseSettings struct {
	runSettings
	Verifier       modelSettings `json:"verifier_model"`
	Phase          int           `json:"phase"`
	BuilderSystem  string        `json:"builder_system"`
	VerifierSystem string        `json:"verifier_system"`
	HealthAttempts int           `json:"health_attempts"`
	Turns          int           `json:"turns"`          // most model calls in a session
	Calls          int           `json:"max_tool_calls"` // most in a session
	DevURL         string        `json:"dev_url"`
	Hooks          hookSettings  `json:"hooks,omitzero"`
	Check          string        `json:"check,omitempty"`
	CheckTime      time.Duration `json:"check_timeout_ns,omitempty"`
	CheckEnv       []string      `json:"check_env,omitempty"`
}

// hookSettings are what hooks have beside the project's code. Paths are
// absolute.
type hookSettings struct {
	Read []string      `json:"read,omitempty"`
	Env  []string      `json:"env,omitempty"` // names of variables that are passed on
	Net  bool          `json:"net,omitempty"`
	Time time.Duration `json:"timeout_ns,omitempty"` // 0: the loop's own
}

// Defaults of a phase: the seed's models and address.
const (
	phaseBuilder  = "gemini/gemini-2.5-pro"
	phaseVerifier = "gemini/gemini-2.5-flash"
	phaseURL      = "http://localhost:3000"
	phaseTurns    = 60
	phaseCalls    = 240
)

func (a *app) phaseCommand() *cobra.Command {
	f := phaseFlags{loopFlags: loopFlags{agents: true, walls: wallFlags{standard: string(sandbox.Auto)}}}
	c := &cobra.Command{
		Use:   "phase N [N …] | all",
		Short: "build and verify a phase behind walls",
		Long: `phase builds what specs/phaseN.md and the phases before it ask for. A builder that sees src/ alone
writes the code. A health check that is no model looks at it. A verifier that sees tests/ alone, and
the running server, tests it against the contracts; what fails goes back to the builder in the words
of the contracts. A phase has passed when a verification that really took place finds nothing.

The project's own commands (health_check, start_dev, reset_state, map_deps) stand in abl.config.sh.
Everything that a model wrote runs behind walls that hide the rest: hidden or bwrap, unless a weaker
one is named. Several phases are run in order, up to the first that is not passed; "all" leaves out
those that both repositories record as passed by the specifications as they are now.`,
		Example: `  hone init phase --template go
  hone phase 1 --list
  hone phase 1 2 --builder-model gemini-2.5-pro --verifier-model gemini-2.5-flash
  hone phase all --builder-model command/gemini`,
		Args: somePhases,
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.valid(c); err != nil {
				return err
			}
			if f.list {
				return a.listPhases(f.dir, args)
			}
			return a.startPhases(c.Context(), f, args)
		},
	}
	f.register(c)
	return c
}

// startPhases runs phases in their order, and stops at the first that has not
// passed. They share one budget.
func (a *app) startPhases(ctx context.Context, f phaseFlags, args []string) error {
	root, err := phaseRoot(f.dir)
	if err != nil {
		return err
	}
	numbers, err := a.phases(ctx, root, args)
	if err != nil {
		return err
	}
	spent := spending{flags: f.limits}
	for i, n := range numbers {
		if i > 0 {
			fmt.Fprintln(a.err)
		}
		if err := a.startPhase(ctx, root, f, n, &spent); err != nil || a.exit != 0 {
			return err
		}
	}
	return nil
}

// startPhase resolves everything before anything is written.
func (a *app) startPhase(ctx context.Context, root string, f phaseFlags, n int, spent *spending) error {
	s, limits, err := a.resolvePhase(root, f, n)
	if err != nil {
		return err
	}
	if limits, err = spent.left(limits); err != nil {
		return err
	}
	if err := s.Trust.provable(s.Check != ""); err != nil {
		return err
	}
	start, err := startOf("phase", root, s.Model, limits, s)
	if err != nil {
		return err
	}
	return a.begin(ctx, root, start, f.output, func(o session) error {
		end, err := a.drivePhase(ctx, o, s)
		spent.add(end, o.journal.Active())
		return err
	}, s.Model, s.Verifier)
}

// resumePhase goes on with a run by the settings in its start event.
func (a *app) resumePhase(ctx context.Context, o session, start hone.Start, baseURL string) error {
	var s phaseSettings
	if err := a.goOn(&o, start, &s, baseURL, &s.Model, &s.Verifier); err != nil {
		return err
	}
	_, err := a.drivePhase(ctx, o, s)
	return err
}

// drivePhase puts roles, walls, server and hooks together, and ends with what
// the phase has come to.
func (a *app) drivePhase(ctx context.Context, o session, s phaseSettings) (end hone.End, err error) {
	g, err := git.Find()
	if err != nil {
		return end, failed(err, "install git")
	}
	server, err := phase.NewServer(s.DevURL)
	if err != nil {
		return end, usage(err.Error(), "--dev-url http://localhost:3000")
	}
	l := phase.Loop{Phase: s.Phase, HealthAttempts: s.HealthAttempts, Server: server, Git: g, Guard: a.phaseGuard(s)}
	r := o.run(l.Rules(), s.runSettings)
	r.Own, r.Trust.Passed = phase.Own, fmt.Sprintf("phase %d passed", s.Phase)
	walls, err := a.phaseWalls(o, r, s, l)
	if err != nil {
		return end, err
	}
	defer walls.trees.close()
	l.Hooks = phase.Hooks{Runner: walls.hooks, Dir: o.root, Time: s.Hooks.Time}
	if err := a.staff(&l, o, r, s, walls); err != nil {
		return end, err
	}
	err = a.drive(ctx, o, r, driven{
		loop: "phase", settings: s.runSettings, walls: walls, secrets: []string{s.Verifier.whole()},
		with: fmt.Sprintf("builder %s and verifier %s", s.Model.Name, s.Verifier.Name),
		round: func(live io.Writer) hone.Round {
			made := func(dir string, hooks *runWalls) check.Func { return a.phaseCheck(s, dir, l, hooks, live) }
			r.Check = walls.standing(made(o.root, walls.hooks))
			s.Trust.prove(r, o.root, walls.hooks, made)
			return l.Round
		},
		turns: map[string]int{l.Builder.Name: s.Turns, l.Verifier.Name: s.Turns},
		finish: func(e hone.End) error {
			end = e
			return l.Finish(context.WithoutCancel(ctx), r, e)
		},
		summary: func(end hone.End) string { return l.Summary(r, end) },
	})
	return end, err
}

// phaseGuard finds secrets for a run with two models.
func (a *app) phaseGuard(s phaseSettings) *workspace.Guard {
	g := a.guard(s.runSettings)
	g.Known = knownKeys(a.env, s.Model.whole(), s.Verifier.whole())
	return g
}

// phaseCheck is the command that has the last word; nil where there is none.
// It runs where the hooks do.
func (a *app) phaseCheck(s phaseSettings, root string, l phase.Loop, hooks *runWalls, live io.Writer) check.Func {
	if s.Check == "" {
		return nil
	}
	return check.Command(hooks.with(s.CheckEnv), check.CommandConfig{
		Command: s.Check, Dir: root, Timeout: s.CheckTime, Redact: l.Guard.Redact, Live: live})
}

// resolvePhase reads flags, environment, roles and configuration, in that order
// of precedence.
func (a *app) resolvePhase(root string, f phaseFlags, n int) (s phaseSettings, l hone.Limits, err error) {
	file, err := config.Load(root)
	if err != nil {
		return s, l, configError(err)
	}
	s = phaseSettings{Phase: n, CheckTime: file.Check.Timeout, CheckEnv: file.Check.Env, Check: cmp.Or(f.check, file.Check.Command),
		HealthAttempts: cmp.Or(f.healthAttempts, file.Phase.HealthAttempts, phase.HealthAttempts),
		Turns:          cmp.Or(f.turns, file.Phase.Turns, phaseTurns), Calls: cmp.Or(f.calls, file.Phase.MaxToolCalls, phaseCalls),
		DevURL: cmp.Or(f.devURL, file.Phase.DevURL, phaseURL)}
	if s.Hooks, err = resolveHooks(root, file.Phase); err != nil {
		return s, l, err
	}
	all := cmp.Or(f.model, a.env("HONE_MODEL"))
	verifier := f.loopFlags
	verifier.model = phaseModel(cmp.Or(f.verifierModel, all, file.Phase.VerifierModel, file.Model.Model, phaseVerifier))
	f.model = phaseModel(cmp.Or(f.builderModel, all, file.Phase.BuilderModel, file.Model.Model, phaseBuilder))
	if s.runSettings, err = a.resolveRun(f.loopFlags, root, file); err != nil {
		return s, l, err
	}
	s.Approve = cmp.Or(f.approve, "ask")
	v, err := a.resolveRun(verifier, root, file)
	if err != nil {
		return s, l, err
	}
	s.Verifier = v.Model
	if err := s.roles(root); err != nil {
		return s, l, err
	}
	return s, resolveLimits(f.limits, file.Limits, cmp.Or(file.Phase.Rounds, file.Limits.Rounds, phase.Rounds)), s.complete(root)
}

// roles reads what the two roles are told of themselves.
func (s *phaseSettings) roles(root string) error {
	builder, err := phase.RoleText(root, "builder")
	if err != nil {
		return usage(err.Error(), "mend the file, or remove it")
	}
	verifier, err := phase.RoleText(root, "verifier")
	if err != nil {
		return usage(err.Error(), "mend the file, or remove it")
	}
	s.BuilderSystem = phase.BuilderSystem(builder, s.Model.Agent != nil)
	s.VerifierSystem = phase.VerifierSystem(verifier, s.DevURL, s.Verifier.Agent != nil)
	return nil
}

// complete says what the project lacks before anything is written.
func (s phaseSettings) complete(root string) error {
	if _, err := phase.Specs(root, s.Phase); err != nil {
		return wrongSpecs(err)
	}
	if info, err := os.Stat(root + "/" + phase.ConfigName); err != nil || !info.Mode().IsRegular() {
		return usage("there is no "+phase.ConfigName+" in "+root+", which says how the project is checked and started", "hone init phase, or name the project's folder with --dir")
	}
	if s.Model.BaseURL != "" && s.Verifier.BaseURL != "" && s.Model.who() != s.Verifier.who() {
		return usage("--base-url is one address, and the two roles ask different providers", "set the providers' own variables instead, such as GOOGLE_GEMINI_BASE_URL and OPENAI_BASE_URL")
	}
	return nil
}

// phaseModel is a model's name with its provider. The seed's users write names
// alone.
func phaseModel(name string) string {
	if _, _, err := (modelSettings{Name: name}).split(); err == nil {
		return name
	}
	return guessProvider(name)
}

func resolveHooks(root string, file config.Phase) (hookSettings, error) {
	read, err := placedAll(root, file.HookRead)
	return hookSettings{Read: read, Env: file.HookEnv, Net: file.HookNet, Time: file.HookTimeout}, err
}

// spending is what several runs of one command have used of its one budget.
type spending struct {
	flags  limitFlags
	tokens int64
	cost   float64
	time   time.Duration
}

func (s *spending) add(end hone.End, active time.Duration) {
	s.tokens += end.Tokens
	s.time += active
	if end.Cost != nil {
		s.cost += *end.Cost
	}
}

// left are a run's limits without what the runs before it used.
func (s *spending) left(l hone.Limits) (hone.Limits, error) {
	over := ""
	if l.Tokens > 0 {
		if l.Tokens -= s.tokens; l.Tokens <= 0 {
			over = "tokens"
		}
	}
	if l.Cost > 0 {
		if l.Cost -= s.cost; l.Cost <= 0 {
			over = "cost"
		}
	}
	if l.Time > 0 {
		if l.Time -= s.time; l.Time <= 0 {
			over = "time"
		}
	}
	if over != "" {
		return l, &failure{kind: hone.KindBudget, why: "earlier phases used up the budget of " + over,
			hint: "hone phase all runs the phases that have not passed, on a new budget"}
	}
	return l, nil
}
