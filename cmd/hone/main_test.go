package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/pelletier/go-toml/v2"
	"github.com/rogpeppe/go-internal/testscript"

	"hone/harness"
	"hone/internal/crashtest"
	"hone/internal/crashtest/faulttest"
	"hone/internal/crashtest/waittest"
	"hone/journal"
	"hone/model/modeltest"
	"hone/sandbox"
	"hone/sandbox/wall"
	"hone/sandbox/workshop"
	"hone/story"
)

func TestMain(m *testing.M) {
	harness.Main()
	testscript.Main(ownState{m}, map[string]func(){
		"hone": func() {
			story.Shortest = 0
			collectLater()
			os.Exit(Main(os.Args[1:], killer(os.Getenv("HONE_TEST_KILL")), wallsOfTest()))
		},
		"on-terminal": onTerminal,
		"child-hone":  childHone,
		"faulty": func() {
			fmt.Fprintln(os.Stderr, faulttest.Main())
			os.Exit(125)
		},
	})
}

// wallsOfTest returns nil, for the walls of this system, or a function that returns
// none if a script says so.
func wallsOfTest() func() []sandbox.Wall {
	if os.Getenv("HONE_TEST_NO_WALLS") == "" {
		return nil
	}
	return func() []sandbox.Wall { return nil }
}

// ownState runs the tests with a state folder of their own, and trusts the programs of
// their folders.
type ownState struct{ m *testing.M }

func (o ownState) Run() int {
	_ = os.Setenv("HONE_TRUST", "1")
	return crashtest.RunWithState(o.m)
}

// killer returns an observer that kills the process, as kill -9 does, at a
// point. A number counts the points of the process from 0: there is one before
// and one after each event of the journal. A type of event means after the first
// event of that type. An empty point never kills.
func killer(point string) journal.Observer {
	n, err := strconv.Atoi(point)
	switch {
	case point == "":
		return journal.Observer{}
	case err != nil:
		return journal.Observer{After: func(e journal.Event) {
			if string(e.Type) == point {
				die()
			}
		}}
	}
	var mu sync.Mutex
	at := func() {
		mu.Lock()
		defer mu.Unlock()
		if n == 0 {
			die()
		}
		n--
	}
	return journal.Observer{Before: func(journal.Entry) { at() }, After: func(journal.Event) { at() }}
}

func die() {
	p, _ := os.FindProcess(os.Getpid())
	_ = p.Kill()
	select {}
}

// TestScripts runs the program itself. Each script of a ruling names the ruling
// in its first line. In addition to testscript's own commands there are:
//
//	repo [DIR]            makes DIR (default: repo) a repository with one commit on main, with
//	                      every file that starts with #! executable, and changes to it
//	project [DIR]         makes DIR (default: project) a project of hone phase, and changes to it; files
//	                      of the script in DIR are kept
//	serve FILE            starts a server that speaks every provider's wire and replies with the
//	                      turns (modeltest.Turn) in FILE, a JSON list; sets the base URLs and keys
//	served N              there were exactly N requests
//	request N FILE        writes the body of request N (1 is the first) to FILE
//	sent N FILE           writes the prompt of request N, made over chat completions, to FILE
//	[!] begins A B        the file B starts with the bytes of the file A
//	header N NAME VALUE   request N had that header
//	await N               waits for N requests
//	schema FILE           every line of FILE is an event that matches events.schema.json
//	nowhere TEXT          no file below $WORK contains TEXT, including the script's own
//	status N ARGS…        runs hone, which must exit with status N
//	terminal N FILE ARGS… is status with standard input and error on a terminal, where FILE is typed;
//	                      stderr is what it shows. With -interrupt=TEXT for FILE nothing is
//	                      typed, and hone is interrupted when the terminal shows TEXT; with -background
//	                      nothing is typed, and hone runs in the background of the terminal
//	trust [DIR]           sets HONE_TRUST to the digest of the settings in DIR (default: here)
//	tomls DIR             there is a .toml file below DIR, and every one is valid
//	count N REGEXP FILE   FILE has exactly N matches
//	capture NAME REGEXP   sets the variable NAME to what the first group of REGEXP matches in stdout
//	until ARGS…           waits until ARGS… exits 0
//	unreplayed DIR WHY    the runs in DIR are not replayed, because the script damaged them on purpose
//	unaccounted WHY F…    the files F… change outside a run, and its replay may report them
//
// $SOURCE is the directory of hone's source, and $CACHE_OF_GO the build cache of the user. There are two conditions: wall:NAME is true if that wall works on this machine, and race is true
// with the race detector.
//
// After each script every run that it leaves is replayed ([replayAll]).
func TestScripts(t *testing.T) {
	t.Parallel()
	names := "*"
	if testing.Short() {
		names = shortScripts
	}
	for name := range strings.FieldsSeq(names) {
		runScripts(t, "testdata/script/"+name+".txtar", nil)
	}
}

