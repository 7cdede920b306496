package task_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/loop/task"
	"hone/model"
	"hone/workspace"
	"hone/workspace/secret"
)

// TestPendingIsFixed: the next loop gets what one loop leaves, and fixes it; facts
// are hone's own (rulings S1, S3, S4).
func TestPendingIsFixed(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText, "a": "zero\n"})
	m := &recorder{replies: slices.Concat(
		[]model.Reply{
			say("Let me start by reading the files."),
			calls([][]string{{"read", "path", "a"}, {"read", "path", "gone"}, {"write", "path", "a", "content", "one\n"}, {"bash", "command", "make\ntest"}}),
			calls([][]string{{"write", "path", "Spec.toml", "content", "mine"}, {"dance"}, {"write", "path", "b", "content", "bee\n"}}),
			say(incomplete),
		},
		wrote("loop = 1\nsummary = 'half'\nblocker = ''\n[[pending]]\nitem = 'make a say done'\n"),
		[]model.Reply{call("write", "path", "a", "content", "done\n"), say(complete)},
	)}
	var allowed [][]string
	p := process{model: m, rounds: 5, check: saysDone(dir), allowed: &allowed}
	if end := p.live(t, dir); end.Kind != hone.KindDone || end.Rounds != 2 {
		t.Fatalf("%+v", end)
	}
	if diff := cmp.Diff([][]string{{"make"}, {"make"}, {"make"}}, allowed); diff != "" {
		t.Errorf("allowed (-want +got):\n%s", diff)
	}
	prompts := m.prompts()
	if len(prompts) != 3 {
		t.Fatalf("%d sessions", len(prompts))
	}
	holds(t, "the first execution", prompts[0], "Make a say done.\n\nLoop 1 of 5.\nThe check reports:\n  - a says \"zero\\n\"\n    and not done\n",
		"Working directory: "+dir, "Task file: Spec.toml (read-only", "\nCheck: make test (it decides", "PHASE: EXECUTION", "1. The complete task is above.")
	holds(t, "the review", prompts[1], "Task file: Spec.toml", "Review output: "+output+" (write here)", "PHASE: REVIEW",
		"## Verified actions from loop 1 (harness-computed)\nFiles read: a\nFiles written: a, b\nCommands run:\n  make test  →  exit_code: 0\nNo command ran after the last write or edit.\nErrors:\n  read(gone): Error:",
		"## Attempted but NOT executed (harness-rejected — no workspace effect)\n  write(Spec.toml): this file may not be changed here\n  dance(): unknown_tool\n",
		"[Execution agent report — loop 1]\n<final_answer>\n**STATUS: INCOMPLETE**", "loop = 1\n")
	holds(t, "the second execution", prompts[2], "Make a say done.\n\nLoop 2 of 5.\nFiles created across all prior loops: a, b\nLast loop — ran: make test  →  exit_code: 0 | errors: read(gone)",
		"Pending next steps:\n  - make a say done\nYour last session changed a, b, and said: <final_answer> **STATUS: INCOMPLETE**", "The task and the state that the last loop left are above.")
	for i, req := range m.asked {
		if n := strings.Count(whole(req), "Make a say done."); n > 1 {
			t.Errorf("request %d has the task %d times", i, n)
		}
		for j := 1; j < len(req.Messages); j++ {
			if req.Messages[j].Role == req.Messages[j-1].Role {
				t.Errorf("request %d has two messages of one side in a row", i)
			}
		}
		want := task.System
		if strings.Contains(whole(req), "PHASE: REVIEW") {
			want = task.ReviewerSystem
		}
		if req.System != want || strings.Contains(req.System, "Loop") {
			t.Errorf("request %d has another system text", i)
		}
	}
	if said := m.asked[1].Messages[2].Parts[0].Text; !strings.Contains(said, "not your final answer") {
		t.Errorf("a text that is no answer is answered with %q", said)
	}
}

