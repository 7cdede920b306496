package task_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"hone"
	"hone/loop/task"
	"hone/model"
)

// TestArtifacts: CodeScribe's files, in its shapes, always TOML (ruling S1).
func TestArtifacts(t *testing.T) {
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "logs", "usage.toml")
	const old = "[[event]]\nevent = \"run_start\"\nmode = \"of an earlier run\"\n"
	files(t, dir, map[string]string{"Spec.toml": specText, "a": strings.Repeat("long ", 200<<10), ".codescribe/loop/review.toml": old})
	files(t, filepath.Dir(log), map[string]string{"usage.toml": old})
	m := &recorder{replies: slices.Concat(
		[]model.Reply{calls([][]string{{"bash", "command", "make"}, {"read", "path", "a"}, {"dance", "path", "\x1b"}}), say(incomplete)},
		wrote("loop = 1\n[[pending]]\nitem = 'x'\n"),
		[]model.Reply{call("read", "path", "gone"), say("STATUS: INCOMPLETE")},
		wrote("loop = 2\n[[pending]]\nitem = 'x'\n"))}
	p := process{model: m, rounds: 2, loop: task.Loop{Log: log}}
	if end := p.live(t, dir); end.Kind != hone.KindRounds {
		t.Fatalf("%+v", end)
	}
	const session = "run_start iteration_start model_response tool_start tool_end iteration_end iteration_start model_response run_end"
	const first = "run_start iteration_start model_response tool_start tool_end tool_start tool_end tool_rejected iteration_end iteration_start model_response run_end"
	for range 2 { // finishing twice is finishing once
		line := p.finish(t, dir)
		if !strings.HasPrefix(line, "completed 2/2 loop(s) — run: ") || !strings.HasSuffix(line, " — artifacts: "+filepath.Join(dir, ".codescribe", "loop")) {
			t.Errorf("%q", line)
		}
		for name, want := range map[string]string{
			filepath.Join(dir, ".codescribe/loop/execution.toml"): session,
			filepath.Join(dir, ".codescribe/loop/review.toml"):    "run_start " + session + " " + session,
			log: "run_start " + first + " " + session,
		} {
			if diff := cmp.Diff(want, names(events(t, "", name))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
	var run, state map[string]any
	loop := filepath.Join(dir, ".codescribe", "loop")
	must(0, errors.Join(toml.Unmarshal(must(os.ReadFile(filepath.Join(loop, "run.toml"))), &run), toml.Unmarshal(must(os.ReadFile(filepath.Join(loop, "state.toml"))), &state)))
	if run["loops_completed"] != int64(2) || run["agent_loops"] != int64(2) || run["agent_iterations"] != int64(30) || run["model"] != "test/model" ||
		run["task_file"] != filepath.Join(dir, "Spec.toml") || run["cumulative_input_tokens"] != int64(800) || run["cumulative_cache_read_tokens"] != int64(20) {
		t.Errorf("run.toml: %v", run)
	}
	if state["phase"] != "idle" || state["loop_index"] != int64(2) || state["result"] != "rounds" || state["exit"] != int64(1) {
		t.Errorf("state.toml: %v", state)
	}
	all := events(t, "", log)
	if bash := all[5]; bash["tool"] != "bash" || bash["ok"] != true || bash["output_preview"] != "exit_code: 0\nSTDOUT:\n\x1b[31m'''\x00\rmake\nSTDERR:\n" {
		t.Errorf("%v", bash)
	}
	if read := all[7]; read["tool"] != "read" || read["output_chars"] != int64(1000<<10) || len(read["output_preview"].(string)) != 500 {
		t.Errorf("%v", read)
	}
	if no := all[8]; no["reason"] != "unknown_tool" || no["args"] != `{"path":"\u001b"}` {
		t.Errorf("%v", no)
	}
}

// TestFinishInTheMiddle: a run that stopped within a session leaves logs of as
// much as there was, and a resumed one starts nothing again.
func TestFinishInTheMiddle(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText})
	m := &recorder{replies: []model.Reply{call("bash", "command", "make")}}
	p := process{model: m, rounds: 2}
	if end := p.live(t, dir); end.Kind != hone.KindFailed {
		t.Fatalf("%+v", end)
	}
	if line := p.finish(t, dir); !strings.HasPrefix(line, "completed 0/2 loop(s)") {
		t.Errorf("%q", line)
	}
	const log = ".codescribe/loop/execution.toml"
	const half = "run_start iteration_start model_response tool_start tool_end iteration_end iteration_start"
	if got := names(events(t, dir, log)); got != half {
		t.Errorf("%s", got)
	}
	state := string(must(os.ReadFile(filepath.Join(dir, ".codescribe", "loop", "state.toml"))))
	holds(t, "state.toml", state, "loop_index = 1\nphase = \"idle\"\n", "result = \"failed\"\nexit = 5\n")
	m.replies = append(m.replies, say(complete))
	if end := p.live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
	if got := names(events(t, dir, log)); got != half+" model_response run_end" {
		t.Errorf("%s", got)
	}
}

// TestNewArtifactsAreIgnored by git; those of a directory that exists are left to its user.
func TestNewArtifactsAreIgnored(t *testing.T) {
	for name, existing := range map[string]map[string]string{"new": {}, "existing": {".codescribe/logs/toolusage.toml": ""}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files(t, dir, map[string]string{"a": "done\n"})
			files(t, dir, existing)
			process{model: &recorder{replies: []model.Reply{say(complete)}}, loop: task.Loop{Text: "Do nothing."}, rounds: 1, check: saysDone(dir)}.live(t, dir)
			ignored, err := os.ReadFile(filepath.Join(dir, ".codescribe", ".gitignore"))
			if wasNew := len(existing) == 0; wasNew && string(ignored) != "*\n" || !wasNew && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf(".gitignore: %q, %v", ignored, err)
			}
		})
	}
}
