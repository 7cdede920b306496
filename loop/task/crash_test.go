package task_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"hone"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
)

// TestCrashBeforeABlocker: a review that was not written, one that cannot be
// read, sessions whose turns are used up, an answer that is none, and at last
// something that only the user can resolve.
func TestCrashBeforeABlocker(t *testing.T) {
	taskScene(3, 3, slices.Concat(
		[]model.Reply{say("no status"), say(incomplete), say("<final_answer>nothing to say</final_answer>"), say("nothing to say")},
		[]model.Reply{call("read", "path", "a"), call("write", "path", "b/c", "content", "sea\n"), call("read", "path", "a")},
		wrote("loop = 1\n[[pending]]\n"),
		[]model.Reply{say(incomplete)},
		wrote("loop = 3\nsummary = 'stuck'\nblocker = 'the key is missing'\n[[pending]]\nitem = 'more'\n"),
	)).Run(t)
}

// TestCrashWithoutSuccess: the loops are used up, and the check is never
// content.
func TestCrashWithoutSuccess(t *testing.T) {
	taskScene(2, 0, slices.Concat(
		[]model.Reply{calls([][]string{{"write", "path", "a", "content", "one\n"}, {"write", "path", ".codescribe/x", "content", "no"}}), say(complete)},
		[]model.Reply{say(incomplete)},
		wrote("loop = 2\nsummary = ''\nblocker = ''\n[[pending]]\nitem = 'more'\n"),
	)).Run(t)
}

func taskScene(loops, turns int, replies []model.Reply) crashtest.Scene {
	return crashtest.Scene{
		CompareRequests: true,
		Replies:         replies,
		Setup: func(t testing.TB, dir string) {
			files(t, dir, map[string]string{"Spec.toml": specText, "a": "zero\n"})
		},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			end := process{model: m, rounds: loops, turns: turns, check: saysDone(dir), observe: o}.live(t, dir)
			timeless(t, dir)
			return end
		},
	}
}

// TestCrashAtEveryPoint: with a tool that writes and one that runs commands,
// a review and a check that is not content at first.
func TestCrashAtEveryPoint(t *testing.T) {
	crashtest.Scene{
		Replies: slices.Concat(
			[]model.Reply{
				calls([][]string{{"read", "path", "a"}, {"read", "path", "a"}, {"write", "path", "a", "content", "one\n"}, {"bash", "command", "make"}}),
				say(incomplete),
				call("write", "path", "elsewhere", "content", "x"),
			},
			wrote("loop = 1\nsummary = ''\nblocker = ''\n[[pending]]\nitem = 'more'\n"),
			[]model.Reply{say(complete), call("write", "path", "a", "content", "done\n"), say(complete)},
		),
		Setup: func(t testing.TB, dir string) {
			files(t, dir, map[string]string{"Spec.toml": specText, "a": "zero\n", output: "loop = 1\n", ".codescribe/loop/review.toml": "x = 1\n"})
		},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			end := process{model: m, rounds: 5, check: saysDone(dir), observe: o}.live(t, dir)
			timeless(t, dir)
			return end
		},
	}.Run(t)
}

// timeless leaves of the artifacts what does not depend on the time, on ids,
// or on what a command that was cut off can have said.
func timeless(t testing.TB, dir string) {
	t.Helper()
	left := map[string]string{}
	for _, name := range []string{"execution.toml", "review.toml"} {
		left[name] = names(events(t, dir, ".codescribe/loop/"+name))
	}
	at := filepath.Join(dir, ".codescribe", "loop")
	for _, file := range slices.Concat([]string{filepath.Join(at, "run.toml"), filepath.Join(at, "state.toml")}, must(filepath.Glob(filepath.Join(at, "metadata", "*")))) {
		var doc map[string]any
		must(0, toml.Unmarshal(must(os.ReadFile(file)), &doc))
		name := filepath.ToSlash(must(filepath.Rel(at, file)))
		for _, key := range []string{"loops_completed", "cumulative_output_tokens", "loop_index", "phase", "stop_reason", "iterations", "usage", "rejected_calls", "phase_files"} {
			left[name] += fmt.Sprintln(doc[key])
		}
	}
	for name, text := range left {
		files(t, dir, map[string]string{".codescribe/loop/" + name: text})
	}
}
