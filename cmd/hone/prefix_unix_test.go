//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hone/model"
	"hone/model/modeltest"
)

// TestPrefixOfRequests plays a long run of each loop and counts what is repeated. The
// sizes are fixed, so that the figures are too. phase is counted in phase_flow.txtar.
func TestPrefixOfRequests(t *testing.T) {
	skipShort(t)
	const lines = 60
	for _, tt := range []struct {
		loop  []string
		turns []modeltest.Turn
		share int // least percentage of later input
	}{
		{[]string{"fix", "Fix the sum."}, reading("The sum is right."), 90},
		{[]string{"task", "Fix the sum."}, reading("<final_answer>\nSTATUS: COMPLETE\n</final_answer>"), 90},
		{[]string{"implement", "Fix the sum."}, replying(func(n int) string { return fmt.Sprintf("^^^sum\n%d\n^^^end\n", n) }), 90},
		{[]string{"reconcile"}, replying(func(n int) string { return fmt.Sprintf(`{"create-or-update": {"sum": "%d\n"}}`, n) }), 90},
	} {
		t.Run(tt.loop[0], func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for n := range 20 {
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
			if p.kept() < 99 || 100*p.repeated < tt.share*p.later {
				t.Errorf("%s; want 99%% and %d%%\n%s", p, tt.share, out)
			}
		})
	}
}

// reading are the turns of sessions that read one file after another.
func reading(answer string) (turns []modeltest.Turn) {
	use := &model.Usage{Input: 100, Output: 10}
	for n := range 20 {
		args := fmt.Sprintf(`{"path": "part%d"}`, n)
		turns = append(turns, modeltest.Turn{Usage: use, Calls: []model.Call{{ID: fmt.Sprint("call_", n), Name: "read", Args: args}}})
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
	if err := os.WriteFile(path, []byte(strings.Repeat("a line of forty bytes that says nothing\n", lines)), 0o644); err != nil {
		t.Fatal(err)
	}
}
