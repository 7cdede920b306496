package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hone/sandbox"
)

// builtReply is a scripted reply; builtCall is a tool call of one.
type (
	builtReply struct {
		Text  string
		Calls []builtCall
	}
	builtCall struct {
		Name string
		Args map[string]string
	}
)

// TestPhaseTemplates: what init phase writes is complete. Behind walls its hooks
// first report that nothing is built yet. Then they pass, start and stop a
// service that meets its specification (ruling A12).
func TestPhaseTemplates(t *testing.T) {
	skipRace(t)
	t.Parallel()
	for template, program := range map[string]string{"go": "go", "node": "npm", "python": "python3"} {
		t.Run(template, func(t *testing.T) {
			t.Parallel()
			requireSandbox(t, program, "curl", "bash", "git")
			dir := newStarter(t, template)
			var env []string
			if template == "go" {
				env = sharedCache(t, dir)
			}
			// Without a program there is nothing to verify, and the log says so.
			nothing := scriptModel(t, writeReply(t, "run", "testdata/initphase/run"), builtReply{Text: "written"}, builtReply{Text: "nothing to do"})
			exit, out := honeIn(t, dir, env, "phase", "1", "-m", nothing, "--rounds", "1")
			if log := readIfExists(t, dir, "tests/results/lint.log"); exit != 1 || !strings.Contains(log, "yet") || !strings.Contains(out, strings.TrimSpace(log)) {
				t.Fatalf("exit status %d, lint.log %q\n%s", exit, log, out)
			}
			checkPhasePasses(t, dir, env, template)
		})
	}
}

// checkPhasePasses checks that a phase passes in one round with the program in
// testdata.
func checkPhasePasses(t *testing.T, dir string, env []string, template string) {
	t.Helper()
	replies := []builtReply{{Text: "the suite stands"}, {}, {Text: "built"}}
	for _, f := range starterFiles(t, "testdata/initphase/"+template) {
		replies[1].Calls = append(replies[1].Calls, writeReply(t, filepath.Base(f), f).Calls...)
	}
	replies = append(replies, runReply("./run"), builtReply{Text: "all hold"})
	exit, out := honeIn(t, dir, env, "phase", "1", "-m", scriptModel(t, replies...), "--rounds", "1")
	if exit != 0 || !strings.Contains(out, "✓ Phase 1 passed") {
		t.Fatalf("exit status %d\n%s\nlint.log: %s\ndev.log: %s\nfailed_specs.md: %s", exit, out,
			readIfExists(t, dir, "tests/results/lint.log"), readIfExists(t, dir, "tests/results/dev.log"), readIfExists(t, dir, "tests/failed_specs.md"))
	}
	if left := readIfExists(t, dir, "tests/results/dev.pid"); left != "" {
		t.Errorf("stop_dev has left dev.pid: %s", left)
	}
	commits, err := exec.Command("git", "-C", filepath.Join(dir, "src"), "log", "--format=", "--name-only").Output()
	if names := string(commits); err != nil || strings.Contains(names, "pyc") || strings.Contains(names, "server\n") {
		t.Errorf("%v; what was built is committed: %s", err, names)
	}
}