// scriptLimit is how long a script may take. Only one that hangs reaches it.
const scriptLimit = 20 * time.Minute

// runScripts runs the scripts of a pattern, each as a test of its own with its own time, and with
// these commands.
func runScripts(t *testing.T, pattern string, commands map[string]func(*testscript.TestScript, bool, []string)) {
	t.Helper()
	scripts, err := filepath.Glob(pattern)
	if err != nil || len(scripts) == 0 {
		t.Fatalf("there is no script %s (%v)", pattern, err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			t.Parallel()
			p := scriptParams(t)
			maps.Copy(p.Cmds, commands)
			p.Files, p.Deadline = []string{script}, time.Now().Add(scriptLimit)
			testscript.RunT(oneScript{t}, p)
		})
	}
}

// oneScript is the test of a script that has been started already.
type oneScript struct{ *testing.T }

func (oneScript) Parallel()                              {}
func (s oneScript) Run(_ string, run func(testscript.T)) { run(s) }
func (oneScript) Verbose() bool                          { return testing.Verbose() }

// scriptParams returns what all scripts have in common.
func scriptParams(t *testing.T) testscript.Params {
	return testscript.Params{
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "race":
				return raceEnabled(), nil
			}
			if wall, ok := strings.CutPrefix(cond, "wall:"); ok {
				return wallWorks(t, sandbox.Wall(wall)), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"repo":        repo,
			"project":     project,
			"serve":       func(ts *testscript.TestScript, _ bool, args []string) { serve(t, ts, args) },
			"served":      served,
			"request":     request,
			"header":      header,
			"sent":        sent,
			"begins":      begins,
			"prefix":      prefix,
			"atmost":      atMost,
			"await":       await,
			"schema":      schema,
			"nowhere":     nowhere,
			"status":      status,
			"terminal":    terminal,
			"count":       count,
			"capture":     capture,
			"until":       untilZero,
			"unreplayed":  unreplayed,
			"unaccounted": unaccounted,
			"tomls":       tomls,
			"trust":       trustSettings,
		},
	}
}

// shortScripts are the scripts that run with -short, as in make race: each
// loop once, and whatever runs concurrently (screens, signals, retries, servers,
// walls). Without -short all scripts run.
const shortScripts = "reconcile implement task_flow task_agent task_walls phase_flow prove_killed " +
	"exit130 fault_provider g2_interrupt g2_terminal g7_retry g11_crash json lock patience_reconcile sandbox_signals task_approve wires"

// skipShort skips a test with -short, because it starts many other processes.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: it is about other processes")
	}
}

// skipDocs skips a test with -short, because it only compares the documentation with
// the source.
func skipDocs(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: it reads the documentation")
	}
}

// raceEnabled reports whether the race detector is on. Its shadow memory exceeds
// the limits that some tests set for walls.
func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// skipRace skips a test with the race detector, because it is about other
// processes and would take minutes. make unit runs it without the detector.
func skipRace(t *testing.T) {
	t.Helper()
	if raceEnabled() {
		t.Skip("it is about other processes: make unit runs it without the race detector")
	}
}

