package phase

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hone"
	"hone/internal/artifact"
	"hone/internal/config"
	"hone/internal/git"
	"hone/internal/lazyregexp"
	"hone/loop"
	"hone/loop/phase/devserver"
	"hone/loop/phase/spec"
	"hone/sandbox"
	"hone/workspace/secret"
)

// Kind is what phase declares of itself.
func Kind() loop.Kind {
	return loop.Kind{
		Name:  "phase",
		Use:   "phase N [N …] | all",
		Short: "build and verify a web service from specifications, phase by phase",
		Long: `phase builds what specs/phaseN.md and the earlier phases specify. A builder, which sees only src/,
writes the code. Your health check inspects it. A verifier, which sees only tests/, writes a test suite
from the contracts: tests/run, with one TAP point for each contract. hone runs it, first against servers
that must fail it, then against yours. The contracts that fail go back to the builder. A phase has passed
when every point has passed. With --verify session the verifier runs the suite, and its report decides.

The project's own commands (health_check, start_dev, reset_state, map_deps) are in abl.config.sh.
Everything that a model wrote runs behind walls that hide the rest of the machine: hidden or bwrap,
unless you name a weaker one. Several phases run in order, up to the first that does not pass; "all"
skips phases that passed with the current specifications.`,
		Example: `  hone init phase --template go
  hone phase 1 --list
  hone phase 1 2 --builder-model gemini-2.5-pro --verifier-model gemini-2.5-flash
  hone phase all --builder-model command/gemini`,
		Args: phaseArgs,
		Complete: func(dir string, args []string) []string {
			words := written(dir, args)
			if len(args) == 0 && len(words) > 0 {
				words = append(words, "all")
			}
			return words
		},
		NoAdvice: true,
		Agents:   true,
		Programs: programs,
		New:      func() loop.Loop { return &invocation{} },
		Preview: loop.Preview{
			Use:   "phase N",
			Short: "what phase would send a role first",
			Long: `prompt phase prints what phase would send a role first: the verifier to write the suite, or the
builder in round 1. It runs no hook, so the map lacks the dependencies that map_deps would print.`,
			Args:     onePhaseArg,
			Complete: written,
		},
		Starters: starterFiles,
		Verified: verdicts,
	}
}

// Who runs the suite (ruling A14).
const (
	bySuite   = "suite"
	bySession = "session"
)

// The seed's models.
const (
	defaultBuilder  = "gemini/gemini-2.5-pro"
	defaultVerifier = "gemini/gemini-2.5-flash"
)

// invocation is one phase with all its settings resolved. Model is the builder's.
// Specifications are read when they are needed.
type invocation struct {
	loop.Settings
	Verifier       loop.Model      `json:"verifier_model"`
	Phase          int             `json:"phase"`
	BuilderSystem  string          `json:"builder_system"`
	VerifierSystem string          `json:"verifier_system"`
	NamesRoot      map[string]bool `json:"names_root,omitempty"` // by role, see Loop
	Verify         string          `json:"verify"`               // bySuite or bySession
	HookRead       []string        `json:"hook_read,omitempty"`  // absolute
	HookLogs       bool            `json:"hook_logs,omitempty"`  // hooks write into LogDir

	role string // of a preview
}

// Subject is the phase.
func (v *invocation) Subject() string { return fmt.Sprintf("phase %d", v.Phase) }

// Variables also returns those of the hooks.
func (v *invocation) Variables() []string {
	return slices.Concat(v.Settings.Variables(), config.HookEnv.In(v.Values))
}

func (v *invocation) devURL() string { return config.DevURL.In(v.Values) }

// Models returns the builder's and the verifier's model.
func (v *invocation) Models() []loop.RoleModel {
	return []loop.RoleModel{{Role: "builder", Model: &v.Model}, {Role: "verifier", Model: &v.Verifier}}
}

// Own reports whether a file is the loop's own.
func (v *invocation) Own(string) func(string) bool {
	return func(name string) bool { return Own(name) || v.HookLogs && strings.HasPrefix(name, LogDir+"/") }
}

