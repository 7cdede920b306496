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
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/internal/crashtest"
	"hone/internal/crashtest/waittest"
	"hone/model"
	"hone/model/modeltest"
	"hone/sandbox"
)

// TestKillPhase kills the real process, as kill -9 does, before or after some
// events of a phase of two rounds, with a failing contract and a pass, and
// resumes it, with a suite and without. With HONE_TEST_ALL set it does
// so before and after each event. The files in src/ and tests/ and the commits must be
// those of a run that was not killed, at most one more request is sent, and no process
// survives its run.
func TestKillPhase(t *testing.T) {
	skipRace(t)
	needsPhase(t)
	t.Parallel()
	for suite, questions := range map[bool]int64{true: 8, false: 9} {
		t.Run(fmt.Sprintf("suite=%v", suite), func(t *testing.T) {
			t.Parallel()
			testKillPhase(t, suite, questions)
		})
	}
}

func testKillPhase(t *testing.T, suite bool, questions int64) {
	fresh := func() phaseProject {
		return newPhaseProject(t, sandbox.Hidden, suite)
	}
	whole := fresh()
	if exit, out := whole.hone(t, "", whole.args...); exit != 0 {
		t.Fatalf("exit status %d\n%s", exit, out)
	}
	want, asked, points := whole.outcome(t), whole.asked.Load(), 2*whole.events(t)
	if asked != questions || strings.Count(want["log of tests"], "\n") != 4 || strings.Count(want["log of src"], "\n") != 5 {
		t.Fatalf("the run is not the one that is meant: %d questions, %v", asked, want)
	}
	for n := range points {
		// Each takes two processes; the loop's crash tests need none. An odd
		// distance alternates between points before and after an event.
		if n%101 != 4 && !crashtest.All() {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			b := fresh()
			if exit, out := b.hone(t, fmt.Sprint(n), b.args...); exit != -1 {
				t.Fatalf("it was not killed: exit status %d\n%s", exit, out)
			}
			b.waitForNoProcesses(t)
			again := []string{"resume", "last"}
			if n < 2 { // nothing is recorded
				again = b.args
			}
			if exit, out := b.hone(t, "", again...); exit != 0 {
				t.Fatalf("%s: exit status %d\n%s", again[0], exit, out)
			}
			if diff := cmp.Diff(want, b.outcome(t)); diff != "" {
				t.Errorf("it came to something else (-want +got):\n%s", diff)
			}
			if got := b.asked.Load(); got > asked+1 {
				t.Errorf("%d questions were put, where %d are enough", got, asked)
			}
			b.waitForNoProcesses(t)
		})
	}
}

// TestKillServer: the project's server is up while the verifier works. If hone
// is killed or interrupted then, the server and its children are stopped, behind
// every wall and without walls (ruling A9).
func TestKillServer(t *testing.T) {
	skipRace(t)
	needsPhase(t)
	t.Parallel()
	for _, wall := range []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Firejail, sandbox.NoWall} {
		for _, end := range []os.Signal{os.Kill, os.Interrupt} {
			t.Run(fmt.Sprintf("%s/%s", wall, end), func(t *testing.T) {
				if wall != sandbox.NoWall && !wallWorks(t, wall) {
					t.Skip("SKIPPED: that wall cannot be had")
				}
				t.Parallel()
				b := newPhaseProject(t, wall, false)
				b.hang.Store(true)
				c := b.command("", b.args...)
				var printed bytes.Buffer
				c.Stdout, c.Stderr = &printed, &printed
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				if !waittest.Until(func() bool { return b.hung.Load() }) {
					t.Error("the verifier was not asked within 30 s")
				}
				if len(b.processes(t, b.marker)) == 0 {
					t.Error("the server is not up while the verifier is asked")
				}
				if err := c.Process.Signal(end); err != nil {
					t.Fatal(err)
				}
				_ = c.Wait()
				b.waitForNoProcesses(t)
				if t.Failed() {
					t.Logf("output:\n%s", printed.String())
				}
			})
		}
	}
}

