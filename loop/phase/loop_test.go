//go:build unix

package phase_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/internal/git"
	"hone/loop/phase"
)

// src and tests are the commit points of a phase that passes in round 3, after
// the health check failed in round 1 and a contract in round 2 (ruling A6).
const (
	srcPoints = "phase2/build/step-1/pre-deterministic phase2/build/step-2/pre-deterministic phase2/build/step-2/post-deterministic " +
		"phase2/build/step-3/pre-deterministic phase2/build/step-3/post-deterministic phase2/passed"
	testsPoints = "phase2/verify/suite-written phase2/verify/step-2/results phase2/verify/step-3/results phase2/passed"
)

// TestPhase is the whole of it, behind every wall that can be had: round 1
// fails the health check, round 2 a contract, round 3 passes.
func TestPhase(t *testing.T) {
	t.Parallel()
	for _, wall := range walls() {
		t.Run(string(wall), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project(t, dir, usual(), map[string]string{"src/deps": "greeting 1.0\n"})
			m := script(suite(), build("LINT"), build("no"), fail(), build("hello"), pass())
			end := process{model: m, wall: wall}.live(t, dir)
			if end.Kind != hone.KindDone || end.Rounds != 3 || end.Why != "phase 2 passed" || end.summary != "✓ Phase 2 passed by the verifier's report alone\n" || len(end.Findings) > 0 {
				t.Fatalf("%+v", end)
			}
			if diff := cmp.Diff(srcPoints, subjects(t, dir, phase.Src)); diff != "" {
				t.Errorf("commits in src (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(testsPoints, subjects(t, dir, phase.Tests)); diff != "" {
				t.Errorf("commits in tests (-want +got):\n%s", diff)
			}
			if got := tracked(t, dir, phase.Src) + "; " + tracked(t, dir, phase.Tests); got != "answer deps; suite.sh" {
				t.Errorf("committed: %s", got)
			}
			holds(t, "the server's log", read(dir, "tests/results/dev.log"), "server: listening")
			if diff := cmp.Diff("GET / → 200 {hello}: 2 failed, 3 passed\nGET /bye → 200 {bye}: 2 passed, 3 passed\n", verdicts(t, dir)); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
			holds(t, "the map", read(dir, phase.MapName), "src/\n├── answer\n└── deps\n", "\n---\ngreeting 1.0\n")
			holds(t, "what the verifier saw", m.asked[len(m.asked)-1].everything(), "200 hello (request 1)", "200 hello (request 2)")
			if up, reached, down := count(t, dir, "server", `"up"`), count(t, dir, "server", `"reached"`), count(t, dir, "server", `"down"`); up != 2 || reached != 4 || down != 2 {
				t.Errorf("the server was up %d times, reached by %d recorded requests, ended %d times", up, reached, down)
			}
			if resets := read(dir, "tests/results/resets"); resets != "reset\nreset\n" {
				t.Errorf("the state was reset: %q", resets)
			}
			gone(t, dir)
		})
	}
}

// TestPrompts holds what each session is sent against a file (rulings A1, A2
// and A8). The last part of each is the instruction.
func TestPrompts(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), map[string]string{"src/deps": "greeting 1.0\n"})
	m := script(suite(), build("no"), fail(), build("LINT"), build("hello"), pass())
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
	var b strings.Builder
	for i, a := range m.first() {
		fmt.Fprintf(&b, "##### session %d, %s #####\n%s\n", i+1, a.role, a.prompt())
	}
	got := address.ReplaceAllString(b.String(), "http://ADDRESS")
	const golden = "testdata/prompts.txt"
	if os.Getenv("HONE_UPDATE") != "" {
		must(0, os.WriteFile(golden, []byte(got), 0o644))
	}
	if diff := cmp.Diff(string(must(os.ReadFile(golden))), got); diff != "" {
		t.Errorf("prompts (-%s +got):\n%s", golden, diff)
	}
}

// address is where a run finds its server.
var address = regexp.MustCompile(`http://[a-z0-9.]+:[0-9]+`)

// soon gives a server little time to answer, but enough for one that does on a slow
// machine.
func soon(l *phase.Loop, _ *hone.Run) { l.Hooks.Up = 10 * time.Second }

