//go:build unix

package phase_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hone"
	"hone/journal"
	"hone/loop/phase"
	"hone/sandbox"
)

// TestHookFails: a hook that fails, hangs or is missing is exit 5 with its
// output, and the run resumes when it is fixed (ruling A9).
func TestHookFails(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for name, c := range map[string]struct {
		hook, body string
		why        []string
		turns      int // that are taken before
	}{
		"map_deps fails":                          {"map_deps", "echo no such lock file >&2; exit 3", []string{"map_deps in abl.config.sh failed with exit status 3", "no such lock file"}, 4},
		"map_deps hangs":                          {"map_deps", "echo reading; sleep 60", []string{"map_deps", "did not finish within", "reading"}, 0},
		"health_check hangs":                      {"health_check", "echo linting; sleep 60", []string{"health_check", "did not finish within", "linting"}, 4},
		"start_dev fails":                         {"start_dev", "echo npm: command not found; exit 127", []string{"start_dev", "failed with exit status 127", "npm: command not found"}, 4},
		"start_dev does not go to the background": {"start_dev", "cd src; echo up; exec BINARY " + asServer + " PORT MARK", []string{"start_dev", "did not finish within", "with &", "up"}, 4},
		"start_dev cannot log":                    {"start_dev", "sleep 60 > nowhere/dev.log 2>&1 &", []string{"start_dev", "could not write the server's log", "nowhere/dev.log: No such file or directory"}, 4},
		"reset_state fails":                       {"reset_state", "echo no database >&2; false", []string{"reset_state", "failed with exit status 1", "no database"}, 4},
		"reset_state is killed":                   {"reset_state", "kill -9 $PPID", []string{"reset_state", "was stopped together with all that it had started"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project(t, dir, usual().but(c.hook, c.body), nil)
			m := script(suite(), build("hello"), pass())
			quick := func(l *phase.Loop, _ *hone.Run) { l.Hooks.Time, l.Hooks.Up = 10*time.Second, 10*time.Second }
			end := process{model: m, set: quick}.live(t, dir)
			if end.Kind != hone.KindFailed || len(m.asked) != c.turns {
				t.Fatalf("%+v after %d requests", end, len(m.asked))
			}
			holds(t, "the end", end.Why, c.why...)
			holds(t, "what to do next", fmt.Sprintf("%+v", end.Next), "fix abl.config.sh", "Verb:resume")
			gone(t, dir)
			if c.hook == "health_check" || strings.HasSuffix(name, "fails") {
				return
			}
			project(t, dir, usual(), nil)
			if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone || len(m.asked) != len(m.turns) {
				t.Fatalf("mended: %+v after %d requests", end, len(m.asked))
			}
			gone(t, dir)
		})
	}
}

// TestNoConfig: a project without abl.config.sh.
func TestNoConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(suite())
	gone := func(l *phase.Loop, _ *hone.Run) { must(0, os.Remove(filepath.Join(dir, phase.HooksName))) }
	end := process{model: m, set: gone}.live(t, dir)
	if end.Kind != hone.KindFailed || !strings.Contains(end.Why, "there is no abl.config.sh") || len(m.asked) > 0 {
		t.Fatalf("%+v", end)
	}
}

// TestStopDev is optional: one that is missing, fails or hangs changes nothing
// (ruling A9).
func TestStopDev(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for name, h := range map[string]hooks{
		"missing": usual().without("stop_dev"), "fails": usual().but("stop_dev", "echo oh; exit 1"), "stops nothing": usual().but("stop_dev", "true"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project(t, dir, h, nil)
			m := script(suite(), build("no"), fail(), build("hello"), pass())
			if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone || end.Rounds != 2 {
				t.Fatalf("%+v", end)
			}
			gone(t, dir)
		})
	}
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(suite(), build("no"), fail(), build("hello"), pass())
	if (process{model: m}).live(t, dir); read(dir, "tests/results/stops") != "stopped\nstopped\n" {
		t.Errorf("stop_dev ran: %q", read(dir, "tests/results/stops"))
	}
}

