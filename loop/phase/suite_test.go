//go:build unix

package phase_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/loop/phase"
	"hone/model"
	"hone/sandbox"
)

// runner is a suite for both contracts of the project. It checks that the answers
// start with the words.
func runner(hello, bye string) string {
	return `#!/bin/sh
# CANARY-TEST
echo TAP version 14
echo 1..2
n=0 bad=0
point() {
	n=$((n+1))
	got=$(` + binary() + " " + asClient + ` "$DEV_URL$2")
	case $got in
	"200 $3"*) echo "ok $n - $1" ;;
	*) bad=1; printf 'not ok %s - %s\n  ---\n  input: GET %s\n  observed: "%s"\n  ...\n' "$n" "$1" "$2" "$got" ;;
	esac
}
point 'GET / → 200 {hello}' / '` + hello + `'
point 'GET /bye → 200 {bye}' /bye '` + bye + `'
exit $bad
`
}

// leaves is a session in which the verifier leaves tests/run.
func leaves(text string) []turn {
	return verifier(call("write", "path", "run", "content", text), say("written"))
}

func writes() []turn { return leaves(runner("hello", "hello")) }

// TestSuite: hone runs the suite behind every wall, and only a round in which it finds
// nothing costs a session of the verifier (rulings A14 and A16).
func TestSuite(t *testing.T) {
	t.Parallel()
	for _, wall := range walls() {
		t.Run(string(wall), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project(t, dir, usual(), map[string]string{"tests/tests/failed_specs.md": failed})
			m := script(writes(), build("LINT"), build("no"), build("hello"), pass())
			end := process{model: m, wall: wall}.live(t, dir)
			if end.Kind != hone.KindDone || end.Rounds != 3 || end.summary != "✓ Phase 2 passed\n" || len(end.Findings) > 0 || len(m.asked) != len(m.turns) {
				t.Fatalf("%+v after %d requests", end, len(m.asked))
			}
			if diff := cmp.Diff(testsPoints, subjects(t, dir, phase.Tests)); diff != "" {
				t.Errorf("commits in tests (-want +got):\n%s", diff)
			}
			prompts := m.first()
			last := prompts[len(prompts)-2].prompt()
			holds(t, "the builder's prompt", last, "SPEC: GET / → 200 {hello}\nINPUT: GET /\nOBSERVED: 200 no (request 1)\n\nSPEC: GET /bye → 200 {bye}\nINPUT: GET /bye\nOBSERVED: 200 no (request 2)")
			for _, a := range m.asked {
				if a.role == "builder" {
					lacks(t, "a builder's request", a.everything(), "CANARY-TEST", "TAP version", "not ok")
				}
			}
			if read(dir, "tests/failed_specs.md") != "" || read(dir, "tests/tests/failed_specs.md") != "" {
				t.Error("a verdict is left")
			}
			if resets := read(dir, "tests/results/resets"); resets != "reset\nreset\nreset\n" {
				t.Errorf("the state was reset: %q", resets)
			}
			if diff := cmp.Diff("GET / → 200 {hello}: 2 failed, 3 passed\nGET /bye → 200 {bye}: 2 failed, 3 passed\n", verdicts(t, dir)); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
			gone(t, dir)
		})
	}
}

// TestSuiteGoesBack: what is wrong with a suite before the first build goes back to
// the verifier.
func TestSuiteGoesBack(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for name, c := range map[string]struct {
		first []turn
		want  string
	}{
		"not executable":      {verifier(call("bash", "command", "echo x > run"), call("bash", "command", "chmod 644 run"), say("written")), "tests/run is not executable"},
		"a link":              {verifier(call("bash", "command", "ln -s /bin/true run"), say("written")), "tests/run is a symbolic link"},
		"prints nothing":      {leaves("#!/bin/sh\nexit 1\n"), "there is no plan"},
		"passes against 501":  {leaves(strings.ReplaceAll(runner("hello", "hello"), `"200 $3"*)`, `*" "*)`)), "passes against the server that answers every request with 501"},
		"passes on nothing":   {leaves(runner("", "hello")), "passes against the server that answers every request with 200 and an empty body"},
		"misses a contract":   {leaves(strings.ReplaceAll(runner("hello", "hello"), "GET /bye →", "GET /by →")), "there are 0 points whose description contains “GET /bye → 200 {bye}”"},
		"asks no server":      {leaves(strings.ReplaceAll(runner("hello", "hello"), "$DEV_URL", "http://127.0.0.1:1")), "no request reached the server at $DEV_URL"},
		"has no diagnostics":  {leaves(strings.ReplaceAll(runner("hello", "hello"), "observed:", "seen:")), "has no input: or no observed:"},
		"does not exit alike": {leaves(strings.ReplaceAll(runner("hello", "hello"), "exit $bad", "exit 0")), "the exit status is 0 although points fail"},
		"is no program":       {leaves("#!/no/such/interpreter\n"), "tests/run cannot run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project(t, dir, usual(), nil)
			again := verifier(call("bash", "command", "rm -f run"), call("write", "path", "run", "content", runner("hello", "hello")), say("written"))
			m := script(c.first, again, build("hello"), pass())
			end := process{model: m}.live(t, dir)
			if end.Kind != hone.KindDone || len(m.asked) != len(m.turns) {
				t.Fatalf("%+v after %d requests", end, len(m.asked))
			}
			holds(t, "the second prompt", m.first()[1].prompt(), "tests/run: what is wrong with it", c.want, "Correct the test suite.", "There is no server yet.")
		})
	}
}