// TestBoundaries is the seed's table: nothing of the other role's folder is
// ever in a request, nor anything of the harness's own.
func TestBoundaries(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual().but("map_deps", "cat src/deps; echo known >&2"), map[string]string{
		"src/deps": "greeting 1.0\n", "src/inner/code.go": "CANARY-CODE\n", "tests/results/old.log": "CANARY-RESULTS\n", "tests/helper.sh": "CANARY-HELPER\n",
	})
	m := script(suite(), build("LINT CANARY-LINT"), build("CANARY-ANSWER"), fail(), build("crash"), build("CANARY-ANSWER"), pass())
	if end := (process{model: m, rounds: 4, set: soon}).live(t, dir); end.Kind != hone.KindDone || end.Rounds != 4 {
		t.Fatalf("%+v", end)
	}
	common := []string{"CANARY-CONFIG", "CANARY-MAKEFILE", "CANARY-LATER", "CANARY-ENV", "CANARY-RESULTS", "phase10", "CANARY-BUILDER-ROLE", "CANARY-VERIFIER-ROLE"}
	mine := map[string][]string{
		"builder":  append([]string{"CANARY-TEST", "CANARY-HELPER", "helper.sh", "suite.sh", "one fails"}, common...),
		"verifier": append([]string{"CANARY-CODE", "LINT", "lint.log", "dev.log", "server: listening", "crash"}, common...),
	}
	seen := map[string]int{}
	for _, a := range m.asked {
		seen[a.role]++
		lacks(t, fmt.Sprintf("request %d, the %s's,", seen[a.role], a.role), a.everything(), mine[a.role]...)
	}
	if seen["builder"] < 6 || seen["verifier"] < 6 {
		t.Errorf("%v requests", seen)
	}
}

// TestHealthAttempts: ruling A3. Each attempt is a commit.
func TestHealthAttempts(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(suite(), build("LINT 1"), build("LINT 2"), build("no"), fail(), build("LINT 3"), build("hello"), pass())
	end := process{model: m, rounds: 2, set: func(l *phase.Loop, _ *hone.Run) { l.HealthAttempts = 3 }}.live(t, dir)
	if end.Kind != hone.KindDone || end.Rounds != 2 {
		t.Fatalf("%+v", end)
	}
	const hash, who = "Hone-Run: X\n", "hone <hone@localhost>\n"
	want := "phase2/build/step-1/pre-deterministic\n" + hash + who +
		"phase2/build/step-1/pre-deterministic\n" + hash + "Hone-Attempt: 2\n" + who +
		"phase2/build/step-1/pre-deterministic\n" + hash + "Hone-Attempt: 3\n" + who +
		"phase2/build/step-1/post-deterministic\n" + hash + "Hone-Attempt: 3\n" + who +
		"phase2/build/step-2/pre-deterministic\n" + hash + who +
		"phase2/build/step-2/pre-deterministic\n" + hash + "Hone-Attempt: 2\n" + who +
		"phase2/build/step-2/post-deterministic\n" + hash + "Hone-Attempt: 2\n" + who +
		"phase2/passed\n" + hash + "Hone-Specs: X\n" + who
	if diff := cmp.Diff(want, commits(t, dir, phase.Src)); diff != "" {
		t.Errorf("commits in src (-want +got):\n%s", diff)
	}
	var told []string
	for _, a := range m.first() {
		if a.role == "builder" {
			p := a.prompt()
			told = append(told, fmt.Sprint(strings.Contains(p, "LINT 1"), strings.Contains(p, "LINT 2"), strings.Contains(p, "LINT 3"), strings.Contains(p, "OBSERVED")))
		}
	}
	if diff := cmp.Diff([]string{"false false false false", "true false false false", "false true false false", "false false false true", "false false true true"}, told); diff != "" {
		t.Errorf("the builder is told of lint 1, 2, 3 and the contract (-want +got):\n%s", diff)
	}
}

// TestIdleBuilder: rulings A2 and G19. A builder is told what its last session did and said.
func TestIdleBuilder(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(suite(), builder(say("built")), fail(), build("no"), fail(), build("hello"), pass())
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone || end.Rounds != 3 {
		t.Fatalf("%+v", end)
	}
	var told []bool
	for _, a := range m.first() {
		if a.role == "builder" {
			told = append(told, strings.Contains(a.prompt(), "===== your last session =====\nYour last session changed nothing, and said: built\n"))
		} else {
			lacks(t, "the verifier's prompt", a.prompt(), "your last session")
		}
	}
	if diff := cmp.Diff([]bool{false, true, false}, told); diff != "" {
		t.Errorf("the builder is told that its session changed nothing (-want +got):\n%s", diff)
	}
}

// TestCommits: the user's identity, and none of the user's hooks (ruling A6).
func TestCommits(t *testing.T) {
	skipShort(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	files(t, home, map[string]string{".gitconfig": "[user]\nname = Ada\nemail = ada@localhost\n[commit]\ngpgsign = true\n"})
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	if err := phase.Prepare(context.Background(), must(git.Find("")), dir); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"pre-commit", "commit-msg", "post-commit", "reference-transaction"} {
		at := filepath.Join(dir, "src", ".git", "hooks", hook)
		files(t, dir, map[string]string{"src/.git/hooks/" + hook: "#!/bin/sh\necho ran >> " + dir + "/hook-ran\nexit 1\n"})
		must(0, os.Chmod(at, 0o755))
	}
	m := script(suite(), build("hello"), pass())
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
	if ran := read(dir, "hook-ran"); ran != "" {
		t.Error("the repository's hooks ran")
	}
	const hash, who = "Hone-Run: X\n", "Ada <ada@localhost>\n"
	want := "phase2/verify/suite-written\n" + hash + who + "phase2/verify/step-1/results\n" + hash + who + "phase2/passed\n" + hash + "Hone-Specs: X\n" + who
	if diff := cmp.Diff(want, commits(t, dir, phase.Tests)); diff != "" {
		t.Errorf("commits in tests (-want +got):\n%s", diff)
	}
}

