//go:build unix

package phase_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/internal/crashtest/waittest"
	"hone/internal/git"
	"hone/journal"
	"hone/loop/phase"
	"hone/model"
	"hone/sandbox"
	"hone/sandbox/wall"
	"hone/sandbox/workshop"
	"hone/tool"
	"hone/workspace"
)

// What the test binary is told to be by its first argument: the project's
// server at a port, a process that the server leaves in the background, or a
// client of a URL. The server's and that process's last argument is a mark.
const (
	asServer = "hone-phase-server"
	asIdler  = "hone-phase-idler"
	asClient = "hone-phase-client"
)

func TestMain(m *testing.M) {
	wall.Helper()
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case asServer:
			serve(os.Args[2], os.Args[3])
		case asIdler:
			select {}
		case asClient:
			fetch(os.Args[2])
			return
		}
	}
	os.Exit(alone(m))
}

// alone runs the tests without the settings of whoever runs them.
func alone(m *testing.M) int {
	home := must(os.MkdirTemp("", "hone-phase-home"))
	defer os.RemoveAll(home)
	for _, name := range []string{"XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		must(0, os.Unsetenv(name))
	}
	must(0, errors.Join(os.Setenv("HOME", home), os.Setenv("GIT_CONFIG_NOSYSTEM", "1")))
	return m.Run()
}

// serve is the project's server: it runs in src/, answers with what the file
// answer holds, and counts how often it was asked. An answer of "crash" ends it
// before it listens, "deaf" keeps it from that.
func serve(port, mark string) {
	idler := exec.Command(os.Args[0], asIdler, mark)
	idler.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(0, idler.Start())
	answer, _ := os.ReadFile("answer")
	switch strings.TrimSpace(string(answer)) {
	case "crash":
		fmt.Println("server: cannot find the crash module")
		os.Exit(3)
	case "deaf":
		fmt.Println("server: waiting for the database")
		time.Sleep(time.Hour)
	}
	l := must(net.Listen("tcp", "127.0.0.1:"+port))
	fmt.Println("server: listening")
	asked := 0
	must(0, http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		fmt.Fprintf(w, "%s (request %d)", strings.TrimSpace(string(answer)), asked)
	})))
}

func fetch(url string) {
	client := http.Client{Timeout: waittest.Limit, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		fmt.Println("no answer:", err)
		os.Exit(7)
	}
	body, _ := io.ReadAll(response.Body)
	fmt.Println(response.StatusCode, string(body))
}

// must is for what can only fail where the test itself is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// skipShort skips a test with -short, as make race runs it: what it does in this
// process the others do too, and the rest is other processes.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: it is about other processes")
	}
}

func binary() string { return must(filepath.EvalSymlinks(must(os.Executable()))) }

// hooks are the bodies of the project's hooks. PORT, MARK and BINARY stand for
// what they are.
type hooks map[string]string

// usual are hooks as the seed has them.
func usual() hooks {
	return hooks{
		"start_dev":    "mkdir -p tests/results; cd src; BINARY " + asServer + " PORT MARK > ../tests/results/dev.log 2>&1 & echo $! > ../tests/results/dev.pid",
		"stop_dev":     `echo stopped >> tests/results/stops; kill "$(cat tests/results/dev.pid)"`,
		"reset_state":  "echo reset >> tests/results/resets",
		"health_check": "! grep -rHn --exclude-dir=.git LINT src > tests/results/lint.log",
		"map_deps":     "cat src/deps 2>/dev/null || true",
	}
}

// but is the hooks with another one in place.
func (h hooks) but(name, body string) hooks { h[name] = body; return h }

// without is the hooks without one.
func (h hooks) without(name string) hooks { delete(h, name); return h }

