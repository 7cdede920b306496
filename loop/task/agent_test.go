package task_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/loop/task"
	"hone/model"
	"hone/workspace"
)

// agents is a recorder whose sessions of an agent do something first, by the
// number of the reply that they end with.
type agents struct {
	recorder
	acts map[int]func()
}

func (m *agents) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	if act := m.acts[req.Seq]; act != nil && len(req.Messages) == 1 {
		act()
	}
	return m.recorder.Generate(ctx, req)
}

// TestAgentExecutes: what an agent did is read off the files, and its calls are
// said to be unknown rather than none (ruling A8).
func TestAgentExecutes(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText, "a": "zero\n", "old": "old\n", "kept": "kept\n"})
	m := &agents{recorder: recorder{replies: slices.Concat(
		[]model.Reply{say("I made c as well.\n" + incomplete)},
		wrote("loop = 1\nsummary = 'half'\nblocker = ''\n[[pending]]\nitem = 'make a say done'\n"),
		[]model.Reply{say(complete)},
	)}, acts: map[int]func(){
		0: func() {
			files(t, dir, map[string]string{"a": "one\n", "b": "bee\n"})
			must(0, os.Remove(filepath.Join(dir, "old")))
		},
		3: func() { files(t, dir, map[string]string{"a": "done\n"}) },
	}}
	p := process{model: m, agent: true, rounds: 5, check: saysDone(dir)}
	if end := p.live(t, dir); end.Kind != hone.KindDone || end.Rounds != 2 || len(m.asked) != 4 {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	first, review, second := m.asked[0], m.asked[1].Messages[0].Parts[0].Text, m.asked[3]
	parts := first.Messages[0].Parts
	if first.System != task.AgentSystem || len(first.Tools) != 0 || len(parts) != 3 || parts[0].Text != "Make a say done.\n" || strings.Contains(parts[2].Text, "\n") {
		t.Errorf("the first session was sent %+v", first)
	}
	holds(t, "the first execution", parts[1].Text, "Loop 1 of 5.", "PHASE: EXECUTION", "as possible.\n", "3. Run the check above.\n", "STATUS: COMPLETE")
	for _, word := range []string{"tool calls", "replies and", "`bash`", "`read`", "`write`"} {
		if strings.Contains(whole(first)+first.System, word) {
			t.Errorf("an agent is told of %s", word)
		}
	}
	holds(t, "the review", review, "## Verified actions from loop 1 (harness-computed)\n  (the session was held by an agent with tools of its own: its calls are not known; ",
		"Files created: b\nFiles edited: a\nFiles deleted: old\n", "I made c as well.", "a check passed is the report's word", "If the files meet the task's requirements")
	for _, word := range []string{"no verified actions", "Commands run", "verified command", "Spec.toml, ", ".codescribe/loop/execution"} {
		if strings.Contains(review, word) {
			t.Errorf("the review is told %q:\n%s", word, review)
		}
	}
	holds(t, "the second execution", second.Messages[0].Parts[1].Text, "Loop 2 of 5.\nFiles created across all prior loops: b\nFiles edited across all prior loops: a\n"+
		"Files deleted across all prior loops: old\nPending next steps:\n  - make a say done\n")
}