// TestReviewerSystem: the reviewer has the executor's rules, and no instructions for tools
// that it does not have.
func TestReviewerSystem(t *testing.T) {
	rules, own, ok := strings.Cut(task.ReviewerSystem, "# How to work")
	if !ok || !strings.HasPrefix(task.System, rules) {
		t.Errorf("the rules differ: %s", rules)
	}
	holds(t, "the reviewer's system text", own, "You cannot run tests or checks", "# How to end")
	for _, foreign := range []string{"comprehensive edit", "closest test", "`rm`"} {
		if strings.Contains(own, foreign) || !strings.Contains(task.System, foreign) {
			t.Errorf("%s in the reviewer's text, or not in the executor's", foreign)
		}
	}
}

// TestCheckOfAnOlderTree: while pending items keep the check from running, the
// next loop gets its findings only if no file has changed since.
func TestCheckOfAnOlderTree(t *testing.T) {
	for name, tt := range map[string]struct {
		first []model.Reply
		want  string
	}{
		"unchanged": {[]model.Reply{call("read", "path", "a")}, "  - write done\n  - look again\nThe check reports:\n  - a says \"zero\\n\"\n    and not done\n"},
		"changed":   {[]model.Reply{call("write", "path", "a", "content", "one\n")}, "  - write done\n  - look again\nYour last session changed a, and said: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files(t, dir, map[string]string{"Spec.toml": specText, "a": "zero\n"})
			m := &recorder{replies: slices.Concat(tt.first, []model.Reply{say(incomplete)}, noReview("no review"), []model.Reply{
				call("write", "path", "a", "content", "done\n"), say(complete)})}
			if end := (process{model: m, rounds: 2, check: saysDone(dir)}).live(t, dir); end.Kind != hone.KindDone {
				t.Fatalf("%+v", end)
			}
			holds(t, "the second execution", m.prompts()[2], tt.want)
		})
	}
}

// TestNoReview: a review that does not count changes nothing, and an old one
// cannot end a run (ruling S4).
func TestNoReview(t *testing.T) {
	for name, replies := range map[string][]model.Reply{
		"nothing":         noReview("fine"),
		"old number":      append([]model.Reply{call("write", "path", output, "content", "loop = 0\n")}, noReview("fine")...),
		"garbage":         append([]model.Reply{call("write", "path", output, "content", "It is fine.")}, noReview("fine")...),
		"elsewhere":       append([]model.Reply{call("write", "path", "review_output.toml", "content", "loop = 1\n")}, noReview("fine")...),
		"by a command":    append([]model.Reply{call("bash", "command", "into "+output+" loop = 7")}, noReview("fine")...),
		"not TOML at all": append([]model.Reply{call("bash", "command", "into "+output+" ][")}, noReview("fine")...),
		"a folder":        append([]model.Reply{call("bash", "command", "into "+output+"/x y")}, noReview("fine")...),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files(t, dir, map[string]string{"Spec.toml": specText, "a": "zero\n", output: "loop = 1\nsummary = 'of an earlier run'\nblocker = ''\n"})
			m := &recorder{replies: slices.Concat([]model.Reply{say(incomplete)}, replies, []model.Reply{say("STATUS: INCOMPLETE")}, replies)}
			end := process{model: m, rounds: 2}.live(t, dir)
			var left []string
			for _, f := range end.Findings {
				left = append(left, f.Source+": "+f.Text)
			}
			if diff := cmp.Diff([]string{"pending: write done", "pending: look again"}, left); diff != "" || end.Kind != hone.KindRounds || end.Rounds != 2 {
				t.Errorf("%+v (-want +got):\n%s", end, diff)
			}
			holds(t, "the second execution", strings.Join(m.prompts(), "\n"), "Loop 2 of 2.\nPending next steps:\n  - write done\n  - look again\n")
		})
	}
}

// TestReviewerIsReminded once of the file that it has not written; one that has
// written it ends with any text.
func TestReviewerIsReminded(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText})
	m := &recorder{replies: []model.Reply{say(incomplete), say("All is well."), call("write", "path", output, "content", "loop = 1\n"), say("I wrote it.")}}
	if end := (process{model: m, rounds: 3}).live(t, dir); end.Kind != hone.KindDone || end.Rounds != 1 || len(m.asked) != 4 {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	holds(t, "the reminder", whole(m.asked[2]), "Your review is missing.")
}

