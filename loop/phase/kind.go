package phase

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
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
	"hone/loop/phase/spec"
	"hone/model"
	"hone/sandbox"
	"hone/tool"
	"hone/workspace/secret"
)

//go:embed help.md
var help string

// Kind is what phase declares of itself.
func Kind() loop.Kind {
	return loop.Kind{
		Name: "phase", Help: loop.ReadHelp(help), Args: phaseArgs,
		Agents: true,
		Programs: func(root string) ([]string, error) {
			if _, err := os.Lstat(filepath.Join(root, HooksName)); err != nil {
				return nil, nil
			}
			return []string{HooksName + " (health_check, start_dev, reset_state, map_deps)"}, nil
		},
		New:      func() loop.Loop { return &Loop{} },
		Starters: starterFiles,
	}
}

// The seed's models.
const (
	defaultBuilder  = "gemini/gemini-2.5-pro"
	defaultVerifier = "gemini/gemini-2.5-flash"
)

func (l *Loop) devURL() string { return config.DevURL.In(l.Values) }

// Models returns the builder's and the verifier's model.
func (l *Loop) Models() []loop.RoleModel {
	return []loop.RoleModel{{Role: "builder", Model: &l.Model}, {Role: "verifier", Model: &l.VerifierModel}}
}

// Own reports whether a file is the loop's own.
func (l *Loop) Own(string) func(string) bool {
	return func(name string) bool { return Own(name) || l.isLog(name) }
}

func (l *Loop) isLog(name string) bool {
	return slices.ContainsFunc(l.Logs, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
}

// namesLogs matches a line of abl.config.sh that writes into a directory of logs of ABL's later layouts.
var namesLogs = lazyregexp.New(`(?m)^[^#\n]*?(\.abl/)?(?:\blogs/|mkdir\b[^\n]*?(\.abl/)?\blogs\b)`)

func project(root string) error {
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(spec.Dir(root)))); err != nil {
		return loop.Usage("there is no specs/ in "+root+", and no .abl/specs/", "hone init phase, or name the project's directory with --dir")
	}
	return nil
}

// Resolve reads flags, environment, roles and configuration.
func (l *Loop) Resolve(_ context.Context, in *loop.Input) (err error) {
	if in.Preview && (len(in.Args) > 1 || in.Args[0] == allPhases) {
		return loop.Usage("prompt phase needs the number of one phase", "hone prompt phase 1")
	}
	if err := project(in.Root); err != nil {
		return err
	}
	l.Phase, _ = strconv.Atoi(in.Args[0])
	if l.HookRead, err = loop.AbsPaths(in.Root, config.HookRead.In(in.Values)); err != nil {
		return err
	}
	both := cmp.Or(config.Model.Given(in.Flags), in.Getenv("HONE_MODEL"))
	model := func(s config.Setting[string], standard string) string {
		return cmp.Or(s.Given(in.Flags), both, s.In(in.Values), config.Model.In(in.Values), standard)
	}
	verifier := model(config.VerifierModel, defaultVerifier)
	config.Model.Set(in.Values, model(config.BuilderModel, defaultBuilder))
	if l.Settings, err = in.Settings(); err != nil {
		return err
	}
	l.About = fmt.Sprintf("phase %d", l.Phase)
	l.RepoAdvice.Off = true // the roles see no more of the repository than the loop gives them
	if l.VerifierModel, err = in.Model(verifier); err != nil {
		return err
	}
	texts := map[string]string{}
	l.NamesRoot = map[string]bool{}
	for _, role := range []struct{ name, folder string }{{"builder", Src}, {"verifier", Tests}} {
		text, err := RoleText(in.Root, role.name)
		if err != nil {
			return loop.UsageOf(err, "fix the file, or remove it")
		}
		texts[role.name] = text
		// The prompts of ABL call the role's working directory the project root.
		if l.NamesRoot[role.name] = strings.Contains(strings.ToLower(text), "project root"); l.NamesRoot[role.name] {
			in.Note(fmt.Sprintf("prompts/%s.md mentions the project root, but the %[1]s works in %[2]s/: there %[2]s/NAME means NAME; correct the file, or remove it to use hone's prompt", role.name, role.folder))
		}
	}
	l.BuilderSystem = BuilderSystem(texts["builder"], l.Model.Agent != nil)
	l.VerifierSystem = VerifierSystem(texts["verifier"], l.devURL(), l.VerifierModel.Agent != nil)
	if err := l.complete(in.Root); err != nil || in.Preview {
		return err
	}
	first := spec.Dir(in.Root) + "/phase1.md"
	if text, _, err := in.Tree.Read(first); err == nil {
		return loop.CheckEdited(first, string(text), starters, "starters/phase/specs/phase1.md")
	}
	return nil // a phase that is there without the first
}

