//go:build unix

package phase_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone"
	"hone/history"
	"hone/loop/phase"
	"hone/model"
	"hone/workspace/secret"
)

// TestEvidence: a verification without evidence is never a pass: the run ends
// with exit 5, and one that is resumed has it tried again (ruling A4).
func TestEvidence(t *testing.T) {
	skipShort(t)
	t.Parallel()
	run := func(line string) model.Reply { return call("bash", "command", line) }
	cut := say("I was about to")
	cut.Finish = model.Length
	for name, c := range map[string]struct {
		verify  []turn
		why     string
		resumed bool // it is tried what comes of it
	}{
		"says that it is done":      {verifier(say("all pass")), "ran no command", true},
		"runs and asks nobody":      {verifier(run("true"), say("all pass")), "no request of the verifier reached the server", false},
		"connects and says nothing": {verifier(run("exec 3<>/dev/tcp/127.0.0.1/1; true"), say("all pass")), "no request of the verifier reached the server", false},
		"never answers":             {verifier(ask(), ask(), ask(), run("echo 4"), run("echo 5")), "gave no final answer (its session ended with: turns)", false},
		"answers with nothing":      {verifier(ask(), say(" "), say(""), say("\n")), "gave no final answer", false},
		"is cut off as it answers":  {verifier(ask(), cut, cut, cut, cut), "gave no final answer (its session ended with: discarded)", false},
		"writes a link":             {verifier(ask(), run("echo x > y; ln -s y failed_specs.md"), say("all pass")), "is unreadable", true},
		"writes more than is read":  {verifier(ask(), run("yes SPEC: x | head -c 2000000 > failed_specs.md"), say("all pass")), "is unreadable", false},
		"fails and writes a pipe":   {verifier(ask(), run("mkfifo failed_specs.md"), say("one fails")), "is unreadable", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// What an earlier run left says nothing, whatever it says.
			project(t, dir, usual(), map[string]string{"tests/failed_specs.md": failed})
			again := verifier(run("rm -rf failed_specs.md"), ask(), say("all pass"))
			m := script(suite(), build("hello"), c.verify, again)
			end := process{model: m, turns: 5}.live(t, dir)
			if end.Kind != hone.KindFailed || !strings.HasPrefix(end.Why, "nothing was verified: ") || !strings.Contains(end.Why, c.why) {
				t.Fatalf("%+v", end)
			}
			if strings.Contains(subjects(t, dir, phase.Tests), "results") {
				t.Error("a verification is on record that was none")
			}
			gone(t, dir)
			if !c.resumed {
				return
			}
			end = process{model: m, turns: 5}.live(t, dir)
			if end.Kind != hone.KindDone || end.Rounds != 1 || len(m.asked) != len(m.turns) {
				t.Fatalf("resumed: %+v after %d of %d turns", end, len(m.asked), len(m.turns))
			}
			holds(t, "the commits of tests", commits(t, dir, phase.Tests), "phase2/verify/step-1/results\nHone-Run: X\nHone-Attempt: 2\n")
		})
	}
}

// TestTriedAgainAndAgain: each try is a life of its own, and none bears
// witness for another.
func TestTriedAgainAndAgain(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	ran := call("bash", "command", "true")
	m := script(suite(), build("hello"), verifier(ask(), ran, call("write", "path", "x", "content", "1"), ran, call("dance")), verifier(ran, say("all pass")), verifier(say("all pass")), pass())
	for i, why := range []string{"gave no final answer", "no request of the verifier reached", "ran no command"} {
		if end := (process{model: m, turns: 5}).live(t, dir); end.Kind != hone.KindFailed || !strings.Contains(end.Why, why) {
			t.Fatalf("life %d: %+v", i+1, end)
		}
	}
	if end := (process{model: m, turns: 5}).live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
	if n := count(t, dir, "outside", ""); n > 0 {
		t.Errorf("%d changes are taken for somebody else's", n)
	}
}

