//go:build unix

package phase_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/loop/phase"
	"hone/model"
)

// TestCrashAtEveryPoint: a contract fails in round 1, round 2 passes.
func TestCrashAtEveryPoint(t *testing.T) {
	crashScene(false, suite(), build("no"), fail(), build("hello"), pass()).Run(t)
}

// TestAgentCrashesAtEveryPoint: the same with agents in both roles.
func TestAgentCrashesAtEveryPoint(t *testing.T) {
	skipShort(t)
	asks := []string{"bash", "command", reach()}
	fails := agent("verifier", "one fails", asks...)
	fails[0].reply.Parts = append(fails[0].reply.Parts, call("write", "path", "failed_specs.md", "content", failed).Parts...)
	crashScene(true, agent("verifier", "written", "write", "path", "suite.sh", "content", "# CANARY-TEST\n"),
		agent("builder", "built", "write", "path", "answer", "content", "no\n"), fails,
		agent("builder", "built", "write", "path", "answer", "content", "hello\n"), agent("verifier", "all pass", asks...)).Run(t)
}

// TestCrashBesideACheck: the health check fails in round 1, all contracts hold
// in round 2 and the check beside them does not, and round 3 passes.
func TestCrashBesideACheck(t *testing.T) {
	skipShort(t)
	more := builder(call("write", "path", "more", "content", "more\n"), say("built"))
	s := crashScene(false, suite(), build("LINT"), build("hello"), pass(), more, pass())
	s.Play = playing(func(dir string) process {
		return process{check: func(context.Context) ([]check.Finding, error) {
			if read(dir, "src/more") == "" {
				return []check.Finding{{Source: "check", File: "src/more", Text: "there must be more"}}, nil
			}
			return nil, nil
		}}
	})
	s.Run(t)
}

// TestCrashOfAStuckPhase: the one round is used up, and a contract fails.
func TestCrashOfAStuckPhase(t *testing.T) {
	skipShort(t)
	s := crashScene(false, suite(), build("no"), fail())
	s.Play = playing(func(string) process { return process{rounds: 1} })
	s.Run(t)
}

// crashScene is a phase that is killed and resumed. In addition to the tree it
// compares the repositories' commits, and the recorded outside changes.
func crashScene(agents bool, sessions ...[]turn) crashtest.Scene {
	var replies []model.Reply
	for _, one := range slices.Concat(sessions...) {
		replies = append(replies, one.reply)
	}
	return crashtest.Scene{
		Replies:   replies,
		MaxPoints: 4, // each scene tries others
		Setup: func(t testing.TB, dir string) {
			project(t, dir, usual(), map[string]string{"tests/failed_specs.md": failed, "src/deps": "greeting 1.0\n"})
		},
		Play: playing(func(string) process { return process{agents: agents} }),
	}
}

// playing plays a process in a project's folder.
func playing(in func(dir string) process) func(testing.TB, string, model.Model, journal.Observer) hone.End {
	return func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
		p := in(dir)
		p.model, p.observe = m, quiet(o)
		end := p.live(t, dir)
		gone(t, dir)
		summarise(t, dir)
		return end.End
	}
}

// quiet is an observer whose kill ends no more than the goroutine where that
// is not the run's own: what reached the server is recorded by the one that
// passes it on. The run's own then dies at its next event.
func quiet(o journal.Observer) journal.Observer {
	within := func(foreign bool, observe func()) {
		defer func() {
			if p := recover(); p != nil && foreign {
				runtime.Goexit()
			} else if p != nil {
				panic(p)
			}
		}()
		observe()
	}
	reached := func(payload any) bool { s, ok := payload.(history.Served); return ok && s.What == history.Reached }
	var q journal.Observer
	if o.Before != nil {
		q.Before = func(n journal.Entry) { within(reached(n.Payload), func() { o.Before(n) }) }
	}
	if o.After != nil {
		q.After = func(e journal.Event) {
			var s history.Served
			within(e.Type == "server" && e.Decode(&s) == nil && s.What == history.Reached, func() { o.After(e) })
		}
	}
	return q
}

// summarise leaves, in place of what depends on times and addresses, what does
// not.
func summarise(t testing.TB, dir string) {
	t.Helper()
	for _, name := range []string{"dev.log", "dev.pid", "resets", "stops"} {
		must(0, os.RemoveAll(filepath.Join(dir, phase.Results, name)))
	}
	config, port := read(dir, phase.HooksName), portOf(dir)
	// The folder first: its name can hold the port.
	config = strings.ReplaceAll(strings.ReplaceAll(config, dir, "DIR"), port, "PORT")
	files(t, dir, map[string]string{
		"commits":       commits(t, dir, phase.Src) + commits(t, dir, phase.Tests),
		"outside":       fmt.Sprint(count(t, dir, "outside", "")),
		phase.HooksName: config,
	})
}