// project furnishes a folder with two specifications up to the phase and one
// beyond it, and with what no role may ever be told.
func project(t testing.TB, dir string, h hooks, more map[string]string) {
	t.Helper()
	port := crashtest.FreePort(t)
	var b strings.Builder
	fmt.Fprintf(&b, "# CANARY-CONFIG\n# port %s\ncase \"$1\" in\n", port)
	for _, name := range slices.Sorted(maps.Keys(h)) {
		body := strings.NewReplacer("PORT", port, "MARK", dir, "BINARY", binary()).Replace(h[name])
		fmt.Fprintf(&b, "%s)\n%s\n;;\n", name, body)
	}
	b.WriteString("esac\n")
	files(t, dir, map[string]string{
		phase.HooksName:       b.String(),
		"project.md":          "A server that answers.\n",
		"specs/phase1.md":     "## Phase 1: Greeting\n\n### Contracts\nGET / → 200 {hello}\n",
		"specs/phase2.md":     "## Phase 2: Leave\n\n### Contracts\nGET /bye → 200 {bye}\n",
		"specs/phase10.md":    "## Phase 10: CANARY-LATER\n\n### Contracts\nGET /ten → 200 {ten}\n",
		"Makefile":            "# CANARY-MAKEFILE\n",
		"prompts/builder.md":  "CANARY-BUILDER-ROLE\n",
		"prompts/verifier.md": "CANARY-VERIFIER-ROLE\n",
		".env":                "TOKEN=CANARY-ENV\n",
	})
	files(t, dir, more)
}

func files(t testing.TB, dir string, contents map[string]string) {
	t.Helper()
	for name, content := range contents {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// portOf is the port of a project's server.
func portOf(dir string) string {
	_, rest, _ := strings.Cut(string(must(os.ReadFile(filepath.Join(dir, phase.HooksName)))), "# port ")
	port, _, _ := strings.Cut(rest, "\n")
	return port
}

// process is one life of a program that builds phase 2 of a project.
type process struct {
	model   model.Model
	wall    sandbox.Wall // empty: none
	rounds  int          // 0: 3
	turns   int
	agents  bool // both roles are agents, who do what their model's calls say
	check   check.Func
	observe journal.Observer
	set     func(*phase.Loop, *hone.Run)     // may be nil
	context func() (context.Context, func()) // the round's; nil: the run's
}

// lived is what came of a life.
type lived struct {
	hone.End
	summary string
}

func (p process) live(t testing.TB, dir string) lived {
	t.Helper()
	ctx := context.Background()
	g := must(git.Find(""))
	if err := phase.Prepare(ctx, g, dir); err != nil {
		t.Fatal(err)
	}
	l := phase.Loop{Phase: 2, Git: g, Server: must(phase.NewServer("http://localhost:" + portOf(dir)))}
	walls := p.walls(t, dir, l.Server)
	defer func() {
		for _, w := range walls {
			w.Close()
		}
	}()
	l.Hooks = phase.Hooks{Runner: walls[2], Dir: dir}
	var run *hone.Run
	end := crashtest.RunProcess(t, dir, nil, p.observe, func(r *hone.Run) hone.Round {
		run = r
		r.Rules, r.Own, r.Trust.Passed, r.Check, r.Limits.Rounds = l.Rules(), phase.Own, "phase 2 passed", p.check, p.rounds
		if p.rounds == 0 {
			r.Limits.Rounds = 3
		}
		p.staff(&l, r, dir, walls)
		if p.set != nil {
			p.set(&l, r)
		}
		return p.within(l.Round)
	})
	if err := l.Finish(ctx, run, end); err != nil {
		t.Fatal(err)
	}
	return lived{end, l.Summary(run, end)}
}

// within is a round with a context of its own.
func (p process) within(round hone.Round) hone.Round {
	if p.context == nil {
		return round
	}
	return func(_ context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		ctx, stop := p.context()
		defer stop()
		return round(ctx, r, prior)
	}
}

// enclosed are walls whose commands have an environment.
type enclosed struct {
	*wall.Walls
	env func() []string
}

func (e enclosed) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	c.Env = e.env()
	return e.Walls.Run(ctx, c)
}

func (e enclosed) Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error) {
	c.Env = e.env()
	return e.Walls.Start(ctx, c)
}

// walls are those of the builder, the verifier and the hooks.
func (p process) walls(t testing.TB, dir string, server *phase.Server) (all []enclosed) {
	t.Helper()
	kind := p.wall
	if kind == "" {
		kind = sandbox.NoWall
	}
	src, tests := filepath.Join(dir, phase.Src), filepath.Join(dir, phase.Tests)
	results := filepath.Join(dir, phase.Results)
	for _, policy := range []sandbox.Policy{
		{Write: []string{src}},
		{Write: []string{tests}, Hide: []string{results}, Doors: []sandbox.Door{server.Door(kind != sandbox.NoWall && kind != sandbox.Landlock)}},
		{Write: []string{src, results}, Read: []string{filepath.Join(dir, phase.HooksName)}},
	} {
		policy.Wall, policy.Read = kind, append(append(policy.Read, workshop.System()...), binary())
		w, err := wall.Build(context.Background(), policy)
		if err != nil {
			t.Skip("SKIPPED: ", err)
		}
		e := enclosed{w, func() []string { return []string{"PATH=/usr/bin:/bin"} }}
		if policy.Doors != nil {
			server.SetAddr(w.DoorAddr(0))
			e.env = func() []string { return []string{"PATH=/usr/bin:/bin", "DEV_URL=" + server.Address()} }
		}
		all = append(all, e)
	}
	return all
}

