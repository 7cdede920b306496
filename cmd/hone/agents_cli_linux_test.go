package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"hone"
	"hone/cmd/hone/failure"
	"hone/history"
	"hone/internal/crashtest/waittest"
	"hone/model"
	"hone/model/modeltest"
	"hone/sandbox"
)

// cli is a real command-line agent, and how a model calls its tools.
type cli struct {
	name  string // of its section in docs/agents.md, and of its program
	model string
	run   func(command string) model.Call
	write func(path, text string) model.Call
}

func geminiCLI() cli {
	return cli{"gemini", "gemini-2.5-pro",
		func(command string) model.Call { return toolCall("run_shell_command", "command", command) },
		func(path, text string) model.Call { return toolCall("write_file", "file_path", path, "content", text) }}
}

// otherCLIs returns the agents that are tested only if they are installed.
func otherCLIs() []cli {
	codex := func(command string) model.Call { return toolCall("exec_command", "cmd", command) }
	return []cli{
		{"codex", "gpt-5.3-codex", codex,
			func(path, text string) model.Call { return codex("cat > '" + path + "' <<'END'\n" + text + "END\n") }},
		{"claude", "claude-sonnet-4-5",
			func(command string) model.Call { return toolCall("Bash", "command", command, "description", "run") },
			func(path, text string) model.Call { return toolCall("Write", "file_path", path, "content", text) }},
		{"opencode", "claude-sonnet-4-5",
			func(command string) model.Call { return toolCall("bash", "command", command, "description", "run") },
			func(path, text string) model.Call { return toolCall("write", "filePath", path, "content", text) }},
		{"qwen", "qwen3-coder-plus",
			func(command string) model.Call {
				return model.Call{ID: "call_1", Name: "run_shell_command", Args: fmt.Sprintf(`{"command": %q, "is_background": false}`, command)}
			},
			func(path, text string) model.Call { return toolCall("write_file", "file_path", path, "content", text) }},
	}
}

// toolCall returns a call with string arguments: name, value, name, value.
func toolCall(name string, args ...string) model.Call {
	values := map[string]string{}
	for i := 0; i < len(args); i += 2 {
		values[args[i]] = args[i+1]
	}
	text, _ := json.Marshal(values)
	return model.Call{ID: "call_" + name, Name: name, Args: string(text)}
}

// TestGeminiCLI runs every session of hone phase with the Gemini CLI, in both
// roles, configured only by its section of docs/agents.md. The CLI must be on
// PATH, or where .ci/needs installs it, or below HONE_TEST_AGENTS.
func TestGeminiCLI(t *testing.T) {
	skipRace(t)
	t.Parallel()
	cache, _ := os.UserCacheDir()
	installed, _ := filepath.Glob(filepath.Join(cache, "hone-agents", "gemini-cli-*"))
	c := geminiCLI()
	c.try(t, c.program(t, append(installed, filepath.SplitList(os.Getenv("PATH"))...)))
}

// TestOtherCLIs is TestGeminiCLI for other agents. HONE_TEST_AGENTS lists the
// directories that they are installed in, as PATH does.
func TestOtherCLIs(t *testing.T) {
	for _, c := range otherCLIs() {
		t.Run(c.name, func(t *testing.T) { c.try(t, c.program(t, nil)) })
	}
}