// TestAgentArtifacts: the event log keeps CodeScribe's shape, says nothing of
// calls, and what an agent's calls took is the ledger's word and not its own.
func TestAgentArtifacts(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText})
	var run *hone.Run
	m := &agents{recorder: recorder{replies: slices.Concat([]model.Reply{say(incomplete)}, wrote("loop = 1\n"))}, acts: map[int]func(){0: func() {
		files(t, dir, map[string]string{"b": "bee\n"})
		for range 2 {
			_, settle, err := run.Account().Reserve("executor", hone.Candidate{Called: "x/y", MaxOutput: 500}, 10)
			must(0, errors.Join(err, settle(&model.Usage{Input: 3000, Output: 70}, nil)))
		}
	}}}
	p := process{model: m, agent: true, rounds: 1, run: &run}
	if end := p.live(t, dir); end.Kind != hone.KindDone {
		t.Fatalf("%+v", end)
	}
	log := events(t, dir, ".codescribe/loop/execution.toml")
	if diff := cmp.Diff("run_start iteration_start model_response run_end", names(log)); diff != "" {
		t.Fatal(diff)
	}
	if log[0]["mode"] != "agent" || log[0]["max_iterations"] != int64(1) {
		t.Errorf("%v", log[0])
	}
	if _, counted := log[2]["tool_calls"]; counted || log[2]["tools"] != "an agent with tools of its own: its calls are not known" || !strings.Contains(fmt.Sprint(log[2]["usage"]), `"input": 6000, "output": 140`) {
		t.Errorf("%v", log[2])
	}
	if end := log[3]; end["total_input_tokens"] != int64(6000) || !strings.Contains(fmt.Sprint(end["files"]), "Files created: b\n") || end["stop_reason"] != "final_text" {
		t.Errorf("%v", end)
	}
	// The reviewer took 200 in two replies.
	holds(t, "run.toml", string(must(os.ReadFile(filepath.Join(dir, ".codescribe", "loop", "run.toml")))),
		"model = \"command/test\"\n", "review_model = \"test/model\"\n", "cumulative_input_tokens = 6200\n")
	if mode := events(t, dir, ".codescribe/loop/review.toml")[0]["mode"]; mode != "native_tools" {
		t.Errorf("the review's mode is %v", mode)
	}
}

// TestAgentDoesNotSay: an agent cannot be reminded, so that what it leaves
// unsaid is the reviewer's to find out.
func TestAgentDoesNotSay(t *testing.T) {
	unread := model.Reply{Finish: model.Other, Detail: "no answer stands at \"result\" in its output"}
	for name, c := range map[string]struct {
		reply model.Reply
		want  string
	}{
		"no status":  {say("All of it works."), "[Execution agent report — loop 1]\nAll of it works.\n"},
		"nothing":    {model.Reply{Finish: model.Stop}, "There is none: the session ended without a final answer, because the model's reply was empty."},
		"unreadable": {unread, "There is none: the session ended without a final answer, because its output contains none (no answer stands at \"result\" in its output)."},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files(t, dir, map[string]string{"Spec.toml": specText})
			m := &agents{recorder: recorder{replies: slices.Concat([]model.Reply{c.reply}, wrote("loop = 1\n[[pending]]\nitem = 'x'\n"))}}
			if end := (process{model: m, agent: true, rounds: 1}).live(t, dir); end.Kind != hone.KindRounds || len(m.asked) != 3 {
				t.Fatalf("%+v after %d requests", end, len(m.asked))
			}
			holds(t, "the review", m.asked[1].Messages[0].Parts[0].Text, c.want, "its calls are not known", "  (no file differs)\n")
		})
	}
}

// TestAgentChangesMuch: the reviewer's prompt stays readable.
func TestAgentChangesMuch(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText})
	m := &agents{recorder: recorder{replies: slices.Concat([]model.Reply{say(incomplete)}, wrote("loop = 1\n"))}, acts: map[int]func(){0: func() {
		many := map[string]string{"new\nline": "x"}
		for i := range 310 {
			many[fmt.Sprintf("many/%03d", i)] = "x"
		}
		files(t, dir, many)
	}}}
	process{model: m, agent: true, rounds: 1}.live(t, dir)
	review := m.asked[1].Messages[0].Parts[0].Text
	holds(t, "the review", review, "Files created: many/000, many/001, ", "\n  (and 11 more)\n")
	if strings.Contains(review, "many/300") {
		t.Error("there is no end to the list")
	}
}