// needsPhase skips a test if the project's service cannot run.
func needsPhase(t *testing.T) {
	t.Helper()
	for _, program := range []string{"git", "curl", "/usr/bin/python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("SKIPPED: ", err)
		}
	}
	if !wallWorks(t, sandbox.Hidden) {
		t.Skip("SKIPPED: there is no wall that hides")
	}
}

// phaseProject is a project with a phase to build, and its own model.
type phaseProject struct {
	dir, cache, url string
	marker          string // in the server's arguments
	args            []string
	suite           bool // the verifier writes tests/run
	asked           *atomic.Int64
	hang, hung      *atomic.Bool // the verifier's first reply never comes; the verifier waits for it
}

// newPhaseProject returns a project. Its server has its own port if the wall
// leaves it on the machine's network.
func newPhaseProject(t *testing.T, wall sandbox.Wall, suite bool) phaseProject {
	t.Helper()
	b := phaseProject{dir: t.TempDir(), cache: t.TempDir(), suite: suite, asked: new(atomic.Int64), hang: new(atomic.Bool), hung: new(atomic.Bool)}
	b.marker = "marker-of-" + filepath.Base(filepath.Dir(b.dir)) + filepath.Base(b.dir)
	if err := errors.Join(copyProject(b.dir), shareProofs(b.cache)); err != nil {
		t.Fatal(err)
	}
	port := "3000"
	if wall == sandbox.Landlock || wall == sandbox.NoWall {
		port = crashtest.FreePort(t)
	}
	hooks := filepath.Join(b.dir, "abl.config.sh")
	text, err := os.ReadFile(hooks)
	if err != nil {
		t.Fatal(err)
	}
	// Its children have their own process groups, and ignore SIGHUP.
	start := "' $port " + b.marker + " "
	changed := strings.NewReplacer("port=3000", "port="+port, "' $port ", start,
		"  start_dev)\n", "  start_dev)\n    setsid nohup sh -c 'sleep 600; true' "+b.marker+" &\n").Replace(string(text))
	if err := os.WriteFile(hooks, []byte(changed), 0o644); err != nil || !strings.Contains(changed, start) {
		t.Fatal(err, "the hooks are not those that are meant")
	}
	b.args = []string{"phase", "1", "-m", "openai/m", "--sandbox", string(wall), "--dev-url", "http://localhost:" + port}
	s := httptest.NewServer(b)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	b.url = s.URL
	t.Cleanup(func() {
		for _, p := range b.processes(t, b.marker) {
			_ = p.Kill()
		}
	})
	return b
}

// ServeHTTP replies by the content of a request and not by its number.
func (b phaseProject) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.asked.Add(1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	answer := b.answer(body)
	if b.hang.Load() && answer.Calls != nil && bytes.Contains(body, []byte("# Role: verifier")) {
		b.hung.Store(true)
		<-r.Context().Done()
		return
	}
	answer.Usage = &model.Usage{Input: 10, Output: 10}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var s modeltest.Server
	s.Script(answer)
	s.ServeHTTP(w, r)
}

// answer returns what a role does next: it runs one command, again if that was
// cut off, and ends.
func (b phaseProject) answer(body []byte) modeltest.Turn {
	var asked struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &asked); err != nil || len(asked.Messages) == 0 {
		return modeltest.Turn{Status: http.StatusBadRequest, Message: fmt.Sprint(err)}
	}
	last := asked.Messages[len(asked.Messages)-1]
	says := func(text string) bool { return bytes.Contains(body, []byte(text)) }
	switch {
	case says("Write the initial test suite") && !b.suite:
		return modeltest.Turn{Text: "The suite stands."}
	case last.Role == "tool" && !bytes.Contains(last.Content, []byte("the command was interrupted")):
		return modeltest.Turn{Text: "That is done."}
	case says("Write the initial test suite"):
		return bash("cat > run <<'END' && chmod +x run\n" + killedSuite + "END")
	case says("Run the test suite."):
		return bash("bash suite.sh /health=200")
	case says("the contracts that failed"):
		return bash("echo /health 200 ok > routes")
	}
	return bash("echo /health 500 down > routes")
}