// TestHealthChecks: lint.log names each problem in the code, with its file.
func TestHealthChecks(t *testing.T) {
	skipRace(t)
	t.Parallel()
	for _, c := range []struct {
		template, program string
		files             map[string]string
		want              []string
	}{
		{"go", "go", map[string]string{"go.mod": "module x\n", "x.go": "package main\nfunc main( ) { x() }\n"}, []string{"+func main() { x() }", "undefined: x"}},
		{"go", "go", map[string]string{"go.mod": "module x\n", "x.go": "package main\n\nfunc main() {\n"}, []string{"x.go:3:15"}},
		{"go", "go", map[string]string{"go.mod": "module x\n"}, []string{"no packages"}},
		{"node", "node", map[string]string{"package.json": `{`}, []string{"JSON"}},
		{"node", "node", map[string]string{"package.json": `{"scripts": {"start": "node x.js"}}`}, []string{"no script 'dev'"}},
		{"node", "node", map[string]string{"package.json": `{"scripts": {"dev": "node x.js"}}`, "lib/a b.mjs": "let = 1 2;\n", "node_modules/y.js": "(("},
			[]string{"lib/a b.mjs:1"}},
		{"node", "npm", map[string]string{"package.json": `{"scripts": {"dev": "node x.js", "lint": "echo x.js is ugly; exit 3"}}`, "node_modules/y.js": "(("},
			[]string{"x.js is ugly"}},
		{"python", "python3", map[string]string{"main.py": "x = 1\n", "lib/y.py": "def\n"}, []string{"lib/y.py"}},
	} {
		t.Run(c.template, func(t *testing.T) {
			t.Parallel()
			requirePrograms(t, c.program, "bash")
			dir := newStarter(t, c.template)
			for name, text := range c.files {
				at := filepath.Join(dir, "src", filepath.FromSlash(name))
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			check := exec.Command("bash", "abl.config.sh", "health_check")
			check.Dir = dir
			if out, err := check.CombinedOutput(); err == nil || len(out) > 0 {
				t.Errorf("it passes, or prints beside its log: %v\n%s", err, out)
			}
			log := readIfExists(t, dir, "tests/results/lint.log")
			for _, want := range c.want {
				if !strings.Contains(log, want) {
					t.Errorf("the log does not say %q:\n%s", want, log)
				}
			}
			if strings.Contains(log, "y.js") {
				t.Errorf("what is in node_modules is checked:\n%s", log)
			}
		})
	}
}

// TestMakePhase: make phase PHASE=N BUILDER_MODEL=… VERIFIER_MODEL=… runs hone,
// and the second phase knows the first (ruling A12).
func TestMakePhase(t *testing.T) {
	skipRace(t)
	t.Parallel()
	requireSandbox(t, "python3", "make", "curl", "bash", "git")
	dir := newStarter(t, "python")
	spec := "## Phase 2: Count\n\nPeople watch the service.\n\n### Contracts\nSUPERSEDES: GET /health → 200 {status: \"ok\"}\nGET /health → 200 {status: \"ok\", notes: 0}\n"
	if err := os.WriteFile(dir+"/specs/phase2.md", []byte(spec), 0o644); err != nil {
		t.Fatal(err)
	}
	one := scriptModel(t,
		writeReply(t, "run", "testdata/initphase/run"), builtReply{Text: "written"},
		writeReply(t, "main.py", "testdata/initphase/python/main.py"), builtReply{Text: "built"},
		runReply("./run"), builtReply{Text: "all hold"})
	runMake(t, dir, "✓ Phase 1 passed", "phase", "PHASE=1", "BUILDER_MODEL="+one, "VERIFIER_MODEL="+one)
	two := scriptModel(t,
		runReply(`sed -i 's/"ok"\*}/"ok","notes":0}/; s/{status: "ok"}/{status: "ok", notes: 0}/' run`), builtReply{Text: "refined"},
		runReply(`sed -i 's/{"status": "ok"}/{"status": "ok", "notes": len(notes)}/' main.py`), builtReply{Text: "built"},
		runReply("./run"), builtReply{Text: "all hold"})
	runMake(t, dir, "✓ Phase 2 passed", "phase", "PHASE=2", "BUILDER_MODEL="+two, "VERIFIER_MODEL="+two, "HONE_FLAGS=-v")
	runMake(t, dir, "already passed by these specifications: phase 1, 2", "phase", "PHASE=all")
	runMake(t, dir, "[superseded by specs/phase2.md:7]", "list", "PHASE=2")
	runMake(t, dir, "===== specs/phase2.md: the current phase =====", "prompt", "PHASE=2", "ROLE=verifier")
	runMake(t, dir, "make phase PHASE=3 VERIFIER_MODEL=gemini-2.5-pro")
}

// runMake runs make, which must succeed and print want.
func runMake(t *testing.T, dir, want string, args ...string) {
	t.Helper()
	c := exec.Command("make", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), promptExit)
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// requireSandbox skips a test if a program or the walls are missing.
func requireSandbox(t *testing.T, programs ...string) {
	t.Helper()
	requirePrograms(t, programs...)
	if !wallWorks(t, sandbox.Hidden) {
		t.Skip("SKIPPED: there is no hidden wall here")
	}
}

// requirePrograms skips a test if a program is missing.
func requirePrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("SKIPPED: ", err)
		}
	}
}

// newStarter returns a new directory with the files that init phase writes. The
// specification is edited, because phase refuses it otherwise.
func newStarter(t *testing.T, template string) string {
	t.Helper()
	dir := t.TempDir()
	if exit, out := honeIn(t, dir, nil, "init", "phase", "--template", template); exit != 0 {
		t.Fatalf("exit status %d\n%s", exit, out)
	}
	spec := filepath.Join(dir, "specs", "phase1.md")
	text := readIfExists(t, dir, "specs/phase1.md")
	if err := os.WriteFile(spec, []byte(strings.Replace(text, "An example.", "My notes.", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sharedCache lets a project's hooks use the build cache of these tests, so that
// they need not compile the standard library. It returns the variable that names
// the cache.
func sharedCache(t *testing.T, dir string) []string {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	at := strings.TrimSpace(string(cache))
	config := fmt.Sprintf("[sandbox]\nwrite = [%q]\nenv = [\"GOCACHE\"]\n", at)
	if err := errors.Join(os.Mkdir(dir+"/.config", 0o755), os.WriteFile(dir+"/.config/hone.toml", []byte(config), 0o644)); err != nil {
		t.Fatal(err)
	}
	trustAll(t, dir)
	return []string{"GOCACHE=" + at}
}

// scriptModel writes replies to a file, and returns the model that gives them.
func scriptModel(t *testing.T, replies ...builtReply) string {
	t.Helper()
	var text strings.Builder
	for _, r := range replies {
		text.WriteString("=== reply ===\n" + r.Text + "\n")
		for _, c := range r.Calls {
			args, err := json.Marshal(c.Args)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "=== call %s ===\n%s\n", c.Name, args)
		}
	}
	f, err := os.CreateTemp(t.TempDir(), "replies")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text.String()); err != nil {
		t.Fatal(err)
	}
	return "script/" + f.Name()
}

func writeReply(t *testing.T, name, from string) builtReply {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	return builtReply{Calls: []builtCall{{"write", map[string]string{"path": name, "content": string(text)}}}}
}

func runReply(command string) builtReply {
	return builtReply{Calls: []builtCall{{"bash", map[string]string{"command": command}}}}
}

func starterFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*")
	if err != nil || files == nil {
		t.Fatal(dir, " holds nothing: ", err)
	}
	return files
}

// readIfExists returns the contents of a file; empty if it does not exist.
func readIfExists(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}
