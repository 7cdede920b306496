package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/model"
	"hone/model/modeltest"
)

// TestPhaseOverAWire: a web service in Go is built and tested over Gemini's
// protocol in three rounds: it is not formatted, a contract fails, all contracts
// hold. Neither role is sent what belongs to the other.
func TestPhaseOverAWire(t *testing.T) {
	skipRace(t)
	if testing.Short() {
		t.Skip("SKIPPED: this builds a program four times")
	}
	needsPhase(t)
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	t.Parallel()
	turns := phaseReplies(t)
	s := modeltest.NewServer(t, turns...)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/notes")); err != nil {
		t.Fatal(err)
	}
	cache := shareGoCache(t, dir)
	exit, out := honeIn(t, dir, []string{"GOCACHE=" + cache, "GOOGLE_GEMINI_BASE_URL=" + s.URL, "GIT_CONFIG_GLOBAL=" + os.DevNull}, "phase", "1")
	if exit != 0 {
		t.Fatalf("exit status %d\n%s", exit, out)
	}
	for _, want := range []string{"builder gemini/gemini-2.5-pro and verifier gemini/gemini-2.5-flash", "done: phase 1 passed (3 rounds", "✓ Phase 1 passed by the verifier's report alone\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	received := s.Received()
	if len(received) != len(turns) {
		t.Fatalf("%d requests, want %d\n%s", len(received), len(turns), out)
	}
	builds, tests := 0, 0
	for i, r := range received {
		builder, secrets := bytes.Contains(r.Body, []byte("# Role: builder")), []string{"type store struct", "main.go", "test-key-gemini", "abl.config.sh"}
		if builder {
			secrets = []string{"curl -s", "suite.sh", "test-key-gemini", "abl.config.sh"}
			builds++
		} else {
			tests++
		}
		wire := "/v1beta/models/gemini-2.5-flash:streamGenerateContent"
		if builder {
			wire = "/v1beta/models/gemini-2.5-pro:streamGenerateContent"
		}
		if r.Path != wire {
			t.Errorf("request %d went to %s", i+1, r.Path)
		}
		for _, secret := range secrets {
			if bytes.Contains(r.Body, []byte(secret)) {
				t.Errorf("request %d (of the builder: %t) holds %q", i+1, builder, secret)
			}
		}
	}
	if builds != 6 || tests != 6 {
		t.Errorf("%d requests of the builder and %d of the verifier", builds, tests)
	}
	// Failures went to the builder, and the output of commands to the role that ran them.
	checkOrder(t, received[4].Body, "lint.log", "not formatted: main.go")
	checkOrder(t, received[7].Body, "SPEC: GET /notes/{unknown id}", "OBSERVED: 500")
	checkOrder(t, received[8].Body, "the contracts that failed", "SPEC: GET /notes/{unknown id}", "OBSERVED: 500")
	checkOrder(t, received[10].Body, "the contracts that failed", "it answers at http://localhost:3000")
	for repo, want := range map[string][]string{
		"src": {"build/step-1/pre-deterministic", "build/step-2/pre-deterministic", "build/step-2/post-deterministic",
			"build/step-3/pre-deterministic", "build/step-3/post-deterministic", "passed"},
		"tests": {"verify/suite-written", "verify/step-2/results", "verify/step-3/results", "passed"},
	} {
		log, err := exec.Command("git", "-C", filepath.Join(dir, repo), "log", "--reverse", "--format=%s").CombinedOutput()
		if diff := cmp.Diff("phase1/"+strings.Join(want, "\nphase1/")+"\n", string(log)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", repo, err, diff)
		}
	}
}

// shareGoCache lets commands in a project use the machine's build cache, because
// an empty one takes most of a minute to fill.
func shareGoCache(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache := strings.TrimSpace(string(out))
	if err := os.Mkdir(filepath.Join(dir, ".config"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("[sandbox]\nwrite = [%q]\nenv = [\"GOCACHE\"]\n", cache)
	if err := os.WriteFile(filepath.Join(dir, ".config", "hone.toml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	trustAll(t, dir)
	return cache
}

// phaseReplies returns the replies of both roles.
func phaseReplies(t *testing.T) []modeltest.Turn {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "notes", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	n := 0
	call := func(name string, args map[string]string) model.Call {
		n++
		b, _ := json.Marshal(args)
		return model.Call{ID: fmt.Sprintf("call_%d", n), Name: name, Args: string(b)}
	}
	write := func(path, content string) model.Call {
		return call("write", map[string]string{"path": path, "content": content})
	}
	bash := func(line string) model.Call { return call("bash", map[string]string{"command": line}) }
	service := read("main.go.txt")
	faulty := strings.Replace(service, "http.StatusNotFound", "http.StatusInternalServerError", 1)
	var turns []modeltest.Turn
	session := func(say string, calls ...model.Call) {
		use := &model.Usage{Input: 100, Output: 10}
		turns = append(turns, modeltest.Turn{Usage: use, Calls: calls}, modeltest.Turn{Usage: use, Text: say})
	}
	test := func() model.Call { return bash("bash suite.sh; cat failed_specs.md") }
	session("The suite is written.", write("suite.sh", read("suite.sh.txt")))
	session("It is built.", write("go.mod", "module notes\n\ngo 1.22\n"), write("main.go", strings.Replace(faulty, "\tnotes []string", "  notes []string", 1)))
	session("It is formatted.", bash("gofmt -w main.go"))
	session("One contract fails.", test())
	session("It is mended.", call("read", map[string]string{"path": "main.go"}), write("main.go", service))
	session("All hold.", test())
	return turns
}