// TestSuiteIsUnusable: after three sessions without a suite that was seen failing the
// run ends, and a resumed one tries again.
func TestSuiteIsUnusable(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	nothing := leaves("#!/bin/sh\nexit 1\n")
	m := script(nothing, nothing, nothing, nothing, writes(), build("hello"), pass())
	end := process{model: m}.live(t, dir)
	if end.Kind != hone.KindFailed || !strings.HasPrefix(end.Why, "nothing was verified: after 3 tries the suite is still unusable: there is no plan") || len(m.asked) != 6 {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone || len(m.asked) != len(m.turns) {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
}

// TestNotSeenFailing: a point that hone's own servers do not certainly break goes
// back once, and is then reported.
func TestNotSeenFailing(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), map[string]string{"specs/phase2.md": "## Phase 2\n\n### Contracts\nGET /bye → must not say no\n"})
	text := strings.ReplaceAll(runner("hello", ""), "GET /bye → 200 {bye}", "GET /bye → must not say no")
	text = strings.ReplaceAll(text, `"200 $3"*)`, `*"$3"*)`)
	m := script(leaves(text), verifier(say("it checks all that it says")), build("hello"), pass())
	end := process{model: m}.live(t, dir)
	if end.Kind != hone.KindDone || len(m.asked) != len(m.turns) {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	if want := "✓ Phase 2 passed\nhone did not see these points fail; review their tests:\n  GET /bye → must not say no\n"; end.summary != want || !strings.Contains(verdicts(t, dir), "GET /bye → must not say no: 1 passed, but the test was not seen failing\n") {
		t.Errorf("the summary is %q, want %q", end.summary, want)
	}
}

// TestLaterSuiteSeenFailing: the summary is about the last suite of the run and not
// about the first.
func TestLaterSuiteSeenFailing(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), map[string]string{"specs/phase2.md": "## Phase 2\n\n### Contracts\nGET /bye → must not say no\n"})
	strict := strings.ReplaceAll(runner("hello", "hello"), "GET /bye → 200 {bye}", "GET /bye → must not say no")
	loose := strings.ReplaceAll(strings.ReplaceAll(strict, "/bye 'hello'", "/bye ''"), `"200 $3"*)`, `*"$3"*)`)
	review := verifier(ask(), call("write", "path", "run", "content", strict), say("corrected"))
	m := script(leaves(loose), verifier(say("it checks all that it says")), build("no"), build("no!"), review, build("hello"), pass())
	end := process{model: m}.live(t, dir)
	if end.Kind != hone.KindDone || end.Rounds != 3 || len(m.asked) != len(m.turns) {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	if want := "✓ Phase 2 passed\n"; end.summary != want {
		t.Errorf("the summary is %q, want %q", end.summary, want)
	}
}