// TestHealthCheckSaysNothing: then its status is what there is to tell.
func TestHealthCheckSaysNothing(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual().but("health_check", "exit 9"), nil)
	m := script(suite(), build("x"))
	end := process{model: m, rounds: 1}.live(t, dir)
	if end.Kind != hone.KindRounds || len(end.Findings) != 1 {
		t.Fatalf("%+v", end)
	}
	holds(t, "the finding", end.Findings[0].Text, "exit status 9")
	if read(dir, "tests/results/lint.log") != "" {
		t.Error("lint.log holds something")
	}
}

// TestHealthLog: what the hook prints is its log where it writes none, a log
// of an earlier run is not reported, and the middle of a long one is omitted.
func TestHealthLog(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual().but("health_check", `case "$(cat src/answer)" in
1) printf 'first: \377 is wrong\n' ; exit 1;;
2) seq 100000; exit 1;;
esac`), map[string]string{"tests/results/lint.log": "CANARY-OLD\n"})
	m := script(suite(), build("1"), build("2"), build("3"))
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindFailed {
		t.Fatalf("%+v", end)
	}
	prompts := m.first()
	holds(t, "the second prompt", prompts[2].prompt(), "lint.log: what the health check printed when it failed =====\nfirst: \uFFFD is wrong\n")
	lacks(t, "the second prompt", prompts[2].prompt(), "CANARY-OLD")
	third := prompts[3].prompt()
	holds(t, "the third prompt", third, "=====\n1\n2\n", "\n100000\n", " bytes omitted ...]\n")
	if lacks(t, "the third prompt", third, "\n50000\n", "first: "); len(third) > 60<<10 {
		t.Errorf("the third prompt has %d bytes", len(third))
	}
	if strings.Count(read(dir, "tests/results/lint.log"), "\n") > 0 {
		t.Error("lint.log is that of an earlier check")
	}
}

// TestServerDoesNotAnswer: that is a finding for the builder, with the log, and
// no reason to end the run; the verifier does not learn of it.
func TestServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, log := range map[string]string{"crash": "server: cannot find the crash module", "deaf": "server: waiting for the database"} {
		why, patience := "nothing answered on port", soon
		if name == "crash" {
			why, patience = "has ended, and nothing answers on port", func(*phase.Loop, *hone.Run) {}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project(t, dir, usual(), nil)
			m := script(suite(), build(name), build("LINT "+name), build("hello"), pass())
			end := process{model: m, set: patience}.live(t, dir)
			if end.Kind != hone.KindDone || end.Rounds != 3 {
				t.Fatalf("%+v", end)
			}
			gone(t, dir)
			prompts := m.first()
			holds(t, "the second prompt", prompts[2].prompt(), "dev.log: the server did not come up", why, log)
			holds(t, "the third prompt", prompts[3].prompt(), "dev.log: the server did not come up", log, "LINT "+name)
			lacks(t, "the verifier's prompt", prompts[4].prompt(), "did not come up", "LINT", log)
			if got := subjects(t, dir, phase.Tests); got != "phase2/verify/suite-written phase2/verify/step-3/results phase2/passed" {
				t.Errorf("commits in tests: %s", got)
			}
		})
	}
}

// TestFailedContractsStand while no verification says otherwise.
func TestFailedContractsStand(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	m := script(suite(), build("no"), fail(), build("crash"), build("hello"), pass())
	if end := (process{model: m, set: soon}).live(t, dir); end.Kind != hone.KindDone || end.Rounds != 3 {
		t.Fatalf("%+v", end)
	}
	for i, a := range m.first()[3:] {
		holds(t, "a later prompt", a.prompt(), strings.TrimSpace(failed))
		if told := strings.Contains(a.prompt(), "did not come up"); told != (i == 1) {
			t.Errorf("session %d is told of the server: %v", i+4, told)
		}
	}
}

