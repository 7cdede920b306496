package screen_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hone/story"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
	"hone/tool"
)

// begun and recorded return the events of a loop's step that runs commands.
func begun(name string) journal.Entry {
	return journal.Entry{Type: "command", Phase: journal.Begin, Step: at(1, name), Payload: history.CommandBegun{}}
}

func recorded(name string, v any) journal.Entry {
	return journal.Entry{Type: "command", Phase: journal.Record, Step: at(1, name), Payload: v}
}

// shown returns what a screen prints for entries.
func shown(t *testing.T, o screen.Options, entries ...journal.Entry) string {
	t.Helper()
	out := newBuffer()
	s := screen.New(out, o)
	feed(t, s, entries...)
	s.Close()
	return out.String()
}

// TestCommand: a step that runs commands is one line, with the end of the output
// if it failed. The same finding is not shown again in that round, but in the
// next.
func TestCommand(t *testing.T) {
	log := ""
	for i := range 20 {
		log += fmt.Sprintf("line %d\n", i)
	}
	failed := check.Finding{Source: "health", Text: log}
	entries := []journal.Entry{
		begun("look"), recorded("look", map[string]any{"loops": "own"}),
		begun("health check"), recorded("health check", history.Report{Said: "failed, see lint.log", Log: log}),
		{Type: "round", Payload: hone.State{Round: 1, Decision: hone.AnotherRound, Findings: []check.Finding{failed, {Source: "contract", Text: "GET /\nno answer"}}}},
		{Type: "round", Payload: hone.State{Round: 2, Decision: hone.AnotherRound, Findings: []check.Finding{{Source: "health", Text: "line 0"}, failed}}},
	}
	want := "round 1 of 2\n  ! health check: failed, see lint.log\n    [12 lines before: hone show -v]\n"
	for i := 12; i < 20; i++ {
		want += fmt.Sprintf("    | line %d\n", i)
	}
	want += "  ! GET /\n    no answer\n  ! line 0\n  ! line 0\n"
	got := shown(t, screen.Options{Options: story.Options{Rounds: 2}}, entries...)
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant first\n%s", got, want)
	}
	if got := shown(t, screen.Options{Options: story.Options{Rounds: 2, Verbose: true}}, entries...); !strings.Contains(got, "    | line 0\n    | line 1\n") || strings.Contains(got, "lines before") {
		t.Errorf("the log is not shown whole:\n%s", got)
	}
	if got := shown(t, screen.Options{Quiet: true}, entries...); got != "" {
		t.Errorf("Quiet shows\n%s", got)
	}
	if got := shown(t, screen.Options{Quiet: true}, entries[2]); got != "" {
		t.Errorf("Quiet shows of a step that was cut off\n%s", got)
	}
}

