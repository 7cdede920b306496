//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"hone/model"
	"hone/model/modeltest"
)

// TestPrefixOfRequests plays a run of each loop and counts what is repeated: 99 percent of
// the request before, which is 95 percent of later input. The rest is what a session reads
// for the first time. The sizes are fixed, so that the figures are too. phase is counted
// in phase_flow.txtar.
func TestPrefixOfRequests(t *testing.T) {
	skipShort(t)
	const lines = 60
	for _, tt := range []struct {
		loop  []string
		turns []modeltest.Turn
	}{
		{[]string{"fix", "Fix the sum."}, session("The sum is right.")},
		{[]string{"task", "Fix the sum."}, session("<final_answer>\nSTATUS: COMPLETE\n</final_answer>")},
		{[]string{"implement", "Fix the sum."}, replying(func(n int) string { return fmt.Sprintf("^^^sum\n%d\n^^^end\n", n) })},
		{[]string{"reconcile"}, replying(func(n int) string { return fmt.Sprintf(`{"create-or-update": {"sum": "%d\n"}}`, n) })},
	} {
		t.Run(tt.loop[0], func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for n := range filesRead {
				writeLines(t, filepath.Join(dir, fmt.Sprintf("part%d", n)), lines)
			}
			writeLines(t, filepath.Join(dir, "specs", "sum.md"), lines)
			if err := os.WriteFile(filepath.Join(dir, "build.sh"), []byte("grep -q right sum\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("git", "-C", dir, "init", "-q", "-b", "main").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			s := modeltest.NewServer(t, tt.turns...)
			args := append(tt.loop, "-m", "openai/m", "--sandbox", "none", "--trust", "--rounds", "4", "--patience", "9", "--check", "grep -q right sum")
			_, out := honeIn(t, dir, []string{"OPENAI_BASE_URL=" + s.URL + "/v1", "GIT_CONFIG_GLOBAL=" + os.DevNull}, args...)
			p, err := prefixesOf(dir)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s: %s, in %d requests", tt.loop[0], p, len(s.Received()))
			if p.repeatedPercent() < 99 || 100*p.repeated < 95*p.later {
				t.Errorf("%s; want 99%% and 95%%\n%s", p, out)
			}
		})
	}
}

// The calls of a session: it reads files, then changes some, and runs the check after each
// change. Recorded sessions of agents that fix bugs of real projects have 16 to 64 turns
// on average, 30 with Claude (table 1 of the card of the data set
// nebius/SWE-rebench-openhands-trajectories).
const (
	filesRead    = 20
	filesChanged = 5
)

// session are the turns of a session, one call each.
func session(answer string) (turns []modeltest.Turn) {
	use := &model.Usage{Input: 100, Output: 10}
	call := func(name, args string) {
		id := fmt.Sprint("call_", len(turns))
		turns = append(turns, modeltest.Turn{Usage: use, Calls: []model.Call{{ID: id, Name: name, Args: args}}})
	}
	for n := range filesRead {
		call("read", fmt.Sprintf(`{"path": "part%d"}`, n))
	}
	for n := range filesChanged {
		call("edit", fmt.Sprintf(`{"path": "part%d", "edits": [{"oldText": %q, "newText": "a better line\n"}]}`, n, line(7)))
		call("bash", `{"command": "grep -q right sum"}`)
	}
	return append(turns, modeltest.Turn{Usage: use, Text: answer})
}

// replying are the turns of rounds with one reply each.
func replying(text func(n int) string) (turns []modeltest.Turn) {
	for n := range 4 {
		turns = append(turns, modeltest.Turn{Usage: &model.Usage{Input: 100, Output: 10}, Text: text(n)})
	}
	return turns
}

func writeLines(t *testing.T, path string, lines int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	var content []byte
	for n := range lines {
		content = append(content, line(n)...)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// line is the nth line of a file.
func line(n int) string { return fmt.Sprintf("line %2d of forty bytes that says nothing\n", n) }