// TestFirstPromptListsFiles: up to 200, the least deep ones first.
func TestFirstPromptListsFiles(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText, "b/c": "", ".env": "KEY=1", ".codescribe/x": ""})
	p := process{model: &recorder{}, loop: task.Loop{Guard: secret.NewGuard(nil)}}
	tree := must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	holds(t, "the prompt", p.preview(t, tree, 1, 0).Text, "\nFiles:\n  .env (withheld), Spec.toml\n  b/: c\nTask file:")
	for i := range 300 {
		files(t, dir, map[string]string{fmt.Sprintf("a/%03d", i): ""})
	}
	got := p.preview(t, tree, 1, 0).Text
	holds(t, "the prompt", got, "\nFiles (200 of 303; none of the others is less deep):\n  .env (withheld), Spec.toml\n  a/: 000, 001, ")
	holds(t, "the prompt", got, ", 197\n")

	// Fewer files whose names are too long for the list.
	dir = t.TempDir()
	long := strings.Repeat("x", 200)
	for i := range 60 {
		files(t, dir, map[string]string{fmt.Sprintf("a/%02d%s", i, long): ""})
	}
	files(t, dir, map[string]string{"Spec.toml": specText, "z": ""})
	tree = must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	holds(t, "the prompt", p.preview(t, tree, 1, 0).Text, "\nFiles (42 of 62; none of the others is less deep):\n  Spec.toml, z\n  a/: 00"+long+", 01")
}

// TestNothingIsKnown: a loop that says neither that it is done nor what is
// left, without a review, is not a success.
func TestNothingIsKnown(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText})
	m := &recorder{replies: slices.Concat([]model.Reply{say("<final_answer>I looked.</final_answer>")}, noReview("Fine."),
		[]model.Reply{say("<final_answer>I looked.</final_answer>")}, noReview("Fine."))}
	if end := (process{model: m, rounds: 2}).live(t, dir); end.Kind != hone.KindRounds || len(end.Findings) != 1 || end.Findings[0].Source != "unfinished" {
		t.Errorf("%+v", end)
	}
	if strings.Contains(m.prompts()[2], "no report says") {
		t.Error("what is for the person is told the model")
	}
}

// TestToolsFail: a session whose tools cannot be made, because a file could not be read, does not begin without them;
// a resume makes them (ruling G22).
func TestToolsFail(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText, "a": "zero\n"})
	m := &recorder{replies: []model.Reply{call("write", "path", "a", "content", "done\n"), say(complete)}}
	p := process{model: m, check: saysDone(dir), noTools: &fs.PathError{Op: "stat", Path: ".git", Err: syscall.ENOMEM}}
	if end := p.live(t, dir); end.Kind != hone.KindFailed || len(m.asked) > 0 {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	p.noTools = nil
	if end := p.live(t, dir); end.Kind != hone.KindDone {
		t.Errorf("%+v", end)
	}
}

// TestNothingPendingIsTheEnd: a review with nothing pending ends the run, and
// with a check that one has the last word (ruling G12).
func TestNothingPendingIsTheEnd(t *testing.T) {
	replies := append([]model.Reply{say("STATUS: INCOMPLETE")}, wrote("loop = 1\nblocker = ''\n")...)
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText})
	if end := (process{model: &recorder{replies: replies}, rounds: 5}).live(t, dir); end.Kind != hone.KindDone || end.Rounds != 1 || !strings.Contains(end.Why, "no check was given") {
		t.Errorf("without a check: %+v", end)
	}
	dir = t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText})
	if end := (process{model: &recorder{replies: replies}, rounds: 1, check: saysDone(dir)}).live(t, dir); end.Kind != hone.KindRounds {
		t.Errorf("with a check that fails: %+v", end)
	}
}