// wallWorks reports whether a wall works on this machine. If it does not,
// wallWorks logs that its tests are skipped.
func wallWorks(t *testing.T, kind sandbox.Wall) bool {
	t.Helper()
	why, tried := walls.Load(kind)
	if !tried {
		w, err := wall.Build(context.Background(), sandbox.Policy{Wall: kind, Read: workshop.System()})
		if err == nil {
			w.Close()
		}
		why = err
		walls.Store(kind, why)
	}
	if why != nil {
		t.Logf("WARNING: not tested: %v", why)
	}
	return why == nil
}

// walls maps each wall that was tried to why it does not work; nil if it works.
var walls sync.Map

// promptExit stops the race detector from waiting a second at the end of every
// process.
const promptExit = "GORACE=atexit_sleep_ms=0"

// setup gives a script its own environment, without the keys and configuration
// of the user who runs the tests.
func setup(e *testscript.Env) error {
	source, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	state := filepath.Join(filepath.Dir(e.WorkDir), "state-"+filepath.Base(e.WorkDir))
	home := filepath.Join(filepath.Dir(e.WorkDir), "home-"+filepath.Base(e.WorkDir))
	if err := errors.Join(shareProofs(state), os.Mkdir(home, 0o755)); err != nil {
		return err
	}
	e.Vars = append(e.Vars,
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", promptExit, "XDG_CACHE_HOME="+filepath.Join(e.WorkDir, ".cache"),
		"XDG_STATE_HOME="+state, "HOME="+home, "CACHE_OF_GO="+cacheOfGo(),
		"HONE_TRUST=1", "SOURCE="+source,
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t")
	e.Values[serverKey{}] = &holder{}
	e.Values[replaysKey{}] = &replayExceptions{}
	e.Defer(func() { replayAll(e) })
	return nil
}

// cacheOfGo returns the build cache of the user who runs the tests, in which the standard
// library is compiled; empty if it is not known.
var cacheOfGo = sync.OnceValue(func() string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
})

// shareProofs makes a script's state folder with the proofs of walls that all scripts
// share: they hold for this machine and this program.
func shareProofs(state string) error {
	if err := os.MkdirAll(filepath.Join(state, "hone"), 0o700); err != nil {
		return err
	}
	shared := filepath.Join(os.Getenv("XDG_STATE_HOME"), "hone", "proofs")
	return errors.Join(os.MkdirAll(shared, 0o700), os.Symlink(shared, filepath.Join(state, "hone", "proofs")))
}

type serverKey struct{}

// holder contains the server of a script.
type holder struct{ server *modeltest.Server }

func repo(ts *testscript.TestScript, neg bool, args []string) {
	dir := "repo"
	if len(args) > 0 {
		dir = args[0]
	}
	top := ts.MkAbs(dir)
	ts.Check(os.MkdirAll(top, 0o755))
	ts.Check(filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && bytes.HasPrefix(b, []byte("#!")) {
			err = os.Chmod(path, 0o755)
		}
		return err
	}))
	ts.Check(ts.Chdir(dir))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		ts.Check(ts.Exec("git", args...))
	}
}

func serve(t *testing.T, ts *testscript.TestScript, args []string) {
	var turns []modeltest.Turn
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &turns); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	s := modeltest.NewServer(t, turns...)
	ts.Value(serverKey{}).(*holder).server = s
	ts.Setenv("SERVER", s.URL)
	ts.Setenv("GOOGLE_GEMINI_BASE_URL", s.URL)
	ts.Setenv("ANTHROPIC_BASE_URL", s.URL)
	ts.Setenv("OPENAI_BASE_URL", s.URL+"/v1")
	ts.Setenv("OLLAMA_HOST", strings.TrimPrefix(s.URL, "http://"))
	for _, v := range harness.KeyVariables() {
		ts.Setenv(v, "test-key-of-"+strings.ToLower(v))
	}
}

