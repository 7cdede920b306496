package task_test

import (
	"slices"
	"testing"

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