// TestVerifierReviewsTheSuite: a point that fails in two rounds goes to the verifier,
// while the server is up, and what it changes must be seen failing again.
func TestVerifierReviewsTheSuite(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	review := verifier(ask(), call("write", "path", "run", "content", runner("hello", "")), say("corrected"))
	again := verifier(call("write", "path", "run", "content", runner("hello", "hello")), say("corrected"))
	m := script(leaves(runner("hello", "bye")), build("hello"), build("hello!"), review, again)
	end := process{model: m}.live(t, dir)
	if end.Kind != hone.KindDone || end.Rounds != 2 || len(m.asked) != len(m.turns) {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	prompts := m.first()
	holds(t, "the review's prompt", prompts[3].prompt(), "the point “GET /bye → 200 {bye}” has failed in two rounds", "observed: 200 hello! (request 2)", "tests/run: what hone saw of it", "it answers at http://")
	holds(t, "the next prompt", prompts[4].prompt(), "with 200 and an empty body", "Correct the test suite.")
	holds(t, "what the review saw", m.asked[len(m.asked)-3].everything(), "200 hello! (request 1)")
	lacks(t, "what the review saw", m.asked[len(m.asked)-3].everything(), "just restarted")
}

// TestReviewChangesNothing: if the verifier finds the test right, hone does not run the same
// suite again, and the builder gets nothing of what the verifier said.
func TestReviewChangesNothing(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(writes(), build("no"), build("no!"), verifier(ask(), say("CANARY-WORDS")), build("LINT"), build("hello"), pass())
	runs := 0
	p := process{model: m, rounds: 4, set: func(l *phase.Loop, _ *hone.Run) {
		l.Suite = counted{l.Suite, &runs}
	}}
	end := p.live(t, dir)
	if end.Kind != hone.KindDone || end.Rounds != 4 || len(m.asked) != len(m.turns) {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	if want := 2 + 3; runs != want { // twice against hone's own servers, and once in each of three rounds
		t.Errorf("the suite ran %d times, want %d", runs, want)
	}
	for _, a := range m.first() {
		if a.role == "builder" {
			lacks(t, "the builder's prompt", a.prompt(), "CANARY-WORDS")
		}
	}
}

// TestAttack: after a suite that finds nothing the verifier's report counts, too (ruling A16).
func TestAttack(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(writes(), build("hello"), fail(), build("hello!"), pass())
	end := process{model: m}.live(t, dir)
	if end.Kind != hone.KindDone || end.Rounds != 2 || end.summary != "✓ Phase 2 passed\n" || len(m.asked) != len(m.turns) {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	prompts := m.first()
	holds(t, "the session's prompt", prompts[2].prompt(), "hone has just run it: every point passed")
	holds(t, "the builder's prompt", prompts[3].prompt(), failed)
	if diff := cmp.Diff("GET / → 200 {hello}: 1 failed, 2 passed\nGET /bye → 200 {bye}: 1 passed, 2 passed\n", verdicts(t, dir)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// TestRefinedSuite: what a session adds to the suite is seen to fail, and runs in the same
// round; no point may be removed (ruling A16).
func TestRefinedSuite(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	good := runner("hello", "hello")
	more := strings.NewReplacer("echo 1..2", "echo 1..3", "exit $bad", "point 'an answer ends with !' / 'hello!'\nexit $bad").Replace(good)
	rewrite := func(text string) model.Reply { return call("write", "path", "run", "content", text) }
	m := script(leaves(good), build("hello"), verifier(ask(), rewrite(more), say("refined")), build("hello!"),
		verifier(ask(), rewrite(good), say("simplified")), verifier(rewrite(more), say("put back")))
	end := process{model: m}.live(t, dir)
	if end.Kind != hone.KindDone || end.Rounds != 2 || len(m.asked) != len(m.turns) {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	prompts := m.first()
	holds(t, "the builder's prompt", prompts[3].prompt(), "SPEC: an answer ends with !\nINPUT: GET /\nOBSERVED: 200 hello (request 3)")
	holds(t, "the last prompt", prompts[5].prompt(), "the point “an answer ends with !” was removed", "Correct the test suite.")
}

// counted counts the commands that it runs.
type counted struct {
	sandbox.Runner
	runs *int
}

func (c counted) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	*c.runs++
	return c.Runner.Run(ctx, command)
}

// TestBrokenSuite: a suite that breaks in a round goes to the verifier once; if it
// is still broken, nothing was verified. A resumed run tries again.
func TestBrokenSuite(t *testing.T) {
	skipShort(t)
	t.Parallel()
	good := runner("hello", "hello")
	for name, c := range map[string]struct{ text, why string }{
		"bails out": {strings.ReplaceAll(good, "echo 1..2", `case $(`+binary()+" "+asClient+` "$DEV_URL/") in *hello*) echo Bail out! ;; esac; echo 1..2`), "it bailed out"},
		"asks once": {strings.NewReplacer(`	got=$(`, `	test "$done" || got=$(`, `echo "ok $n - $1" ;;`, `done=yes; echo "ok $n - $1" ;;`).Replace(good), "only 1 request reached the server, but there are 2 contracts and flows"},
		"fails":     {strings.ReplaceAll(good, "exit $bad", "exit 3"), "all points are ok, but the exit status is 3"},
		"forges":    {strings.ReplaceAll(good, "exit $bad", `test $bad = 1 || echo "ok 2 - GET /bye"; exit $bad`), "there is more than one point 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project(t, dir, usual(), nil)
			m := script(leaves(c.text), build("hello"), verifier(ask(), say("it is right")), verifier(ask(), call("write", "path", "run", "content", good), say("corrected")))
			end := process{model: m}.live(t, dir)
			if end.Kind != hone.KindFailed || !strings.HasPrefix(end.Why, "nothing was verified: the suite is broken: ") || !strings.Contains(end.Why, c.why) {
				t.Fatalf("%+v after %d requests", end, len(m.asked))
			}
			holds(t, "the review's prompt", m.first()[2].prompt(), c.why)
			if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone || len(m.asked) != len(m.turns) {
				t.Fatalf("resumed: %+v after %d requests", end, len(m.asked))
			}
		})
	}
}

// TestSuiteCrashAtEveryPoint: the suite goes back once, a contract fails in round 1,
// and round 2 passes.
func TestSuiteCrashAtEveryPoint(t *testing.T) {
	skipShort(t)
	s := crashScene(false, leaves("#!/bin/sh\nexit 1\n"), writes(), build("no"), build("hello"), pass())
	s.Play = playing(func(string) process { return process{} })
	s.Run(t)
}

// TestReviewCrashAtEveryPoint: the same with a point that fails twice.
func TestReviewCrashAtEveryPoint(t *testing.T) {
	skipShort(t)
	s := crashScene(false, leaves(runner("hello", "bye")), build("hello"), build("hello!"),
		verifier(ask(), call("write", "path", "run", "content", runner("hello", "hello")), say("corrected")))
	s.Play = playing(func(string) process { return process{} })
	s.Run(t)
}

// TestRefusedReport: a report that the tool refused to write
// is no pass, and one below tests/ counts wherever it is (ruling A15).
func TestRefusedReport(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for name, c := range map[string]struct {
		verify []turn
		kind   hone.Kind
		why    string
	}{
		"refused":          {verifier(ask(), call("write", "path", ".git/failed_specs.md", "content", failed), say("one fails")), hone.KindFailed, "the verifier's report could not be written"},
		"then written":     {verifier(ask(), call("write", "path", ".git/failed_specs.md", "content", failed), call("write", "path", "failed_specs.md", "content", failed), say("one fails")), hone.KindRounds, ""},
		"elsewhere":        {verifier(ask(), call("bash", "command", "mkdir -p tests/x && printf '%s' 'SPEC: GET / → 200' > tests/x/failed_specs.md"), say("one fails")), hone.KindRounds, ""},
		"too few requests": {verifier(call("bash", "command", binary()+" "+asClient+` "$DEV_URL"`), say("all pass")), hone.KindFailed, "the verifier sent only 1 request to "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project(t, dir, usual(), nil)
			end := process{model: script(suite(), build("hello"), c.verify), rounds: 1}.live(t, dir)
			if end.Kind != c.kind || !strings.Contains(end.Why, c.why) {
				t.Fatalf("%+v", end)
			}
			if c.kind == hone.KindRounds && !slices.ContainsFunc(strings.Split(end.summary, "\n"), func(l string) bool { return strings.HasPrefix(l, "SPEC: GET / → 200") }) {
				t.Errorf("the summary is %q", end.summary)
			}
		})
	}
}

// TestSuiteOfAgents: agents whose prompts name the project root, so that the verifier
// leaves tests/tests/run and the builder src/src/answer (ruling A15).
func TestSuiteOfAgents(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inRoot := func(l *phase.Loop, _ *hone.Run) { l.NamesRoot = map[string]bool{"builder": true, "verifier": true} }
	written := agent("verifier", "written", "bash", "command", "mkdir -p tests/x && cat > tests/run <<'END'\n"+runner("hello", "hello")+"END\nchmod +x tests/run; echo x > tests/x/tests")
	m := script(written, agent("builder", "built", "bash", "command", "mkdir -p src/deep && echo no > src/answer; echo 1 > src/deep/one"),
		agent("builder", "built", "bash", "command", "mkdir -p src/deep; echo hello > src/answer; echo 2 > src/deep/two"), agent("verifier", "all pass", "bash", "command", reach()))
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	end := process{model: m, agents: true, set: inRoot}.live(t, dir)
	if end.Kind != hone.KindDone || end.Rounds != 2 || len(m.asked) != len(m.turns) {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	if got := tracked(t, dir, phase.Src) + "; " + tracked(t, dir, phase.Tests); got != "answer deep/one deep/two; run x/tests" {
		t.Errorf("committed: %s", got)
	}
}

// TestMoveUpCrash: the same, killed at every point.
func TestMoveUpCrash(t *testing.T) {
	skipShort(t)
	s := crashScene(true, agent("verifier", "written", "bash", "command", "mkdir -p tests && cat > tests/run <<'END'\n"+runner("hello", "hello")+"END\nchmod +x tests/run"),
		agent("builder", "built", "bash", "command", "mkdir -p src && echo hello > src/answer"), agent("verifier", "all pass", "bash", "command", reach()))
	s.Play = playing(func(string) process {
		return process{agents: true, set: func(l *phase.Loop, _ *hone.Run) { l.NamesRoot = map[string]bool{"builder": true, "verifier": true} }}
	})
	s.Run(t)
}