// namesLogs matches a line of abl.config.sh that writes into LogDir.
var namesLogs = lazyregexp.New(`(?m)^[^#\n]*(?:\blogs/|mkdir\b[^\n]*\blogs\b)`)

func programs(root string) ([]string, error) {
	if _, err := os.Lstat(filepath.Join(root, devserver.Config)); err != nil {
		return nil, nil
	}
	return []string{devserver.Config + " (health_check, start_dev, reset_state, map_deps)"}, nil
}

func project(root string) error {
	if _, err := os.Stat(filepath.Join(root, "specs")); err != nil {
		if _, err := os.Stat(filepath.Join(root, ".abl", "specs")); err == nil {
			return loop.Usage("there is no specs/ in "+root+"; hone does not read .abl/specs/, the layout of later versions of ABL",
				"hone init phase writes specs/phase1.md and abl.config.sh as examples; copy your contracts into specs/phase1.md, specs/phase2.md and so on, and fill in the hooks")
		}
		return loop.Usage("there is no specs/ in "+root, "hone init phase, or name the project's directory with --dir")
	}
	return nil
}

// Resolve reads flags, environment, roles and configuration.
func (v *invocation) Resolve(_ context.Context, in *loop.Input) (l hone.Limits, err error) {
	if err := project(in.Root); err != nil {
		return l, err
	}
	v.Phase, _ = strconv.Atoi(in.Args[0])
	if v.HookRead, err = loop.AbsPaths(in.Root, config.HookRead.In(in.Values)); err != nil {
		return l, err
	}
	both := cmp.Or(config.Model.Given(in.Flags), in.Getenv("HONE_MODEL"))
	model := func(s config.Setting[string], standard string) string {
		return modelName(in, s.Given(in.Flags), both, s.In(in.Values), config.Model.In(in.Values), standard)
	}
	verifier := model(config.VerifierModel, defaultVerifier)
	config.Model.Set(in.Values, model(config.BuilderModel, defaultBuilder))
	if v.Settings, err = in.Settings(); err != nil {
		return l, err
	}
	if v.Verifier, err = in.Model(verifier); err != nil {
		return l, err
	}
	v.Verify = config.Verify.In(in.Values)
	if err := v.readRoles(in.Root, in.Note); err != nil {
		return l, err
	}
	return in.Limits(), v.complete(in.Root)
}

// A verifier's prompt of the user's own that does not ask for tests/run decides who runs the suite, unless the user does.
func (v *invocation) readRoles(root string, note func(string)) error {
	builder, err := RoleText(root, "builder")
	if err != nil {
		return loop.UsageOf(err, "fix the file, or remove it")
	}
	verifier, err := RoleText(root, "verifier")
	if err != nil {
		return loop.UsageOf(err, "fix the file, or remove it")
	}
	if v.Verify == "" {
		v.Verify = bySuite
		if !strings.Contains(verifier, suitePath) {
			v.Verify = bySession
			note("prompts/verifier.md does not mention " + suitePath + ", so the verifier runs the tests and its report is the verdict; to have hone run them: --verify suite")
		}
	}
	v.NamesRoot = map[string]bool{"builder": namesRoot(builder), "verifier": namesRoot(verifier)}
	for _, role := range []struct{ name, folder string }{{"builder", Src}, {"verifier", Tests}} {
		if v.NamesRoot[role.name] {
			note(rootNote(role.name, role.folder))
		}
	}
	v.BuilderSystem = BuilderSystem(builder, v.Model.Agent != nil)
	v.VerifierSystem = VerifierSystem(verifier, v.devURL(), v.Verifier.Agent != nil, v.Verify == bySession)
	return nil
}