// TestSomethingElseAnswers on the port, where walls share the machine's.
func TestSomethingElseAnswers(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	l := must(net.Listen("tcp", "127.0.0.1:"+portOf(dir)))
	defer l.Close()
	m := script(suite(), build("hello"), pass())
	end := process{model: m}.live(t, dir)
	if end.Kind != hone.KindFailed || !strings.Contains(end.Why, "another program answers on port "+portOf(dir)) || read(dir, "tests/results/dev.log") != "" {
		t.Fatalf("%+v", end)
	}
	l.Close()
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
}

// TestServerBehindWallsHasItsOwnPort: the port belongs only to the project.
func TestServerBehindWallsHasItsOwnPort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	l := must(net.Listen("tcp", "127.0.0.1:"+portOf(dir)))
	defer l.Close()
	m := script(suite(), build("hello"), pass())
	if end := (process{model: m, wall: sandbox.Hidden}).live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
}

// TestCancelled: nothing of the server is left, wherever the run was, and a
// resumed one comes to the end.
func TestCancelled(t *testing.T) {
	t.Parallel()
	const slow = "if [ -e src/slow ]; then touch tests/results/reached; sleep 60; fi\n"
	for name, c := range map[string]struct {
		h  hooks
		at func(journal.Event) bool // nil: as soon as a slow hook has begun
	}{
		"in start_dev":   {usual().but("start_dev", slow+usual()["start_dev"]), nil},
		"in reset_state": {usual().but("reset_state", slow), nil},
		"in the check":   {usual().but("health_check", slow), nil},
		"in a command":   {usual(), func(e journal.Event) bool { return e.Type == "tool" && e.Phase == journal.Begin && e.Step.Session == 3 }},
		"before an answer": {usual(), func(e journal.Event) bool {
			return e.Type == "tool" && e.Phase == journal.Record && e.Step.Session == 3
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project(t, dir, c.h, map[string]string{"src/slow": ""})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			m := script(suite(), build("hello"), pass())
			p := process{model: m, context: func() (context.Context, func()) { return ctx, cancel }}
			p.observe.After = func(e journal.Event) {
				if c.at != nil && c.at(e) {
					cancel()
				}
			}
			go func() {
				for c.at == nil && ctx.Err() == nil {
					if _, err := os.Stat(filepath.Join(dir, "tests/results/reached")); err == nil {
						cancel()
					}
					time.Sleep(10 * time.Millisecond)
				}
			}()
			if end := p.live(t, dir); end.Kind == hone.KindDone || !strings.Contains(end.Why, "canceled") {
				t.Fatalf("%+v", end)
			}
			gone(t, dir)
			must(0, os.Remove(filepath.Join(dir, "src", "slow")))
			if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone {
				t.Fatalf("resumed: %+v", end)
			}
			gone(t, dir)
		})
	}
}

// TestInterruptBeforeAHook: an interrupt that has ended the shell of the hooks
// before it was asked is an interrupt, not a hook that could not be run.
func TestInterruptBeforeAHook(t *testing.T) {
	skipShort(t)
	t.Parallel()
	dir := t.TempDir()
	project(t, dir, usual(), nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m := script(suite(), build("hello"), pass())
	p := process{model: m, context: func() (context.Context, func()) { return ctx, cancel }}
	p.set = func(l *phase.Loop, _ *hone.Run) { l.Hooks.Runner = interrupted{l.Hooks.Runner, cancel} }
	if end := p.live(t, dir); end.Kind == hone.KindDone || !strings.Contains(end.Why, "canceled") {
		t.Fatalf("%+v", end)
	}
	gone(t, dir)
	if end := (process{model: m}).live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("resumed: %+v", end)
	}
}

// interrupted is a Runner whose run is interrupted as soon as it has started a shell.
type interrupted struct {
	phase.HookRunner
	interrupt func()
}

func (i interrupted) Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error) {
	running, err := i.HookRunner.Start(ctx, c)
	i.interrupt()
	if err == nil {
		<-running.Done()
	}
	return running, err
}