// TestVerifierCrashes: a verifier that cannot be asked is exit 5, whatever it
// wrote before.
func TestVerifierCrashes(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for name, agents := range map[string]bool{"a model": false, "an agent": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project(t, dir, usual(), nil)
			m := script(suite(), build("hello"))
			if agents {
				m = script(agent("verifier", "written"), agent("builder", "built", "write", "path", "answer", "content", "hello\n"))
			}
			p := process{model: m, agents: agents}
			end := p.live(t, dir)
			if end.Kind != hone.KindFailed || !strings.Contains(end.Why, "there is no turn") {
				t.Fatalf("%+v", end)
			}
			gone(t, dir)
			m.turns = append(m.turns, pass()...)
			if agents {
				m.turns = append(m.turns[:2], agent("verifier", "all pass", "bash", "command", reach())...)
			}
			if end := p.live(t, dir); end.Kind != hone.KindDone {
				t.Fatalf("%+v", end)
			}
		})
	}
}

// agent is an agent's whole session: what it says, and one thing that it does.
func agent(role, text string, do ...string) []turn {
	reply := say(text)
	if len(do) > 0 {
		reply.Parts = append(reply.Parts, call(do[0], do[1:]...).Parts...)
	}
	return turns(role, []model.Reply{reply})
}

// TestAgentMustReach: it is not known what an agent runs, and what reached
// the server counts all the same (ruling A4).
func TestAgentMustReach(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(agent("verifier", "written"), agent("builder", "built", "write", "path", "answer", "content", "hello\n"),
		agent("verifier", "all pass", "bash", "command", "true"), agent("verifier", " "), agent("verifier", "all pass", "bash", "command", reach()))
	for _, why := range []string{"no request of the verifier reached", "gave no final answer"} {
		if end := (process{model: m, agents: true}).live(t, dir); end.Kind != hone.KindFailed || !strings.Contains(end.Why, why) {
			t.Fatalf("want %q: %+v", why, end)
		}
	}
	if end := (process{model: m, agents: true}).live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
}

// TestFailuresNeedNoEvidence: entries decide, also of a verifier that came to
// no answer, and what they lack is said (rulings A4 and A5).
func TestFailuresNeedNoEvidence(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(suite(), build("no"), verifier(call("write", "path", "failed_specs.md", "content", "It went wrong:\n\n- **SPEC:** GET / → 200 {hello}\n"), call("bash", "command", "true"), call("dance")))
	end := process{model: m, turns: 3, rounds: 1}.live(t, dir)
	if end.Kind != hone.KindRounds || len(end.Findings) != 2 {
		t.Fatalf("%+v", end)
	}
	holds(t, "the finding", end.Findings[0].Text, "SPEC:** GET / → 200 {hello}")
	for _, f := range end.Findings[1:] {
		if !f.Advisory || !strings.HasPrefix(f.Text, "tests/failed_specs.md: an entry has no INPUT:") {
			t.Errorf("%+v", f)
		}
	}
	if got := subjects(t, dir, phase.Tests); got != "phase2/verify/suite-written phase2/verify/step-1/results" || tracked(t, dir, phase.Tests) != "failed_specs.md suite.sh" {
		t.Errorf("%s: %s", got, tracked(t, dir, phase.Tests))
	}
}

// TestNote: a file without entries is a pass, and the user is told so.
func TestNote(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(suite(), build("hello"), verifier(ask(), call("write", "path", "failed_specs.md", "content", "All specs pass.\n"), say("all pass")))
	end := process{model: m}.live(t, dir)
	if end.Kind != hone.KindDone || len(end.Findings) != 1 || !end.Findings[0].Advisory {
		t.Fatalf("%+v", end)
	}
}

// TestWarningsOfSpecs: the user is told what is wrong with the specifications up
// to the phase, once (ruling A5).
func TestWarningsOfSpecs(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), map[string]string{
		"specs/phase2.md":  "## Phase 2: Leave\n\n### Contracts\nSUPERSEDES: GET /nowhere → 200\nGET /bye → 200 {bye}\n",
		"specs/phase10.md": "## Phase 10: CANARY-LATER\n\n### Contracts\nSUPERSEDES: GET /never → 200\nGET /x → 200\n",
	})
	m := script(suite())
	for range 2 {
		if end := (process{model: m}).live(t, dir); end.Kind != hone.KindFailed {
			t.Fatalf("%+v", end)
		}
	}
	if count(t, dir, "notice", "/nowhere") != 1 || count(t, dir, "notice", "/never") != 0 {
		t.Error("the warnings are not those of phases 1 and 2, once each")
	}
}