// TestAgentsConversation: turns of a task keep their side in what an agent is
// sent, and the preview is that.
func TestAgentsConversation(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": "[[chat.user]]\ncontent = 'First'\n[[chat.assistant]]\ncontent = 'Yes?'\n[[chat.user]]\ncontent = 'Second'\n"})
	m := &agents{recorder: recorder{replies: []model.Reply{say(complete)}}}
	p := process{model: m, agent: true, rounds: 1}
	p.live(t, dir)
	var texts []string
	for _, part := range m.asked[0].Messages[0].Parts {
		texts = append(texts, part.Text)
	}
	if got := texts[:3]; !slices.Equal(got, []string{"[user]\nFirst\n", "[assistant]\nYes?\n", "[user]\nSecond\n"}) || len(m.asked[0].Messages) != 1 {
		t.Errorf("%q", got)
	}
	tree := must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	v := p.preview(t, tree, 1, 0)
	if v.System != task.AgentSystem || strings.Join(strings.Fields(v.Text), " ") != strings.Join(strings.Fields(strings.Join(texts, " ")), " ") {
		t.Errorf("the preview differs:\n%s", v.Text)
	}
}

// TestAgentIsCutOff: what the session did that never ended belongs to the
// facts, and the next one learns of it.
func TestAgentIsCutOff(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText, "a": "zero\n"})
	m := &agents{recorder: recorder{replies: slices.Concat([]model.Reply{say(incomplete)}, wrote("loop = 1\n"))}}
	m.acts = map[int]func(){0: func() { files(t, dir, map[string]string{"a": "one\n", "b": "bee\n"}) }}
	p := process{model: m, agent: true, rounds: 1, observe: journal.Observer{Before: func(n journal.Entry) {
		if n.Type == "reply" {
			panic("killed")
		}
	}}}
	func() {
		defer func() {
			if recover() != "killed" {
				t.Error("it was not killed before the record")
			}
		}()
		p.live(t, dir)
	}()
	m.acts = map[int]func(){0: func() { files(t, dir, map[string]string{"c": "sea\n"}) }}
	p.observe = journal.Observer{}
	if end := p.live(t, dir); end.Kind != hone.KindDone || len(m.asked) != 4 {
		t.Fatalf("%+v after %d requests", end, len(m.asked))
	}
	parts := m.asked[1].Messages[0].Parts
	if len(parts) != 4 {
		t.Fatalf("%d parts", len(parts))
	}
	holds(t, "the second session", parts[2].Text, "was interrupted", "a", "b")
	holds(t, "the review", m.asked[2].Messages[0].Parts[0].Text, "Files created: b, c\nFiles edited: a\n")
}

// TestAgentCrashAtEveryPoint: with an agent that changes files, a review, and a
// check that is not content at first.
func TestAgentCrashAtEveryPoint(t *testing.T) {
	untold := func(text string) model.Reply {
		reply := say(text)
		reply.Usage = nil // a session that was cut off is charged, and would differ in run.toml
		return reply
	}
	crashtest.Scene{
		Replies: slices.Concat(
			[]model.Reply{untold(incomplete)},
			wrote("loop = 1\nsummary = ''\nblocker = ''\n[[pending]]\nitem = 'more'\n"),
			[]model.Reply{untold(complete), untold(complete)},
		),
		Setup: func(t testing.TB, dir string) {
			files(t, dir, map[string]string{"Spec.toml": specText, "a": "zero\n"})
		},
		Play: func(t testing.TB, dir string, m model.Model, o journal.Observer) hone.End {
			end := process{model: worker{m, dir}, agent: true, rounds: 5, check: saysDone(dir), observe: o}.live(t, dir)
			timeless(t, dir)
			return end
		},
	}.Run(t)
}

// worker is an agent whose sessions leave files behind.
type worker struct {
	model.Model
	dir string
}

func (w worker) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	reply, err := w.Model.Generate(ctx, req)
	content := map[int]string{0: "one\n", 3: "two\n", 4: "done\n"}[req.Seq]
	if err == nil && content != "" {
		err = errors.Join(os.WriteFile(filepath.Join(w.dir, "a"), []byte(content), 0o644), os.WriteFile(filepath.Join(w.dir, fmt.Sprint("made", req.Seq)), nil, 0o644))
	}
	return reply, err
}