// It fails before anything is written.
func (v *invocation) complete(root string) error {
	specs, err := spec.Read(root, v.Phase)
	if err != nil {
		return wrongSpecs(err)
	}
	if own := specs[len(specs)-1]; len(own.Items) == 0 {
		return loop.Usage(own.Path+" states no contract that hone recognizes, so nothing could be verified", "write one per line, as ACTION → EXPECTED, below a heading Contracts")
	}
	hooks, err := artifact.Input(filepath.Join(root, devserver.Config))
	v.HookLogs = namesLogs.Match(hooks)
	if info, statErr := os.Stat(filepath.Join(root, devserver.Config)); err != nil || statErr != nil || !info.Mode().IsRegular() {
		return loop.Usage("there is no "+devserver.Config+" in "+root+", which defines how the project is checked and started", "hone init phase, or name the project's directory with --dir")
	}
	if v.Model.BaseURL != "" && v.Verifier.BaseURL != "" && v.Model.Provider() != v.Verifier.Provider() {
		return loop.Usage("--base-url is one address, but the two roles use different providers", "set the providers' own variables instead, such as GOOGLE_GEMINI_BASE_URL and OPENAI_BASE_URL")
	}
	return nil
}

// Ready returns an error if the starter's specification was not edited. It notes that a phase has
// passed already, because it is paid for again.
func (v *invocation) Ready(ctx context.Context, in *loop.Input) error {
	if g, err := git.Find(); err == nil {
		if passed, err := HasPassed(ctx, g, in.Root, v.Phase); err == nil && passed {
			in.Note(fmt.Sprintf("phase %d has passed by these specifications, and runs again; hone phase all runs only those that have not", v.Phase))
		}
	}
	const first = "specs/phase1.md"
	text, _, err := in.Tree.Read(first)
	if err != nil {
		return nil // a phase that is there without the first
	}
	return loop.CheckEdited(first, string(text), starters, "starters/phase/"+first)
}

// Build puts roles, walls, server and hooks together.
func (v *invocation) Build(s loop.Session) (built loop.Built, err error) {
	g, err := git.Find()
	if err != nil {
		return built, &hone.Stop{Kind: hone.KindFailed, Why: err.Error(), Next: hone.Next{First: "install git", Verb: hone.Resume}}
	}
	server, err := devserver.New(v.devURL())
	if err != nil {
		return built, loop.UsageOf(err, "--dev-url http://localhost:3000")
	}
	l := v.loop(s.Guard())
	l.Server, l.Git, l.Logs = server, g, v.HookLogs
	r := s.NewRun(l.Rules())
	r.Trust.Passed = fmt.Sprintf("phase %d passed", v.Phase)
	walls := v.walls(s, r, g, server)
	l.Suite = walls.verifier
	l.Hooks = devserver.Hooks{Runner: walls.hooks, Dir: s.Root(), Time: config.HookTimeout.In(v.Values)}
	if err := v.equip(&l, s, walls); err != nil {
		return built, err
	}
	s.SetCheck(walls.hooks, s.Check)
	return loop.Built{
		Run:     r,
		Round:   l.Round,
		With:    fmt.Sprintf("builder %s and verifier %s", v.Model.Names(), v.Verifier.Names()),
		Turns:   map[string]int{l.Builder.Name: v.Bounds().Turns, l.Verifier.Name: v.Bounds().Turns},
		Finish:  func(ctx context.Context, end hone.End, _ int) error { return l.Finish(ctx, r, end) },
		Summary: func(end hone.End) string { return l.Summary(r, end) },
	}, nil
}

// Models and tools are not set yet.
func (v *invocation) loop(guard *secret.Guard) Loop {
	role := func(name string, m loop.Model, system, folder string) hone.Role {
		role := m.Role(name, system)
		role.Dir, role.Bounds = folder, v.Bounds()
		return role
	}
	l := Loop{Phase: v.Phase, Session: v.Verify != bySuite, NamesRoot: v.NamesRoot, HealthAttempts: config.HealthAttempts.In(v.Values), Guard: guard,
		Builder: role("builder", v.Model, v.BuilderSystem, Src), Writer: role("verifier", v.Verifier, v.VerifierSystem, Tests)}
	l.Verifier = l.Writer
	return l
}

// walls are the walls of a phase: each role has its own, and so have the hooks, so
// that none sees another's files.
type walls struct{ builder, hooks, writer, verifier loop.Walls }