// TestCompleteIsNotBelieved where the check fails: what it found begins the next
// loop, and no review is asked (ruling S3).
func TestCompleteIsNotBelieved(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n"})
	m := &recorder{replies: []model.Reply{say(complete), say(complete), call("write", "path", "a", "content", "done\n"), say(complete)}}
	end := process{model: m, loop: task.Loop{Text: "Make a say done."}, rounds: 5, check: saysDone(dir)}.live(t, dir)
	if end.Kind != hone.KindDone || end.Rounds != 3 {
		t.Fatalf("%+v", end)
	}
	prompts := m.prompts()
	holds(t, "the first execution", prompts[0], "Make a say done.\n\nLoop 1 of 5.")
	holds(t, "the first execution", prompts[0], "The check reports:\n  - a says \"zero\\n\"\n    and not done\n")
	for i, loop := range []string{"Loop 2 of 5.\n", "Loop 3 of 5.\n"} {
		holds(t, "a later loop", prompts[i+1], loop, "  - a says \"zero\\n\"\n    and not done\n", "Your last session changed nothing, and said: ")
	}
	if len(prompts) != 3 {
		t.Errorf("%d sessions began, want 3", len(prompts))
	}
	for _, p := range prompts {
		if strings.Contains(p, "Task file:") {
			t.Error("a task that is no file has one")
		}
	}
}

// TestCommandsOfASession: the reviewer reads which commands saw the files as they are now.
func TestCommandsOfASession(t *testing.T) {
	run, write := []string{"bash", "command", " make test"}, []string{"write", "path", "b", "content", "bee\n"}
	for name, c := range map[string]struct {
		calls [][]string
		want  string
	}{
		"no command": {[][]string{write}, "Commands run: none\n"},
		"the last commands": {[][]string{run, write, {"bash", "command", "make 1"}, {"bash", "command", "make 2"}, {"bash", "command", "make 3"}, {"bash", "command", "make 4"}},
			"After the last write or edit ran: (1 before these are not listed) make 2  →  exit_code: 0; make 3  →  exit_code: 0; make 4  →  exit_code: 0\n"},
		"a later change": {[][]string{run, write}, "No command ran after the last write or edit.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files(t, dir, map[string]string{"a": "zero\n"})
			m := &recorder{replies: append([]model.Reply{calls(c.calls), say(incomplete)}, wrote("loop = 1\nsummary = 'half'\nblocker = ''\n")...)}
			process{model: m, loop: task.Loop{Text: "Make b."}, rounds: 1, check: saysDone(dir)}.live(t, dir)
			holds(t, "the review", m.prompts()[1], c.want)
		})
	}
}

// TestFirstLoopWithACheckThatPasses has nothing pending, and is not done by it.
func TestFirstLoopWithACheckThatPasses(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "done\n"})
	m := &recorder{replies: []model.Reply{call("write", "path", "b", "content", "bee\n"), say(complete)}}
	end := process{model: m, loop: task.Loop{Text: "Make b."}, rounds: 5, check: saysDone(dir)}.live(t, dir)
	if end.Kind != hone.KindDone || end.Rounds != 1 || len(end.Notes) > 0 {
		t.Fatalf("%+v", end)
	}
	holds(t, "the first execution", m.prompts()[0], "Make b.\n\nLoop 1 of 5.\n\nWorking directory: ")
}

// TestNoFinalAnswer: the pending items stay, and the reviewer is told (ruling
// S8). Its prompt contains a task that is not in a file.
func TestNoFinalAnswer(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"a": "zero\n"})
	look := func(n int) model.Reply { return call("bash", "command", fmt.Sprint("look ", n)) }
	none := say("<final_answer>I could not tell.</final_answer>")
	m := &recorder{replies: []model.Reply{say(incomplete), none, none, look(1), look(2), none, none, look(1), look(2), none, none}}
	end := process{model: m, loop: task.Loop{Text: "Make a say done."}, rounds: 3, turns: 2}.live(t, dir)
	if end.Kind != hone.KindRounds || len(end.Findings) != 2 || end.Findings[0].Text != "write done" {
		t.Fatalf("%+v", end)
	}
	prompts := m.prompts()
	holds(t, "the second review", prompts[3], "## The task\nMake a say done.\n", "[Execution agent report — loop 2]\nThere is none: the session ended without a final answer, because its turns were used up.",
		"  - write done\n  - look again\n")
	holds(t, "the third execution", prompts[4], "Last loop — its session ended without a final answer: its turns were used up.\n", "  - write done\n")
	for _, req := range m.asked {
		if len(req.Messages) == 3 && !strings.Contains(whole(req), "This is your last turn") && strings.Contains(whole(req), "PHASE: EXECUTION") {
			t.Error("the last turn is not announced")
		}
	}
}