func server(ts *testscript.TestScript) *modeltest.Server {
	s := ts.Value(serverKey{}).(*holder).server
	if s == nil {
		ts.Fatalf("no server was started")
	}
	return s
}

func served(ts *testscript.TestScript, neg bool, args []string) {
	if got := len(server(ts).Received()); fmt.Sprint(got) != args[0] {
		ts.Fatalf("%d requests were made", got)
	}
}

func request(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	all := server(ts).Received()
	if n < 1 || n > len(all) {
		ts.Fatalf("%d requests were made", len(all))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), all[n-1].Body, 0o644))
}

func header(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	all := server(ts).Received()
	if n < 1 || n > len(all) {
		ts.Fatalf("%d requests were made", len(all))
	}
	if got := all[n-1].Header.Get(args[1]); got != args[2] {
		ts.Fatalf("%s of request %d is %q", args[1], n, got)
	}
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	if !waittest.Until(func() bool { return len(server(ts).Received()) >= n }) {
		ts.Fatalf("there were only %d requests", len(server(ts).Received()))
	}
}

func schema(ts *testscript.TestScript, neg bool, args []string) {
	b, err := os.ReadFile("../../events.schema.json")
	ts.Check(err)
	var s jsonschema.Schema
	ts.Check(json.Unmarshal(b, &s))
	resolved, err := s.Resolve(nil)
	ts.Check(err)
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
	for i, line := range lines {
		var v any
		ts.Check(json.Unmarshal([]byte(line), &v))
		if err := resolved.Validate(v); err != nil {
			ts.Fatalf("line %d is no event: %v\n%s", i+1, err, line)
		}
	}
}

func nowhere(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(filepath.WalkDir(ts.Getenv("WORK"), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && bytes.Contains(b, []byte(args[0])) {
			return fmt.Errorf("%s holds %q", path, args[0])
		}
		return err
	}))
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, args, ts.Exec("hone", args[1:]...))
}

func terminal(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, slices.Delete(slices.Clone(args), 1, 2), ts.Exec("on-terminal", args[1:]...))
}

// exits checks that a command exited with the status args[0].
func exits(ts *testscript.TestScript, args []string, err error) {
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("hone %s: exit status %d, want %s\n%s%s", strings.Join(args[1:], " "), got, args[0],
			ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// trustSettings sets HONE_TRUST to the digest that hone trust prints.
func trustSettings(ts *testscript.TestScript, neg bool, args []string) {
	_ = ts.Exec("hone", append([]string{"trust"}, args...)...) // fails, because they are not trusted yet
	digest := regexp.MustCompile(`(?m)^digest +([0-9a-f]{64})$`).FindStringSubmatch(ts.ReadFile("stdout"))
	if digest == nil {
		ts.Fatalf("no digest:\n%s%s", ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
	ts.Setenv("HONE_TRUST", "1,"+digest[1])
}

func count(ts *testscript.TestScript, neg bool, args []string) {
	got := len(regexp.MustCompile(args[1]).FindAllString(ts.ReadFile(args[2]), -1))
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("%d matches of %q in %s:\n%s", got, args[1], args[2], ts.ReadFile(args[2]))
	}
}

func capture(ts *testscript.TestScript, neg bool, args []string) {
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("no match of %q in:\n%s", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], m[1])
}

func tomls(ts *testscript.TestScript, neg bool, args []string) {
	n := 0
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".toml" {
			return err
		}
		n++
		b, err := os.ReadFile(path)
		var doc map[string]any
		if err == nil {
			err = toml.Unmarshal(b, &doc)
		}
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", path, err, b)
		}
		return nil
	}))
	if n == 0 {
		ts.Fatalf("%s holds no .toml file", args[0])
	}
}

func untilZero(ts *testscript.TestScript, neg bool, args []string) {
	if !waittest.Until(func() bool { return ts.Exec(args[0], args[1:]...) == nil }) {
		ts.Fatalf("%s never exited 0", strings.Join(args, " "))
	}
}