// All are of the same kind as the builder's.
func (v *invocation) walls(s loop.Session, r *hone.Run, g *git.Git, server *devserver.Server) walls {
	at := func(name string) string { return filepath.Join(s.Root(), filepath.FromSlash(name)) }
	builder := s.Walls(loop.WallPlan{Root: at(Src), Bounded: true, OwnHome: true, Hides: true,
		Prepare: func(ctx context.Context) error { return Prepare(ctx, g, s.Root(), v.logDirs()...) },
		OnBuilt: func(grade sandbox.Grade, _ string) ([]string, error) {
			if grade.Level != sandbox.LevelOpen {
				r.Reach = v.canChange
			}
			return nil, noteWeak(r, grade)
		}})
	logs, net := []string{at(Results)}, config.HookNet.In(v.Values)
	for _, dir := range v.logDirs() {
		logs = append(logs, at(dir))
	}
	hooks := s.Walls(loop.WallPlan{Root: at(Src), Bounded: true, OwnHome: true, Hides: true, After: builder,
		Net: &net, Env: config.HookEnv.In(v.Values), Protect: []string{".git"},
		Write: logs, Read: append([]string{at(devserver.Config)}, v.HookRead...)})
	tester := loop.WallPlan{Root: at(Tests), Bounded: true, OwnHome: true, Hides: true, After: builder, Hide: []string{at(Results)}}
	writer, verifier := tester, tester
	writer.Vars = []string{"DEV_URL=" + v.devURL()}
	verifier.Door = server.Door
	verifier.OnBuilt = func(_ sandbox.Grade, door string) ([]string, error) {
		server.SetAddr(door)
		return []string{"DEV_URL=" + server.Address()}, nil
	}
	return walls{builder: builder, hooks: hooks, writer: s.Walls(writer), verifier: s.Walls(verifier)}
}

// The commands of a role and the hooks are behind walls.
func (v *invocation) canChange(file string) bool {
	top, _, _ := strings.Cut(file, "/")
	return top == Src || top == Tests || slices.Contains(v.logDirs(), top)
}

func (v *invocation) logDirs() []string {
	if v.HookLogs {
		return []string{LogDir}
	}
	return nil
}

func noteWeak(r *hone.Run, g sandbox.Grade) error {
	open := "looking at names goes; its hidden files stay readable in directories that may be written (hone doctor has the list)"
	switch g.Level {
	case sandbox.LevelHidden:
		return nil
	case sandbox.LevelOpen:
		open = "you could yourself"
	}
	return r.Notice(fmt.Sprintf("the wall %s does not hide what it does not allow: the roles can find out what the rest of the project holds, as far as %s", g.Wall, open))
}

// An agent has its own tools.
func (v *invocation) equip(l *Loop, s loop.Session, w walls) error {
	for _, one := range []struct {
		role  *hone.Role
		model *loop.Model
		walls loop.Walls
	}{{&l.Builder, &v.Model, w.builder}, {&l.Writer, &v.Verifier, w.writer}, {&l.Verifier, &v.Verifier, w.verifier}} {
		if err := s.SetModel(one.role, one.model, one.walls); err != nil {
			return err
		}
		if one.role.Agent {
			continue
		}
		set := loop.Toolset{Dir: one.role.Dir, Walls: one.walls}
		if one.role.Dir == path.Dir(Results) {
			set.Closed = path.Base(Results)
			set.Why = set.Closed + " contains the logs of other parts of this run and is closed"
		}
		tools, err := s.Tools(set)
		if err != nil {
			return err
		}
		one.role.Tools = inSeat(tools, filepath.Join(s.Root(), one.role.Dir))
	}
	return nil
}

// written returns the numbers of the phases that have a specification and are not among
// args, in order.
func written(dir string, args []string) []string {
	files, err := os.ReadDir(filepath.Join(dir, "specs"))
	if err != nil {
		return nil
	}
	var numbers []int
	for _, f := range files {
		if n, ok := spec.Number(f.Name()); ok && n > 0 && !slices.Contains(args, strconv.Itoa(n)) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	var words []string
	for _, n := range numbers {
		words = append(words, strconv.Itoa(n))
	}
	return words
}