// TestCommandTime: the duration is active time of the run, and a long step gets a
// line even if it reports nothing.
func TestCommandTime(t *testing.T) {
	out := newBuffer()
	s := screen.New(out, screen.Options{})
	for _, e := range commandsOf(t, map[string][2]int64{"short": {100, 5000}, "long": {5000, 65_230}}, "short", "long") {
		s.Show(history.Decode(e))
	}
	s.Close()
	if got, want := out.String(), "  long (1m0.2s)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// commandsOf returns the events of commands, with the run's active time at the
// start and the end of each. Only a journal file can set that time.
func commandsOf(t *testing.T, active map[string][2]int64, names ...string) []journal.Event {
	t.Helper()
	home, err := journal.OpenHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	run, prev, seq := home.NewRun(), "", 0
	var lines []byte
	for _, name := range names {
		for i, phase := range []journal.Phase{journal.Begin, journal.Record} {
			seq++
			line := fmt.Appendf(nil, `{"v":1,"seq":%d,"time":"2026-01-02T03:04:05Z","run":%q,"type":"command","phase":%q,"step":{"round":0,"name":%q},"active_ms":%d,"prev":%q}`,
				seq, run, phase, name, active[name][i], prev)
			prev = fmt.Sprintf("%x", sha256.Sum256(line))
			lines = append(append(lines, line...), '\n')
		}
	}
	if err := os.WriteFile(filepath.Join(home.Dir(), "runs", run+".jsonl"), lines, 0o600); err != nil {
		t.Fatal(err)
	}
	events, err := home.Read(run)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// TestCommandCutOff: a command without a result is reported once at the end. The
// result that another process records later is still shown.
func TestCommandCutOff(t *testing.T) {
	got := shown(t, screen.Options{Options: story.Options{Rounds: 1}}, begun("health check"), journal.Entry{Type: "end", Payload: hone.End{}},
		journal.Entry{Type: "resume", Payload: hone.Limits{}}, recorded("health check", history.Report{Said: "passed"}))
	if want := "round 1 of 1\n  health check: no result recorded\n  health check: passed\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestStepsOfALoop: the reports of steps are shown, also if they are in an
// object. A server is mentioned if no step reports it.
func TestStepsOfALoop(t *testing.T) {
	type told struct {
		history.Report
		Own string `json:"own"`
	}
	long := strings.Repeat("x", 100_000)
	dir, out := t.TempDir(), newBuffer()
	home, err := journal.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	s := screen.New(out, screen.Options{Options: story.Options{Rounds: 1, Get: home.Get}})
	crashtest.RunProcess(t, dir, nil, history.Observer(s.Show), func(*hone.Run) hone.Round {
		return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
			say := func(t told) func(context.Context) (told, error) {
				return func(context.Context) (told, error) { return t, nil }
			}
			_, err := hone.Step(ctx, r, "compose", nil, say(told{history.Report{Said: "the role does this\nand that"}, long}))
			_, err2 := hone.Step(ctx, r, "other", nil, say(told{Own: long}))
			_, err3 := hone.Once(ctx, r, "server", nil, func(ctx context.Context) (told, error) {
				return told{history.Report{Said: "up"}, ""}, r.Served(history.Served{What: history.Up, URL: "http://a"})
			}, nil)
			_, err4 := hone.Once(ctx, r, "hook", nil, say(told{history.Report{Said: "failed", Log: "why\n"}, long}), nil)
			for _, what := range []string{history.Reached, history.Down, history.Up} {
				err = errors.Join(err, r.Served(history.Served{What: what, URL: "http://a"}))
			}
			return nil, errors.Join(err, err2, err3, err4)
		}
	})
	s.Close()
	want := "round 1 of 1\n  the role does this\n    and that\n  server: up\n  ! hook: failed\n    | why\n" +
		"    the server was reached\n  the server was stopped\n  the server is up at http://a\n"
	got := strings.ReplaceAll(still(out.String()), " (0s)", "") // of a step that a busy machine has slowed down
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// worker is an agent that changes a directory and calls models.
type worker func(r *hone.Run) error

func (w worker) generate(r *hone.Run) model.Model { return hired{w, r} }

type hired struct {
	work worker
	run  *hone.Run
}

func (h hired) Generate(context.Context, model.Request) (model.Reply, error) {
	return model.Reply{Parts: []model.Part{{Text: "I did it."}}, Finish: model.Stop, Usage: &model.Usage{Input: 100, Output: 10}}, h.work(h.run)
}

// session returns what a screen shows of an agent's session, and of a second one
// that does nothing.
func session(t *testing.T, o screen.Options, files map[string]string, w worker) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	home, err := journal.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	out := newBuffer()
	o.Rounds, o.Get, o.Turns = 1, home.Get, map[string]int{"builder": 60}
	s := screen.New(out, o)
	crashtest.RunProcess(t, dir, nil, history.Observer(s.Show), func(r *hone.Run) hone.Round {
		return func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
			for _, work := range []worker{w, func(*hone.Run) error { return nil }} {
				role := hone.Role{Name: "builder", Model: work.generate(r), Agent: true, Called: "command/toy", MaxOutput: 1000, Price: &hone.Price{Input: 10, Output: 10}}
				if _, err := r.Delegate(ctx, role, []model.Message{{Role: model.User, Parts: []model.Part{{Text: "build it"}}}}); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}
	})
	s.Close()
	return still(out.String())
}

// build changes files in a run's tree and pays for two calls to models.
func build(r *hone.Run) error {
	dir := r.Tree.Dir()
	err := errors.Join(os.WriteFile(filepath.Join(dir, "new.txt"), []byte("12345"), 0o644), os.WriteFile(filepath.Join(dir, "old.txt"), []byte("other"), 0o644),
		os.WriteFile(filepath.Join(dir, "own.log"), []byte("of the loop"), 0o644), os.Remove(filepath.Join(dir, "gone.txt")))
	for range 2 {
		_, settle, err2 := r.Account().Reserve("builder", hone.Candidate{Called: "a/b", MaxOutput: 100, Price: &hone.Price{Input: 10, Output: 10}}, 10)
		if err2 == nil {
			err2 = settle(&model.Usage{Input: 500, Output: 20}, nil)
		}
		err = errors.Join(err, err2)
	}
	return err
}

// TestAgentSession: the screen shows that an agent works, its result, and the files
// that changed.
func TestAgentSession(t *testing.T) {
	files := map[string]string{"old.txt": "one", "gone.txt": "two", "same.txt": "three"}
	own := func(path string) bool { return path == "own.log" }
	want := `round 1 of 1
  builder works: command/toy, prompt of 60 bytes
  builder: reply of 9 bytes in 0s, 100 tokens in, 10 out
    deleted gone.txt
    created new.txt, 5 bytes
    changed old.txt, 5 bytes
  builder works: command/toy, prompt of 60 bytes
  builder: reply of 9 bytes in 0s, 100 tokens in, 10 out
`
	if diff := cmp.Diff(want, session(t, screen.Options{Options: story.Options{Own: own}}, files, build)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := session(t, screen.Options{Quiet: true}, files, build); got != "" {
		t.Errorf("Quiet shows\n%s", got)
	}
	many := func(r *hone.Run) error {
		for i := range 20 {
			if err := os.WriteFile(filepath.Join(r.Tree.Dir(), fmt.Sprint(i)), nil, 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	got := session(t, screen.Options{}, nil, many)
	if n := strings.Count(got, "    created "); n != 12 || !strings.Contains(got, "    [8 more files changed: hone show -v]\n") {
		t.Errorf("%d of 20 files are named:\n%s", n, got)
	}
	if n := strings.Count(session(t, screen.Options{Options: story.Options{Whole: true}}, nil, many), "    created "); n != 20 {
		t.Errorf("%d of 20 files are named with Whole", n)
	}
}

// TestLiveSteps: the live lines name the step, or the agent and its usage so far.
func TestLiveSteps(t *testing.T) {
	agent := journal.Entry{Type: "ask", Phase: journal.Begin, Step: &journal.Identity{Round: 1, Session: 1, Turn: 1, Name: "builder"}, Payload: history.Asked{Role: "builder", Model: "command/toy", Command: true}}
	for want, entries := range map[string][]journal.Entry{
		"health check":           {begun("health check")},
		"checking  go vet ./...": {{Type: "check", Phase: journal.Begin, Step: at(1, "check")}},
		"builder works":          {agent},
		"b, builder, turn 1/60":  {{Type: "ask", Phase: journal.Begin, Step: at(1, "builder"), Payload: history.Asked{Role: "builder", Model: "a/b"}}},
		"builder works, 1 call to models, 1 200 tokens": {agent, {Type: "commit", Payload: history.Commit{Tokens: 1200, Basis: "provider"}}},
	} {
		if got := live(t, screen.Options{Options: story.Options{Check: "go vet ./...", Turns: map[string]int{"builder": 60}}}, entries...); !strings.Contains(got, " "+want+"  0s") {
			t.Errorf("%q is not shown:\n%s", want, got)
		}
	}
}

// TestCommandOfAModelChangesFiles: files that a command changes are shown like those that an edit changes.
func TestCommandOfAModelChangesFiles(t *testing.T) {
	dir := t.TempDir()
	p := process{replies: replies{calls("bash", `{"command": "make"}`), words("Done.")}, tools: func(r *hone.Run) []tool.Tool {
		return []tool.Tool{commands(tool.Tool{Spec: model.Spec{Name: "bash"}, Run: func(context.Context, tool.Input) (tool.Result, error) {
			zero := 0
			return tool.Result{Exit: &zero}, os.WriteFile(filepath.Join(dir, "made"), []byte("123"), 0o644)
		}})}
	}}
	home, err := journal.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	got := p.shown(t, dir, screen.Options{Options: story.Options{Get: home.Get}})
	if want := "    bash make: exit 0, 0 bytes\n    created made, 3 bytes\n"; !strings.Contains(got, want) {
		t.Errorf("%q is not shown:\n%s", want, got)
	}
}