// TestRefusedAgentThatSaysItIsDone: if the budget refuses a call of an agent,
// the run ends, even if the agent exits with status 0 and an answer.
func TestRefusedAgentThatSaysItIsDone(t *testing.T) {
	skipShort(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	s := newSeat(t, cli{name: "polite", model: "m", run: geminiCLI().run, write: geminiCLI().write}, t.TempDir(), "hidden")
	section := `[commands.polite]
argv = ["sh", "-c", "cat > /dev/null; curl -s -d '{}' -H 'Content-Type: application/json' $BASE/v1beta/models/{model}:generateContent; echo done"]
wire = "gemini"
base-url-env = "BASE"
`
	if err := os.WriteFile(filepath.Join(s.dir, ".config", "hone.toml"), []byte(section), 0o644); err != nil {
		t.Fatal(err)
	}
	trustAll(t, s.dir)
	s.testRefusal(t, []string{"phase", "1", "--sandbox", "hidden", "-m", "command/polite/m", "--max-tokens", "500"})
}

// program returns the directory of an agent's program.
func (c cli) program(t *testing.T, folders []string) string {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	for _, dir := range append(filepath.SplitList(os.Getenv("HONE_TEST_AGENTS")), folders...) {
		for _, at := range []string{dir, filepath.Join(dir, "node_modules", ".bin")} {
			if _, err := exec.LookPath(filepath.Join(at, c.name)); err == nil && filepath.IsAbs(at) {
				return at
			}
		}
	}
	t.Skipf("SKIPPED: there is no %s; npm install it into a folder, and name that in HONE_TEST_AGENTS", c.name)
	return ""
}

// try runs the agent in both roles behind one wall, and as the builder behind
// the other.
func (c cli) try(t *testing.T, dir string) {
	model := "command/" + c.name + "/" + c.model
	t.Run("hidden", func(t *testing.T) {
		t.Parallel()
		s := newSeat(t, c, dir, "hidden")
		args := []string{"phase", "1", "--sandbox", "hidden", "-m", model}
		s.testRefusal(t, append(args, "--max-tokens", "9000"))
		s.testKill(t, args)
		s.testPass(t, "resume", "last")
		s.checkSessions(t, "suite", "suite done", "look", "build", "build done", "test", "test done")
		s.checkBoundary(t)
		s.checkLedger(t, "verifier", "builder")
	})
	t.Run("bwrap", func(t *testing.T) {
		t.Parallel()
		s := newSeat(t, c, dir, "bwrap")
		s.testPass(t, "phase", "1", "--sandbox", "bwrap", "--builder-model", model, "--verifier-model", "script/"+s.verifierReplies(t))
		s.checkSessions(t, "look", "build", "build done")
		s.checkBoundary(t)
		s.checkLedger(t, "builder")
	})
}

// verifierReplies returns a file with the replies of a verifier that is not the
// agent.
func (s *cliSeat) verifierReplies(t *testing.T) string {
	t.Helper()
	args, err := json.Marshal(map[string]string{"path": "suite.js", "content": suiteSource})
	file := filepath.Join(t.TempDir(), "replies")
	text := "=== reply ===\n=== call write ===\n" + string(args) + "\n=== reply ===\nThe suite is written.\n=== reply ===\nthe builder's\n" +
		"=== reply ===\n=== call bash ===\n{\"command\": \"node suite.js\"}\n=== reply ===\nAll contracts hold.\n"
	if err = errors.Join(err, os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return file
}

// cliSeat is a project whose roles are filled by an agent, with the provider
// that the agent calls.
type cliSeat struct {
	cli
	dir, cache string
	env        []string
	url        string
	replies    map[string]*modeltest.Server // by step

	mu     sync.Mutex
	wrong  []string // what is wrong with the requests
	steps  map[string]bool
	called int
}

// The agent must not have realKey, and must not see the canaries.
const (
	realKey        = "canary-the-real-key"
	makefileCanary = "canary-of-the-makefile"
	suiteCanary    = "canary-of-the-suite"
)

// callTokens is the usage of each model call.
const callTokens = 4010

func newSeat(t *testing.T, c cli, program string, wall sandbox.Wall) *cliSeat {
	if !wallWorks(t, wall) {
		t.Skip("SKIPPED: the wall cannot be had")
	}
	s := &cliSeat{cli: c, dir: t.TempDir(), cache: t.TempDir(), replies: map[string]*modeltest.Server{}, steps: map[string]bool{}}
	for name, text := range map[string]string{
		"Makefile": "# " + makefileCanary + "\n", "project.md": "A service in Node.\n",
		"specs/phase1.md": "## Phase 1\n\n### Contracts\nGET /health → 200\n", ".config/hone.toml": documentedSections(t),
		"abl.config.sh": `case "$1" in
start_dev) (cd src && exec node server.js) > tests/results/dev.log 2>&1 & ;;
health_check) cd src && node --check server.js ;;
esac
`,
	} {
		at := filepath.Join(s.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	trustAll(t, s.dir)
	provider := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(provider.Close)
	s.url = provider.URL
	for step, turn := range s.script() {
		turn.Usage = &model.Usage{Input: callTokens - 10, Output: 10}
		s.replies[step] = modeltest.NewServer(t, turn)
	}
	s.env = append(os.Environ(), "PATH="+program+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+s.cache, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GOOGLE_GEMINI_BASE_URL="+s.url, "ANTHROPIC_BASE_URL="+s.url, "OPENAI_BASE_URL="+s.url+"/v1",
		"GEMINI_API_KEY="+realKey, "ANTHROPIC_API_KEY="+realKey, "OPENAI_API_KEY="+realKey, promptExit)
	return s
}

// documentedSections returns the configuration sections of docs/agents.md.
func documentedSections(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	var sections strings.Builder
	for _, block := range regexp.MustCompile("(?s)```toml\n(\\[commands.*?)```").FindAllSubmatch(page, -1) {
		sections.Write(block[1])
	}
	return sections.String()
}

// hone runs the program in the project; see killer for the point.
func (s *cliSeat) hone(t *testing.T, point string, args ...string) (exit int, output string) {
	t.Helper()
	command := exec.Command("hone", args...)
	command.Dir, command.Env = s.dir, append(s.env, "HONE_TEST_KILL="+point)
	out, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(out)
}

// serve replies by the content of a request and not by its number, because
// agents also ask for titles and the like, and a session may be started again.
func (s *cliSeat) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	step := s.step(body)
	s.inspect(step, r, body)
	s.replies[step].ServeHTTP(w, r)
}

// script returns the replies by step.
func (s *cliSeat) script() map[string]modeltest.Turn {
	calls := func(c model.Call) modeltest.Turn { return modeltest.Turn{Calls: []model.Call{c}} }
	return map[string]modeltest.Turn{
		"beside":     {Text: "a title"},
		"suite":      calls(s.write(filepath.Join(s.dir, "tests", "suite.js"), suiteSource)),
		"suite done": {Text: "The suite is written."},
		"look":       calls(s.run(s.probe())),
		"build":      calls(s.write(filepath.Join(s.dir, "src", "server.js"), serverSource)),
		"build done": {Text: "The service is built."},
		"test":       calls(s.run("node suite.js")),
		"test done":  {Text: "All contracts hold."},
	}
}

// The files that the roles write.
const (
	suiteSource = `// ` + suiteCanary + `
const fs = require("fs");
fs.rmSync("failed_specs.md", {force: true});
fetch(process.env.DEV_URL + "/health").then(r => r.status, e => "no answer: " + e).then(status => {
  if (status !== 200) fs.writeFileSync("failed_specs.md", "SPEC: GET /health → 200\nINPUT: GET /health\nOBSERVED: " + status + "\n");
  console.log(["the suite", "ran"].join(" "));
});
`
	serverSource = `// source of the server
require("http").createServer((request, response) => { response.writeHead(request.url === "/health" ? 200 : 404); response.end("{}"); }).listen(3000, "127.0.0.1");
`
)

// probe returns a command that looks for what no role may have, and for a way
// out.
func (s *cliSeat) probe() string {
	return `{ env; ls -la ..; cat ../Makefile ../tests/suite.js; cat ../specs/phase1.md; tr '\0' '\n' < /proc/1/environ; tr '\0' '\n' < /proc/$PPID/environ; ` +
		`bash -c 'exec 3<>/dev/tcp/` + strings.Replace(strings.TrimPrefix(s.url, "http://"), ":", "/", 1) + ` && echo got out'; } > probe.txt 2>&1; printf 'looked %s\n' around`
}

// step returns the step of a session, from the content of its request.
func (s *cliSeat) step(body []byte) string {
	var request struct{ Tools []any }
	has := func(text string) bool { return bytes.Contains(body, []byte(text)) }
	switch {
	case json.Unmarshal(body, &request) != nil || len(request.Tools) == 0:
		return "beside"
	case has("Write the initial test suite"):
		return choose(has(suiteCanary), "suite done", "suite")
	case has("Run the test suite"):
		return choose(has("the suite ran"), "test done", "test")
	case has("source of the server"):
		return "build done"
	}
	return choose(has("looked around"), "build", "look")
}

func choose(cond bool, yes, no string) string {
	if cond {
		return yes
	}
	return no
}

// inspect checks a request and counts it.
func (s *cliSeat) inspect(step string, r *http.Request, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps[step] = true
	s.called++
	if h := r.Header; !strings.Contains(h.Get("x-goog-api-key")+h.Get("x-api-key")+h.Get("Authorization"), realKey) {
		s.wrong = append(s.wrong, r.URL.Path+" has not the key")
	}
	if bytes.Contains(body, []byte(realKey)) || bytes.Contains(body, []byte(makefileCanary)) {
		s.wrong = append(s.wrong, r.URL.Path+" holds what an agent must not know")
	}
}

// testPass checks that the phase passes.
func (s *cliSeat) testPass(t *testing.T, args ...string) {
	t.Helper()
	if exit, out := s.hone(t, "", args...); exit != 0 || !strings.Contains(out, "phase 1 passed") {
		t.Fatalf("exit status %d\n%s", exit, out)
	}
}

// testRefusal checks that a call above the budget is not forwarded, and ends the
// run.
func (s *cliSeat) testRefusal(t *testing.T, args []string) {
	exit, out := s.hone(t, "", args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if exit != failure.ExitStatus(hone.KindBudget) || !strings.Contains(out, " of the limit of ") || s.called != 0 {
		t.Fatalf("exit status %d after %d calls\n%s", exit, s.called, out)
	}
}

// testKill checks that no process of an agent survives when hone is killed in
// the agent's session.
func (s *cliSeat) testKill(t *testing.T, args []string) {
	if exit, out := s.hone(t, "reserve", args...); exit != -1 {
		t.Fatalf("it was not killed: exit status %d\n%s", exit, out)
	}
	var left []string
	ended := func() bool { left = processesIn(s.dir); return len(left) == 0 }
	if !waittest.Until(ended) {
		t.Errorf("these are left: %s", strings.Join(left, "; "))
	}
}

// processesIn returns the processes whose working directory is in dir.
func processesIn(dir string) []string {
	var found []string
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		if at, err := os.Readlink(p + "/cwd"); err == nil && strings.HasPrefix(at, dir+"/") {
			line, _ := os.ReadFile(p + "/cmdline")
			found = append(found, p+" "+strings.ReplaceAll(string(line[:min(len(line), 200)]), "\x00", " "))
		}
	}
	return found
}

// checkSessions checks that the agent did every step with its own tools.
func (s *cliSeat) checkSessions(t *testing.T, steps ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range steps {
		if !s.steps[step] {
			t.Errorf("no request for the step %q", step)
		}
	}
	for _, wrong := range s.wrong {
		t.Error(wrong)
	}
	for name, want := range map[string]string{"src/server.js": serverSource, "tests/suite.js": suiteSource} {
		if got, err := os.ReadFile(filepath.Join(s.dir, name)); string(got) != want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

// checkBoundary checks that the agent had a dummy key, its own directory, and no
// way out.
func (s *cliSeat) checkBoundary(t *testing.T) {
	t.Helper()
	saw, err := os.ReadFile(filepath.Join(s.dir, "src", "probe.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"KEY=the-key-is-added-outside-of-the-walls-", "../Makefile: No such file", "../tests/suite.js: No such file", "../specs/phase1.md: No such file", "Connection refused"} {
		if !bytes.Contains(saw, []byte(want)) {
			t.Errorf("the builder did not see %q:\n%s", want, saw)
		}
	}
	for _, secret := range []string{realKey, makefileCanary, suiteCanary, "got out"} {
		if bytes.Contains(saw, []byte(secret)) {
			t.Errorf("the builder saw %q:\n%s", secret, saw)
		}
	}
}

// checkLedger checks that every call of the agent is reserved, and charged by the
// usage that the provider reports, under the name of the model.
func (s *cliSeat) checkLedger(t *testing.T, roles ...string) {
	t.Helper()
	events := lastEvents(t, s.dir)
	reserved, charged := map[string]int{}, 0
	for _, e := range events {
		var reserve history.Reserve
		var commit history.Commit
		if e.Type == "reserve" && e.Decode(&reserve) == nil && strings.HasSuffix(reserve.Model, "/"+s.model) && !strings.HasPrefix(reserve.Model, "command/") {
			reserved[reserve.Role]++
		}
		if e.Type == "commit" && e.Decode(&commit) == nil && commit.Basis == "provider" && commit.Tokens == callTokens {
			charged++
		}
	}
	least := 0
	for _, role := range roles {
		least += 2
		if reserved[role] < 2 {
			t.Errorf("%d calls of the %s are reserved", reserved[role], role)
		}
	}
	if charged < least {
		t.Errorf("%d calls are charged by the usage that the provider reported, at least %d were made", charged, least)
	}
}