// staff gives the loop its roles.
func (p process) staff(l *phase.Loop, r *hone.Run, dir string, walls []enclosed) {
	role := func(name, folder, system string, w enclosed) hone.Role {
		at := place{r, dir, folder, w}
		role := hone.Role{Name: name, Dir: folder, Called: "test/model", MaxOutput: 4096, System: system, Bounds: hone.Bounds{Turns: p.turns},
			Model: p.model, Tools: []tool.Tool{at.write(), at.bash()}}
		if p.agents {
			role.Tools, role.Agent, role.Model = nil, true, worker{p.model, at}
		}
		return role
	}
	l.Builder = role("builder", phase.Src, phase.BuilderSystem("You build.", p.agents), walls[0])
	l.Verifier = role("verifier", phase.Tests, phase.VerifierSystem("You verify.", "http://localhost:3000", p.agents), walls[1])
	l.Writer, l.Suite = l.Verifier, walls[1]
}

// place is a role's folder, and the walls around it.
type place struct {
	run    *hone.Run
	dir    string
	folder string
	walls  enclosed
}

func spec(name string) model.Spec {
	return model.Spec{Name: name, Description: name, Schema: json.RawMessage(`{"type":"object"}`)}
}

type arguments struct{ Path, Content, Command string }

// write is a tool that writes a file of the role's folder.
func (p place) write() tool.Tool {
	return tool.Tool{Spec: spec("write"), Run: func(ctx context.Context, in tool.Input) (tool.Result, error) {
		var a arguments
		must(0, json.Unmarshal(in.Args, &a))
		vs, err := p.run.Apply(ctx, workspace.Change{Edits: []workspace.Edit{{Path: p.folder + "/" + a.Path, Content: []byte(a.Content)}}}, nil)
		if err != nil {
			return tool.Result{}, err
		}
		if vs[0].Ruling == workspace.Deny {
			return tool.Failure(vs[0].Reason), nil
		}
		return tool.Result{Text: "wrote " + a.Path}, nil
	}}
}

// bash is a tool that runs a command line behind the role's walls.
func (p place) bash() tool.Tool {
	return tool.Tool{Spec: spec("bash"), RunsCommands: true, Run: func(ctx context.Context, in tool.Input) (tool.Result, error) {
		var a arguments
		must(0, json.Unmarshal(in.Args, &a))
		got, err := p.command(ctx, a.Command)
		return tool.Result{Text: string(got.Stdout) + string(got.Stderr), Exit: &got.Exit}, err
	}}
}

func (p place) command(ctx context.Context, line string) (sandbox.Result, error) {
	return p.walls.Run(ctx, sandbox.Command{Argv: []string{"sh", "-c", line}, Dir: filepath.Join(p.dir, p.folder), Timeout: time.Minute})
}

// worker is an agent that does what its model's one reply calls for, and then
// says what stands beside that.
type worker struct {
	model model.Model
	place
}

func (w worker) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	reply, err := w.model.Generate(ctx, req)
	if err != nil {
		return reply, err
	}
	for _, c := range reply.Calls() {
		var a arguments
		must(0, json.Unmarshal([]byte(c.Args), &a))
		if a.Command == "" {
			must(0, os.WriteFile(filepath.Join(w.dir, w.folder, a.Path), []byte(a.Content), 0o644))
			continue
		}
		if _, err := w.command(ctx, a.Command); err != nil {
			return model.Reply{}, err
		}
	}
	return say(reply.Text()), nil
}

// walls are the walls behind which a whole phase is tried.
func walls() []sandbox.Wall {
	if testing.Short() {
		return []sandbox.Wall{sandbox.Hidden, sandbox.NoWall} // other walls differ in other processes
	}
	return []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Firejail, sandbox.Landlock, sandbox.NoWall}
}