// It fails before anything is written.
func (l *Loop) complete(root string) error {
	specs, err := spec.Read(root, l.Phase)
	if err != nil {
		return wrongSpecs(err)
	}
	if own := specs[len(specs)-1]; len(own.Items) == 0 {
		return noContract(own.Path)
	}
	hooks, err := artifact.Input(filepath.Join(root, HooksName))
	for _, m := range namesLogs.FindAllStringSubmatch(string(hooks), -1) {
		l.Logs = append(l.Logs, m[1]+m[2]+LogDir)
	}
	slices.Sort(l.Logs)
	l.Logs = slices.Compact(l.Logs)
	if info, statErr := os.Stat(filepath.Join(root, HooksName)); err != nil || statErr != nil || !info.Mode().IsRegular() {
		hint := "hone init phase, or name the project's directory with --dir"
		if _, err := os.Stat(filepath.Join(root, ".abl", "abl.config.yaml")); err == nil {
			hint = "hone init phase writes one with the hooks to fill in: the commands of .abl/abl.config.yaml go there, those of verifier_commands as [phase] verifier-commands names them"
		}
		return loop.Usage("there is no "+HooksName+" in "+root+", which defines how the project is checked and started", hint)
	}
	if l.Model.BaseURL != "" && l.VerifierModel.BaseURL != "" && l.Model.Provider() != l.VerifierModel.Provider() {
		return loop.Usage("--base-url is one address, but the two roles use different providers", "set the providers' own variables instead, such as GOOGLE_GEMINI_BASE_URL and OPENAI_BASE_URL")
	}
	return nil
}

// Build puts roles, walls, server and hooks together.
func (l *Loop) Build(s loop.Session) (built loop.Built, err error) {
	g, err := git.Find(s.Root())
	if err != nil {
		return built, &hone.Stop{Kind: hone.KindFailed, Why: err.Error(), Next: hone.Next{First: "install git", Verb: hone.Resume}}
	}
	server, err := NewServer(l.devURL())
	if err != nil {
		return built, loop.UsageOf(err, "--dev-url http://localhost:3000")
	}
	l.prepare(s.Guard())
	l.Server, l.Git = server, g
	r := s.NewRun(l.Rules())
	r.Trust.Passed = fmt.Sprintf("phase %d passed", l.Phase)
	walls := l.walls(s, r, g, server)
	l.Suite = walls.verifier
	l.Hooks = Hooks{Runner: walls.hooks, Dir: s.Root(), Time: config.HookTimeout.In(l.Values)}
	for _, one := range []struct {
		role  *hone.Role
		model *loop.Model
		walls loop.Walls
	}{{&l.Builder, &l.Model, walls.builder}, {&l.Writer, &l.VerifierModel, walls.writer}, {&l.Verifier, &l.VerifierModel, walls.verifier}} {
		if err := s.SetModel(one.role, one.model, one.walls); err != nil {
			return built, err
		}
		if one.role.Agent {
			continue // it has its own tools
		}
		set := loop.Toolset{Dir: one.role.Dir, Walls: one.walls}
		if one.role.Dir == path.Dir(Results) {
			set.Closed = path.Base(Results)
			set.Why = set.Closed + " contains the logs of other parts of this run and is closed"
		}
		tools, err := s.Tools(set)
		if err != nil {
			return built, err
		}
		one.role.Tools = inFolder(tools, filepath.Join(s.Root(), one.role.Dir))
	}
	if names := config.VerifierCommands.In(l.Values); len(names) > 0 {
		l.Verifier.Tools = append(l.Verifier.Tools, l.commandTool(names, Hooks{Runner: walls.commands, Dir: s.Root(), Time: l.Hooks.Time}))
	}
	s.SetCheck(walls.hooks, s.Check)
	return loop.Built{
		Run:     r,
		Round:   l.Round,
		With:    fmt.Sprintf("builder %s and verifier %s", l.Model.Names(), l.VerifierModel.Names()),
		Turns:   map[string]int{l.Builder.Name: l.Bounds().Turns, l.Verifier.Name: l.Bounds().Turns},
		Finish:  func(ctx context.Context, end hone.End) error { return l.Finish(ctx, r, end) },
		Summary: func(end hone.End) string { return l.Summary(r, end) },
	}, nil
}