// TestPassedByTheSpecifications: what both repositories record counts while the
// specifications up to that phase are the same.
func TestPassedByTheSpecifications(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	g, ctx := must(git.Find("")), context.Background()
	has := func(want bool, n int, when string) {
		t.Helper()
		if got := must(phase.HasPassed(ctx, g, dir, n)); got != want {
			t.Errorf("%s: %v", when, got)
		}
	}
	has(false, 2, "before anything")
	m := script(suite(), build("hello"), pass())
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
	// What a later life finds ended it finishes again, and that is nothing new.
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone || len(m.asked) != len(m.turns) {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	if got := strings.Count(subjects(t, dir, phase.Src)+subjects(t, dir, phase.Tests), "passed"); got != 2 {
		t.Errorf("%d commits say that it passed", got)
	}
	has(true, 2, "afterwards")
	has(false, 1, "an earlier phase")
	files(t, dir, map[string]string{"specs/phase10.md": "## Phase 10: Other\n\n### Contracts\nGET / → 200\n"})
	has(true, 2, "a later specification changed")
	files(t, dir, map[string]string{"specs/phase1.md": "## Phase 1: Other\n\n### Contracts\nGET / → 201\n"})
	has(false, 2, "an earlier specification changed")
}

// TestHalfFinished: a run that was killed between the two commits that say
// that a phase has passed makes the other one.
func TestHalfFinished(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(suite(), build("hello"), pass())
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
	c := exec.Command("git", "update-ref", "HEAD", "HEAD~1")
	c.Dir = filepath.Join(dir, phase.Tests)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	if must(phase.HasPassed(context.Background(), must(git.Find("")), dir, 2)) {
		t.Error("one repository is enough")
	}
	process{model: m}.live(t, dir)
	if !must(phase.HasPassed(context.Background(), must(git.Find("")), dir, 2)) || strings.Count(subjects(t, dir, phase.Src), "passed") != 1 {
		t.Errorf("%s; %s", subjects(t, dir, phase.Src), subjects(t, dir, phase.Tests))
	}
}

// TestStuck: ruling A11.
func TestStuck(t *testing.T) {
	skipShort(t)
	t.Parallel()
	long := strings.Repeat("LINT early\n", 50) + "LINT last"
	for name, c := range map[string]struct {
		script      *recorder
		want, lacks []string
	}{
		"a contract": {script(suite(), build("no"), fail(), build("no"), fail()),
			[]string{"✗ Phase 2 is STUCK — see tests/failed_specs.md\n", "\n" + failed}, []string{"lint.log"}},
		"the health check": {script(suite(), build("LINT"), build(long)),
			[]string{"✗ Phase 2 is STUCK — see tests/results/lint.log\n", "tests/results/lint.log, the end of it:\n", "answer:51:LINT last"}, []string{"failed_specs", "answer:31:"}},
		"both": {script(suite(), build("no"), fail(), build("LINT last")),
			[]string{"see tests/failed_specs.md, tests/results/lint.log\n", failed, "answer:1:LINT last"}, nil},
		"the server": {script(suite(), build("no"), fail(), build("crash")),
			[]string{"see tests/failed_specs.md, tests/results/dev.log\n", failed, "tests/results/dev.log, the end of it:", "cannot find the crash module"}, []string{"lint.log"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project(t, dir, usual(), nil)
			end := process{model: c.script, rounds: 2, set: soon}.live(t, dir)
			if end.Kind != hone.KindRounds || end.Rounds != 2 {
				t.Fatalf("%+v", end)
			}
			holds(t, "the summary", end.summary, c.want...)
			lacks(t, "the summary", end.summary, c.lacks...)
			if strings.Contains(subjects(t, dir, phase.Src), "passed") {
				t.Error("it is recorded as passed")
			}
			gone(t, dir)
		})
	}
}

// TestCheckHasTheLastWord: --check joins, its findings go to the builder alone
// (ruling G12).
func TestCheckHasTheLastWord(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(suite(), build("hello"), pass(), build("hello!"), pass())
	says := func(context.Context) ([]check.Finding, error) {
		if strings.Contains(read(dir, "src/answer"), "!") {
			return nil, nil
		}
		return []check.Finding{{Source: check.SourceCommand, Text: "CANARY-CHECK: say it louder"}}, nil
	}
	end := process{model: m, check: says}.live(t, dir)
	if end.Kind != hone.KindDone || end.Rounds != 2 {
		t.Fatalf("%+v", end)
	}
	for i, a := range m.first() {
		if got, want := strings.Contains(a.prompt(), "CANARY-CHECK"), i == 3; got != want {
			t.Errorf("session %d is told of the check: %v", i+1, got)
		}
	}
}