// TestOutsideChanges: only the role that owns the directory learns of them.
func TestOutsideChanges(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(suite(), build("no"), fail(), build("no"), fail(), build("hello"), pass())
	all := m.turns
	m.turns = all[:7] // the first life ends as round 2 begins: a reply is missing
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindFailed {
		t.Fatalf("%+v", end)
	}
	m.asked, m.turns = nil, all
	files(t, dir, map[string]string{"src/theirs.go": "x\n", "tests/theirs.sh": "x\n", "Makefile": "x\n", phase.MapName: "x\n", "tests/results/dev.log": "x\n"})
	must(0, os.Remove(filepath.Join(dir, "tests", "failed_specs.md")))
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone || end.Rounds != 3 {
		t.Fatalf("%+v", end)
	}
	var outside []string
	for _, e := range events(t, dir) {
		if e.Type == "outside" {
			var o history.Outside
			must(0, e.Decode(&o))
			outside = append(outside, o.Paths...)
		}
	}
	if got := strings.Join(outside, " "); got != "Makefile src/theirs.go tests/failed_specs.md tests/theirs.sh" {
		t.Errorf("outside: %s", got)
	}
	prompts := m.first()
	last, verify := prompts[len(prompts)-2].prompt(), prompts[len(prompts)-1].prompt()
	holds(t, "the builder's prompt", last, "theirs.go: changed by another process")
	lacks(t, "the builder's prompt", last, "theirs.sh", "Makefile", "failed_specs.md: changed")
	holds(t, "the verifier's prompt", verify, "theirs.sh: changed by another process")
	lacks(t, "the verifier's prompt", verify, "theirs.go: changed", "Makefile")
}

// TestWithheldIsNotSent: what is withheld is in no prompt (ruling G8).
func TestWithheldIsNotSent(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	const key = "AKIA" + "IOSFODNN7EXAMPLQ" // in two parts, so that walls do not hide this file
	project(t, dir, usual().but("health_check", "grep -n LINT src/answer && echo leaked "+key+" && exit 1; true"), map[string]string{"project.md": "Use " + key + ".\n", "src/deps": key + "\n"})
	g := secret.NewGuard(nil)
	g.Known = []string{key}
	m := script(suite(), build("LINT"), build("crash "), build("hello"), pass())
	end := process{model: m, rounds: 3, set: func(l *phase.Loop, r *hone.Run) { l.Guard = g; soon(l, r) }}.live(t, dir)
	if end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
	for i, a := range m.asked {
		lacks(t, "a request", a.everything(), key)
		if i == 2 {
			holds(t, "the builder's first", a.prompt(), "Use ")
		}
	}
	if strings.Contains(read(dir, phase.MapName), key) {
		t.Error("the map holds it")
	}
}

// TestTooLong: ruling G10.
func TestTooLong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), map[string]string{"specs/phase1.md": "## Phase 1: Long\n\n" + strings.Repeat("x", 50_000) + "\n\n### Contracts\nGET / → 200\n"})
	m := script(suite())
	end := process{model: m, set: func(l *phase.Loop, _ *hone.Run) { l.Writer.Context = 8_000 }}.live(t, dir)
	if end.Kind != hone.KindPrompt || len(m.asked) > 0 {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	holds(t, "the reason", end.Why, "50048 bytes  specs/phase1.md", "bytes  specs/phase2.md")
	lacks(t, "the reason", end.Why, "phase10")
}

// TestNoSuchPhase: exit 2, before anybody is asked.
func TestNoSuchPhase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	must(0, os.Remove(filepath.Join(dir, "specs", "phase2.md")))
	m := script(suite())
	end := process{model: m}.live(t, dir)
	if end.Kind != hone.KindUsage || !strings.Contains(end.Why, "there is no specs/phase2.md") || len(m.asked) > 0 {
		t.Fatalf("%+v", end)
	}
}