// killedSuite is a suite of the project's one contract. Its time limit is longer than any
// time for which the night stops all processes, because such a time counts for curl.
const killedSuite = `#!/bin/sh
got=$(curl -s -m 60 -w ' %{http_code}' "$DEV_URL/health")
case $got in "ok"*200) ok= bad=0 ;; *) ok='not ' bad=1 ;; esac
echo 1..1
echo "${ok}ok 1 - GET /health → 200 ok"
echo '# input: GET /health'
echo '# observed:' $got
exit $bad
`

func bash(line string) modeltest.Turn {
	args, _ := json.Marshal(map[string]string{"command": line})
	return modeltest.Turn{Calls: []model.Call{{ID: "call_1", Name: "bash", Args: string(args)}}}
}

// command returns a command that runs hone in the project, and kills it at a
// point unless point is empty.
func (b phaseProject) command(point string, args ...string) *exec.Cmd {
	c := exec.Command("hone", args...)
	c.Dir = b.dir
	c.Env = append(os.Environ(), "HONE_TEST_KILL="+point, "OPENAI_BASE_URL="+b.url+"/v1", "XDG_CACHE_HOME="+b.cache, "XDG_STATE_HOME="+b.cache, "GIT_CONFIG_GLOBAL="+os.DevNull, promptExit)
	return c
}

// hone runs the program. The exit status of a killed program is -1.
func (b phaseProject) hone(t *testing.T, point string, args ...string) (exit int, output string) {
	t.Helper()
	c := b.command(point, args...)
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

// outcome returns what a run leaves for the user: files and commits.
func (b phaseProject) outcome(t *testing.T) map[string]string {
	t.Helper()
	left := map[string]string{}
	for _, name := range []string{"src/routes", "tests/run", "tests/suite.sh", "tests/failed_specs.md", "project_map.txt", "tests/results/lint.log"} {
		if text, err := os.ReadFile(filepath.Join(b.dir, name)); err == nil {
			left[name] = string(text)
		}
	}
	for _, repo := range []string{"src", "tests"} {
		for what, args := range map[string][]string{
			"log of ":     {"log", "--reverse", "--format=%s"},
			"status of ":  {"status", "--porcelain"},
			"files of ":   {"ls-files", "-s"},
			"changes of ": {"log", "--reverse", "-p", "--format=%s"},
		} {
			c := exec.Command("git", append([]string{"-C", filepath.Join(b.dir, repo)}, args...)...)
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("git: %v\n%s", err, out)
			}
			left[what+repo] = string(out)
		}
	}
	return left
}

// events returns the number of events of the run.
func (b phaseProject) events(t *testing.T) int {
	t.Helper()
	return len(lastEvents(t, b.dir))
}

// waitForNoProcesses waits until no process of the run's walls remains. It
// finds the server and its children by their arguments, and the others by their
// HOME.
func (b phaseProject) waitForNoProcesses(t *testing.T) {
	t.Helper()
	var left []*os.Process
	waittest.Until(func() bool {
		left = append(b.processes(t, b.marker), b.processes(t, b.cache)...)
		return len(left) == 0
	})
	for _, p := range left {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid))
		t.Errorf("process %d is left: %q", p.Pid, line)
	}
}

// processes returns the processes with a word in their arguments or their
// environment.
func (b phaseProject) processes(t *testing.T, word string) []*os.Process {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []*os.Process
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		vars, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if bytes.Contains(line, []byte(word)) || bytes.Contains(vars, []byte(word)) {
			p, err := os.FindProcess(pid)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, p)
		}
	}
	return found
}
