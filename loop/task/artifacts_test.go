package task_test

import (
	"errors"
	"io"
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
	for range 2 { // writing twice is writing once
		line := p.again(t, dir)
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
	if state["phase"] != "idle" || state["loop_index"] != int64(2) || state["result"] != "rounds" {
		t.Errorf("state.toml: %v", state)
	}
	var manifest, author, review map[string]any
	for name, into := range map[string]any{"manifest.toml": &manifest, "loop_001_author.toml": &author, "loop_002_review.toml": &review} {
		must(0, toml.Unmarshal(must(os.ReadFile(filepath.Join(loop, "metadata", name))), into))
	}
	if diff := cmp.Diff([]any{"loop_001_author.toml", "loop_001_review.toml", "loop_002_author.toml", "loop_002_review.toml"}, manifest["phase_files"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(run, manifest["run"]); diff != "" {
		t.Errorf("the manifest's run (-run.toml +manifest.toml):\n%s", diff)
	}
	seconds, _ := author["duration_s"].(float64)
	for _, key := range []string{"duration_s", "created_at"} {
		delete(author, key)
	}
	preview := must(os.ReadFile(filepath.Join(dir, "a")))[:500]
	if diff := cmp.Diff(map[string]any{
		"run_id": run["run_id"], "loop_index": int64(1), "phase": "author", "model": "test/model", "task_file": filepath.Join(dir, "Spec.toml"), "workdir": dir,
		"stop_reason": "final_text", "final_text_present": true, "iterations": int64(2),
		"usage":      map[string]any{"input": int64(200), "output": int64(20), "reasoning": int64(0), "cache_write": int64(0), "cache_read": int64(5)},
		"tool_calls": map[string]any{"executed": int64(2), "rejected": int64(1), "errors": int64(0), "ok": int64(2)},
		"tools": []any{
			map[string]any{"name": "bash", "args": map[string]any{"command": "make"}, "ok": true, "output_preview": "exit_code: 0\nSTDOUT:\n\x1b[31m'''\x00\rmake\nSTDERR:\n"},
			map[string]any{"name": "read", "args": map[string]any{"path": "a"}, "ok": true, "output_preview": string(preview)},
		},
		"rejected_calls": []any{map[string]any{"name": "dance", "args": map[string]any{"path": "\x1b"}, "reason": "unknown_tool"}},
	}, author); diff != "" || seconds < 0 {
		t.Errorf("after %v s (-want +got):\n%s", seconds, diff)
	}
	if review["phase"] != "review" || review["loop_index"] != int64(2) || review["iterations"] != int64(2) {
		t.Errorf("%v", review)
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

// TestEndInTheMiddle: a run that stopped within a session leaves logs of as
// much as there was, and a resumed one starts nothing again.
func TestEndInTheMiddle(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText})
	m := &recorder{replies: []model.Reply{call("bash", "command", "make")}}
	p := process{model: m, rounds: 2}
	if end := p.live(t, dir); end.Kind != hone.KindFailed {
		t.Fatalf("%+v", end)
	}
	const log = ".codescribe/loop/execution.toml"
	const half = "run_start iteration_start model_response tool_start tool_end iteration_end iteration_start"
	if got := names(events(t, dir, log)); got != half {
		t.Errorf("%s", got)
	}
	state := string(must(os.ReadFile(filepath.Join(dir, ".codescribe", "loop", "state.toml"))))
	holds(t, "state.toml", state, "loop_index = 1\nphase = \"idle\"\n", "result = \"failed\"\n")
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

// TestArtifactsAreLive: a user who follows a log sees each event when it happens, and what a killed process left half is not in
// the way.
func TestArtifactsAreLive(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "usage.toml")
	files(t, dir, map[string]string{"Spec.toml": specText, "usage.toml": "x = 1"})
	follow := must(os.Open(log))
	defer follow.Close()
	var seen []string
	p := process{rounds: 1, loop: task.Loop{Log: log}, after: func(string) {
		seen = append(seen, names(events(t, dir, ".codescribe/loop/execution.toml")), string(must(os.ReadFile(filepath.Join(dir, ".codescribe", "loop", "state.toml")))))
	}}
	m := &recorder{replies: []model.Reply{call("write", "path", "b", "content", "1")}}
	p.model = m
	p.live(t, dir)
	if len(seen) != 2 || seen[0] != "run_start iteration_start model_response tool_start" || !strings.Contains(seen[1], `phase = "execution"`) {
		t.Errorf("while a tool runs: %q", seen)
	}
	half := string(must(io.ReadAll(follow)))
	if !strings.HasPrefix(half, "x = 1\n[[event]]\n") || !strings.Contains(half, `event = "tool_end"`) {
		t.Errorf("a reader of the log has seen %q", half)
	}
	files(t, dir, map[string]string{"usage.toml": half + "[[event]]\nevent = 'iter"})
	m.replies = append(m.replies, say(complete))
	p.live(t, dir)
	const whole = "run_start iteration_start model_response tool_start tool_end iteration_end iteration_start model_response run_end"
	if got := names(events(t, "", log)); got != whole {
		t.Error(got)
	}
}

// TestArtifactsThatCannotBeWritten end the run.
func TestArtifactsThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText, ".codescribe/loop/run.toml/a": ""})
	m := &recorder{replies: []model.Reply{say(complete)}}
	if end := (process{model: m, rounds: 2}).live(t, dir); end.Kind != hone.KindFailed || !strings.Contains(end.Why, "run.toml") {
		t.Errorf("%+v", end)
	}
}