// TestBlocker keeps the loop going while loops are left, and ends it as
// blocked (ruling S5).
func TestBlocker(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText})
	m := &recorder{replies: slices.Concat(
		[]model.Reply{say("STATUS: INCOMPLETE")}, wrote("loop = 1\nblocker = 'the database needs a password'\n"),
		[]model.Reply{say("STATUS: INCOMPLETE")}, wrote("loop = 2\nblocker = 'still the password'\n[[pending]]\nitem = 'ask'\n"))}
	end := process{model: m, rounds: 2}.live(t, dir)
	if end.Kind != hone.KindBlocked || end.Rounds != 2 || !strings.Contains(end.Why, "still the password") {
		t.Errorf("%+v", end)
	}
	holds(t, "the second execution", m.prompts()[2], "Blockers that the last review reported:\n  - the database needs a password\nIf one of them still holds, do not weaken a requirement")
}

// TestTaskFileIsReloaded before each loop, allow-list included (ruling S6);
// an invalid one stops the run until it is fixed.
func TestTaskFileIsReloaded(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText})
	edit := func(text string) { files(t, dir, map[string]string{"Spec.toml": text}) }
	m := &recorder{replies: []model.Reply{call("write", "path", "b", "content", "1"), say(incomplete), say("<final_answer>no</final_answer>"), say("no"),
		say(complete)}}
	var allowed [][]string
	p := process{model: m, rounds: 3, allowed: &allowed, after: func(string) { edit("[[chat.user]]\ncontent = 'Make\n") }}
	end := p.live(t, dir)
	if end.Kind != hone.KindUsage || !strings.Contains(end.Why, "Spec.toml:2") || len(m.asked) != 4 {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	if err := os.Remove(filepath.Join(dir, "Spec.toml")); err != nil {
		t.Fatal(err)
	}
	if end = p.live(t, dir); end.Kind != hone.KindUsage || !strings.Contains(end.Why, "no longer exists") {
		t.Fatalf("%+v", end)
	}
	edit("[tools]\nbash = ['go']\n[[chat.user]]\ncontent = 'First'\n[[chat.assistant]]\ncontent = 'Yes?'\n[[chat.user]]\ncontent = 'Second'\n")
	if end = p.live(t, dir); end.Kind != hone.KindDone || end.Rounds != 2 {
		t.Fatalf("%+v", end)
	}
	if last := allowed[len(allowed)-1]; !slices.Equal(last, []string{"go"}) {
		t.Errorf("allowed: %v", last)
	}
	req := m.asked[len(m.asked)-1]
	if len(req.Messages) != 3 || req.Messages[0].Parts[0].Text != "First" || req.Messages[2].Parts[0].Text != "Second" || !strings.Contains(req.Messages[2].Parts[1].Text, "Loop 2 of 3.\nThe task has changed since the last loop; the text above is the current one.\n") {
		t.Errorf("%+v", req.Messages)
	}
}

func TestPreview(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText})
	tree := must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	m := &recorder{replies: []model.Reply{say(complete)}}
	p := process{model: m, rounds: 4}
	got := p.preview(t, tree, 4, 0)
	p.live(t, dir)
	if sent := m.prompts()[0]; got.Text != sent || got.System != m.asked[0].System || got.Fits != nil {
		t.Errorf("preview (-sent +got):\n%s", cmp.Diff(sent, got.Text))
	}
	var c *hone.ContextError
	if got := p.preview(t, tree, 4, 500); !errors.As(got.Fits, &c) || !strings.Contains(c.Room, "the task takes 17 bytes") {
		t.Errorf("%v", got.Fits)
	}
}