func (l *Loop) prepare(guard *secret.Guard) {
	role := func(name string, m loop.Model, system, folder string) hone.Role {
		role := m.Role(name, system)
		role.Dir, role.Bounds = folder, l.Bounds()
		return role
	}
	l.Builder, l.Writer = role("builder", l.Model, l.BuilderSystem, Src), role("verifier", l.VerifierModel, l.VerifierSystem, Tests)
	l.Verifier, l.Guard, l.HealthAttempts = l.Writer, guard, config.HealthAttempts.In(l.Values)
}

// walls are the walls of a phase: each role has its own, and so have the hooks, so
// that none sees another's files.
type walls struct{ builder, hooks, commands, writer, verifier loop.Walls }

// All are of the same kind as the builder's.
func (l *Loop) walls(s loop.Session, r *hone.Run, g *git.Git, server *Server) walls {
	at := func(name string) string { return filepath.Join(s.Root(), filepath.FromSlash(name)) }
	builder := s.Walls(loop.WallPlan{Root: at(Src), OwnHome: true, Hides: true,
		Prepare: func(ctx context.Context) error { return Prepare(ctx, g, s.Root(), l.Logs...) },
		OnBuilt: func(grade sandbox.Grade, _ string) ([]string, error) {
			open := "you could yourself"
			if grade.Wall != sandbox.NoWall {
				// The commands of a role and the hooks are behind walls.
				r.Reach = func(file string) bool {
					top, _, _ := strings.Cut(file, "/")
					return top == Src || top == Tests || l.isLog(file)
				}
				open = "looking at names goes; its hidden files stay readable in directories that may be written (hone doctor has the list)"
			}
			if grade.Wall.Mounts() {
				return nil, nil
			}
			return nil, r.Notice(fmt.Sprintf("the wall %s does not hide what it does not allow: the roles can find out what the rest of the project holds, as far as %s", grade.Wall, open))
		}})
	logs, net := []string{at(Results)}, config.HookNet.In(l.Values)
	for _, dir := range l.Logs {
		logs = append(logs, at(dir))
	}
	hooks := loop.WallPlan{Root: at(Src), OwnHome: true, Hides: true, After: builder,
		Net: &net, Env: config.HookEnv.In(l.Values), Protect: []string{".git"},
		Write: logs, Read: append([]string{at(HooksName)}, l.HookRead...)}
	commands := hooks
	commands.Root, commands.Write, commands.Hide, commands.Later = at(Tests), nil, []string{at(Results)}, true
	tester := loop.WallPlan{Root: at(Tests), OwnHome: true, Hides: true, After: builder, Hide: []string{at(Results)}}
	writer, verifier := tester, tester
	writer.Vars = []string{"DEV_URL=" + l.devURL()}
	verifier.Door = server.Door
	verifier.OnBuilt = func(_ sandbox.Grade, door string) ([]string, error) {
		server.SetAddr(door)
		return []string{"DEV_URL=" + server.Address()}, nil
	}
	return walls{builder: builder, hooks: s.Walls(hooks), commands: s.Walls(commands), writer: s.Walls(writer), verifier: s.Walls(verifier)}
}

// Preview returns the first prompt of a run, which the verifier gets.
func (l *Loop) Preview(_ context.Context, view loop.View) (loop.Prompt, error) {
	l.prepare(view.Guard)
	c, err := l.prompt(view.Tree.Dir(), toWrite, 1, "", "", nil)
	return loop.Prompt{System: l.Writer.System, Text: c.Context + "\n" + c.Instruction + "\n", Model: l.VerifierModel.Name,
		What: "to the verifier: the instructions, the project and its contracts", Fits: l.fits(toWrite, view.Tree.Dir(), c)}, err
}

// maxCommand limits what a command's output adds to a session, in bytes.
const maxCommand = 16 << 10