// TestResumedVerification: the server is started again, its state reset, and
// the verifier told so with its next command (ruling A9), once.
func TestResumedVerification(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(journal.Event) bool{
		"after a command": func(e journal.Event) bool {
			return e.Type == "tool" && e.Phase == journal.Record && e.Step.Session == 3
		},
		"within a command": func(e journal.Event) bool {
			return e.Type == "tool" && e.Phase == journal.Begin && e.Step.Session == 3 && e.Step.Turn == 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project(t, dir, usual(), nil)
			m := script(suite(), build("hello"), verifier(ask(), ask(), ask(), say("all pass")))
			killedAt(t, process{model: m}, dir, at)
			if len(m.asked) >= len(m.turns) {
				t.Fatal("it was not killed")
			}
			gone(t, dir)
			if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone {
				t.Fatalf("%+v", end)
			}
			if resets := read(dir, "tests/results/resets"); resets != "reset\nreset\n" {
				t.Errorf("the state was reset: %q", resets)
			}
			last := m.asked[len(m.asked)-1].everything()
			holds(t, "what the verifier was told", last, "The server was just restarted and its state reset", "It answers at http://127.0.0.1:", "200 hello (request 1)")
			if n := strings.Count(last, "The server was just restarted"); n != 1 {
				t.Errorf("it was told so %d times", n)
			}
			if count(t, dir, "outside", "") > 0 {
				t.Error("what hone did itself is taken for somebody else's change")
			}
		})
	}
}

// TestNotStartedForNothing: a run that is resumed after its last verification has
// answered starts no server.
func TestNotStartedForNothing(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(suite(), build("hello"), pass())
	killedAt(t, process{model: m}, dir, func(e journal.Event) bool {
		return e.Phase == journal.Begin && e.Step != nil && e.Step.Name == "read verdict"
	})
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone || len(m.asked) != len(m.turns) {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	if resets := read(dir, "tests/results/resets"); resets != "reset\n" {
		t.Errorf("the state was reset: %q", resets)
	}
}

// TestOldVerdictIsRemovedByHone, and a run that is killed right then takes that
// for another program's change.
func TestOldVerdictIsRemovedByHone(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), map[string]string{"tests/failed_specs.md": failed})
	m := script(suite(), build("hello"), pass())
	killedAt(t, process{model: m}, dir, func(e journal.Event) bool {
		return e.Phase == journal.Record && e.Step.Name == "clear verdict"
	})
	if read(dir, "tests/failed_specs.md") != "" {
		t.Error("the old verdict is there")
	}
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone || count(t, dir, "outside", "") > 0 {
		t.Fatalf("%+v", end)
	}
}

// TestServerDoesNotComeBack: one that came up before and does not in a resumed
// run is exit 5, and no contract's failure.
func TestServerDoesNotComeBack(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(suite(), build("hello"), pass())
	killedAt(t, process{model: m}, dir, func(e journal.Event) bool {
		return e.Type == "tool" && e.Phase == journal.Record && e.Step.Session == 3
	})
	files(t, dir, map[string]string{"src/answer": "crash\n"})
	asked := len(m.asked)
	end := process{model: m, set: soon}.live(t, dir)
	if end.Kind != hone.KindFailed || !strings.Contains(end.Why, "started before, but does not now") || len(m.asked) != asked {
		t.Fatalf("%+v after %d requests", end, len(m.asked)-asked)
	}
	gone(t, dir)
	files(t, dir, map[string]string{"src/answer": "hello\n"})
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
}

// died is what a killed process panics with.
type died struct{}

// killedAt is a life that ends right after an event.
func killedAt(t *testing.T, p process, dir string, at func(journal.Event) bool) {
	t.Helper()
	dead := false
	p.observe = journal.Observer{
		Before: func(journal.Entry) {
			if dead {
				panic(died{})
			}
		},
		After: func(e journal.Event) {
			if dead = dead || at(e); dead {
				panic(died{})
			}
		},
	}
	defer func() {
		if p := recover(); p != nil && p != (died{}) {
			panic(p)
		}
		if !dead {
			t.Fatal("it was not killed")
		}
	}()
	p.live(t, dir)
}