// commandTool lets the verifier call commands of abl.config.sh that its walls keep from it, such as a query of the
// database (ruling A16). They run behind walls of their own, which show nothing of src/.
func (l *Loop) commandTool(names []string, hooks Hooks) tool.Tool {
	list, _ := json.Marshal(names) // strings
	return tool.Tool{
		RunsCommands: true,
		Spec: model.Spec{
			Name:        "command",
			Description: "Calls a command of the project, which runs outside of your directory: " + strings.Join(names, ", ") + ". Use it to see what requests do not show, such as stored data.",
			Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","enum":` + string(list) + `},` +
				`"arguments":{"type":"array","items":{"type":"string"},"description":"such as a query"}},"required":["name"],"additionalProperties":false}`),
		},
		Run: func(ctx context.Context, in tool.Input) (tool.Result, error) {
			var a struct {
				Name      string
				Arguments []string
			}
			if err := json.Unmarshal(in.Args, &a); err != nil || !slices.Contains(names, a.Name) {
				return tool.Failure("name must be one of " + strings.Join(names, ", ")), nil
			}
			got, err := hooks.Call(ctx, a.Name, a.Arguments...)
			return tool.Result{Text: fmt.Sprintf("exit_code: %d\n%s", got.Exit, l.shortened(maxCommand, got.Output)), Exit: &got.Exit}, err
		},
	}
}

// allPhases stands for every phase that has a specification.
const allPhases = "all"

func phaseArgs(args []string) error {
	if len(args) == 0 {
		return loop.Usage("phase needs the number of a phase, or all", "hone phase 1, hone phase 1 2, or hone phase all")
	}
	for _, arg := range args {
		if n, err := strconv.Atoi(arg); arg != allPhases && (err != nil || n < 1) {
			return loop.Usage(fmt.Sprintf("%q is not the number of a phase", arg), "hone phase 1, hone phase 1 2, or hone phase all")
		}
	}
	if slices.Contains(args, allPhases) && len(args) > 1 {
		return loop.Usage("phase takes numbers, or all", "hone phase all")
	}
	return nil
}

// Split returns one run for each phase that the command line names, in their order.
// "all" leaves out the phases that have passed. With --list it prints the
// specifications as hone reads them, and returns no run.
func (l *Loop) Split(ctx context.Context, in *loop.Input) (runs [][]string, err error) {
	if err := project(in.Root); err != nil {
		return nil, err
	}
	var numbers []int
	for _, arg := range in.Args {
		n, _ := strconv.Atoi(arg) // "all" is 0
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	if config.List.Given(in.Flags) {
		return nil, wrongSpecs(list(in, numbers[len(numbers)-1]))
	}
	if in.Args[0] == allPhases {
		numbers, err = notPassed(ctx, in)
	}
	for _, n := range numbers {
		if _, missing := spec.Read(in.Root, n); err == nil {
			err = missing
		}
		runs = append(runs, []string{strconv.Itoa(n)})
	}
	if err != nil {
		return nil, wrongSpecs(err)
	}
	return runs, nil
}

func wrongSpecs(err error) error {
	wrong, ok := errors.AsType[*spec.Error](err)
	switch {
	case !ok:
		return err
	case wrong.Missing:
		return loop.Usage(wrong.Why, "write it, or name one that exists: hone phase all --list")
	}
	return loop.Usage(wrong.Why, "hone init phase writes an example")
}

func notPassed(ctx context.Context, in *loop.Input) (numbers []int, err error) {
	specs, err := spec.Read(in.Root, 0)
	if err != nil {
		return nil, err
	}
	g, err := git.Find(in.Root)
	if err != nil {
		return nil, err
	}
	var passed []string
	for _, s := range specs {
		ok, err := HasPassed(ctx, g, in.Root, s.Number)
		if err != nil {
			return nil, err
		}
		if ok {
			passed = append(passed, strconv.Itoa(s.Number))
		} else {
			numbers = append(numbers, s.Number)
		}
	}
	if len(passed) > 0 {
		in.Note(fmt.Sprintf("already passed by these specifications: phase %s; hone phase N runs one again", strings.Join(passed, ", ")))
	}
	if len(numbers) == 0 {
		_, err = fmt.Fprintln(in.Out, "next: write the specification of the next phase; all existing ones have passed")
	}
	return numbers, err
}

// last is 0 for all phases.
func list(in *loop.Input, last int) error {
	specs, err := spec.Read(in.Root, last)
	if err != nil {
		return err
	}
	for _, s := range specs {
		if len(s.Items) > 0 {
			_, err = fmt.Fprint(in.Out, spec.List(specs))
			return err
		}
	}
	return noContract(specs[len(specs)-1].Path)
}

func noContract(file string) error {
	return loop.Usage(file+" states no contract that hone recognizes, so nothing could be verified",
		"below a heading Contracts, hone looks for lines ACTION → EXPECTED, for FLOW: NAME with such lines, and for headings such as POST /users with lines Input: and Success:")
}
