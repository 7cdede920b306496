package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"hone"
	"hone/check"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/loop/task"
	"hone/model"
	"hone/tool"
	"hone/workspace"
	"hone/workspace/secret"
)

const output = ".codescribe/loop/review_output.toml"

const specText = "[tools]\nbash = ['make']\n\n[[chat.user]]\ncontent = '''\nMake a say done.\n'''\n"

// files furnishes a folder.
func files(t testing.TB, dir string, contents map[string]string) {
	t.Helper()
	for name, content := range contents {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func say(text string) model.Reply {
	return model.Reply{Parts: []model.Part{{Text: text}}, Finish: model.Stop, Usage: &model.Usage{Input: 100, Output: 10}}
}

// call is a reply with one call; its arguments are pairs.
func call(name string, args ...string) model.Reply {
	return calls([][]string{append([]string{name}, args...)})
}

func calls(list [][]string) model.Reply {
	reply := model.Reply{Parts: []model.Part{{Text: "Let me see."}}, Finish: model.Calls, Usage: &model.Usage{Input: 100, Output: 10, CacheRead: 5}}
	for i, c := range list {
		args := map[string]string{}
		for j := 1; j+1 < len(c); j += 2 {
			args[c[j]] = c[j+1]
		}
		b, _ := json.Marshal(args)
		reply.Parts = append(reply.Parts, model.Part{Call: &model.Call{ID: fmt.Sprintf("c%d", i), Name: c[0], Args: string(b)}})
	}
	return reply
}

// wrote is a review that is written with the reviewer's tool, and the answer
// after it.
func wrote(content string) []model.Reply {
	return []model.Reply{call("write", "path", output, "content", content), say("<final_answer>written</final_answer>")}
}

// noReview are the replies of a reviewer who writes no review, not even when reminded.
func noReview(text string) []model.Reply {
	return []model.Reply{say("<final_answer>" + text + "</final_answer>"), say(text)}
}

// recorder answers with its replies in order, and keeps what it was asked.
type recorder struct {
	replies []model.Reply
	asked   []model.Request
}

func (m *recorder) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	m.asked = append(m.asked, req)
	if req.Seq >= len(m.replies) {
		return model.Reply{}, &model.Error{Kind: model.Invalid, Message: fmt.Sprintf("there is no reply %d", req.Seq+1)}
	}
	return m.replies[req.Seq], nil
}

// prompts are the first messages of all sessions, whole.
func (m *recorder) prompts() []string {
	var all []string
	for _, req := range m.asked {
		if last := req.Messages[len(req.Messages)-1]; last.Role == model.User && len(req.Messages) == 1 {
			var b strings.Builder
			for _, p := range last.Parts {
				b.WriteString(p.Text)
			}
			all = append(all, b.String())
		}
	}
	return all
}

// process is one life of a program with a task.
type process struct {
	loop    task.Loop // its roles are filled in
	model   model.Model
	rounds  int
	turns   int
	tokens  int64 // 0: any number
	check   check.Func
	observe journal.Observer
	agent   bool        // the executor is one
	run     **hone.Run  // is told the run; may be nil
	allowed *[][]string // what Tools was asked for
	after   func(path string)
}

func (p process) set(dir string) func(r *hone.Run) hone.Round {
	return func(r *hone.Run) hone.Round {
		l := p.whole()
		if p.check != nil {
			l.Check = "make test" // p.check stands in for it
		}
		if p.run != nil {
			*p.run = r
		}
		l.Tools = func(allow []string) (execute, review []tool.Tool) {
			if p.allowed != nil {
				*p.allowed = append(*p.allowed, allow)
			}
			looks := []tool.Tool{readTool(r), bashTool(dir)}
			return append([]tool.Tool{writeTool(r, p.after)}, looks...), looks
		}
		r.Rules, r.Own, r.Limits, r.Check = l.Rules(), task.Own, hone.Limits{Rounds: max(p.rounds, 1), Tokens: p.tokens}, p.check
		r.Trust.CheckFirst = hone.Informed // as the command has it
		return l.Round
	}
}

func (p process) whole() task.Loop {
	l := p.loop
	l.Executor = hone.Role{Name: "executor", Model: p.model, Called: "test/model", System: task.System, MaxOutput: 4096, Bounds: hone.Bounds{Turns: p.turns}}
	l.Reviewer = hone.Role{Name: "reviewer", Model: p.model, Called: "test/model", System: task.ReviewerSystem, MaxOutput: 4096}
	if p.agent {
		l.Executor.Agent, l.Executor.Called, l.Executor.System = true, "command/test", task.AgentSystem
	}
	if l.Text == "" {
		l.File = "Spec.toml"
	}
	return l
}

func (p process) live(t testing.TB, dir string) hone.End {
	t.Helper()
	return crashtest.RunProcess(t, dir, nil, p.observe, p.set(dir))
}

// finish is a later life that finds the run ended, and finishes it.
func (p process) finish(t *testing.T, dir string) string {
	t.Helper()
	home := must(journal.OpenHome(dir))
	defer home.Close()
	tree := must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	j := must(home.Open(must(home.FindRun("last"))))
	defer j.Close()
	r := &hone.Run{Tree: tree, Journal: j}
	round := p.set(dir)(r)
	end := must(r.Do(context.Background(), round))
	exit := map[hone.Kind]int{hone.KindRounds: 1, hone.KindFailed: 5}[end.Kind]
	if err := p.whole().Finish(r, end, exit); err != nil {
		t.Fatal(err)
	}
	return task.Summary(r)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

type pathAndContent struct{ Path, Content, Command string }

func args(in tool.Input) (a pathAndContent) {
	must(0, json.Unmarshal(in.Args, &a))
	return a
}

func spec(name string) model.Spec {
	return model.Spec{Name: name, Description: name, Schema: json.RawMessage(`{"type":"object"}`)}
}

func writeTool(r *hone.Run, after func(path string)) tool.Tool {
	return tool.Tool{Spec: spec("write"), Run: func(ctx context.Context, in tool.Input) (tool.Result, error) {
		a := args(in)
		vs, err := r.Apply(ctx, workspace.Change{Edits: []workspace.Edit{{Path: a.Path, Content: []byte(a.Content)}}}, nil)
		if err != nil {
			return tool.Result{}, err
		}
		if vs[0].Ruling == workspace.Deny {
			return tool.Failure(vs[0].Reason), nil
		}
		if after != nil {
			after(a.Path)
		}
		return tool.Result{Text: "Wrote " + a.Path}, nil
	}}
}

func readTool(r *hone.Run) tool.Tool {
	return tool.Tool{Spec: spec("read"), ReadOnly: true, MaxRepeats: 6, Run: func(_ context.Context, in tool.Input) (tool.Result, error) {
		text, _, err := r.Tree.Read(args(in).Path)
		if err != nil {
			return tool.Failure(err.Error()), nil
		}
		return tool.Result{Text: string(text)}, nil
	}}
}

// bashTool only looks, so that a command that was cut off leaves the tree as
// one that was not; "into FILE TEXT" is the exception.
func bashTool(dir string) tool.Tool {
	return tool.Tool{Spec: spec("bash"), RunsCommands: true, Run: func(_ context.Context, in tool.Input) (tool.Result, error) {
		words := strings.SplitN(args(in).Command, " ", 3)
		if words[0] == "into" {
			at := filepath.Join(dir, words[1])
			must(0, errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(words[2]), 0o644)))
		}
		return tool.Result{Text: "exit_code: 0\nSTDOUT:\n\x1b[31m'''\x00\r" + words[0] + "\nSTDERR:\n", Exit: new(int)}, nil
	}}
}

// saysDone is the check that the file a says done.
func saysDone(dir string) check.Func {
	return func(context.Context) ([]check.Finding, error) {
		b, _ := os.ReadFile(filepath.Join(dir, "a"))
		if string(b) == "done\n" {
			return nil, nil
		}
		return []check.Finding{{Source: "check", Text: fmt.Sprintf("a says %q\nand not done\n", b)}}, nil
	}
}

const (
	incomplete = "<final_answer>\n**STATUS: INCOMPLETE**\nplan\nNEXT STEPS:\n- write done\n- look again\n</final_answer>"
	complete   = "<final_answer>\nSTATUS: COMPLETE\nplan\n</final_answer>"
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
	holds(t, "the first execution", prompts[0], "Make a say done.\n\nLoop 1 of 5.\nPending next steps:\n  - [check] a says \"zero\\n\"\n    and not done\n",
		"Working directory: "+dir, "Task file: Spec.toml (read-only", "\nCheck: make test (it decides", "PHASE: EXECUTION", "1. The complete task is above.")
	holds(t, "the review", prompts[1], "Task file: Spec.toml", "Review output: "+output+" (write here)", "PHASE: REVIEW",
		"## Verified actions from loop 1 (harness-computed)\nFiles read: a\nFiles written: a, b\nCommands run:\n  make test  →  exit_code: 0\nNo command ran after the last write or edit.\nThe check that decides: not run\nErrors:\n  read(gone): Error:",
		"  write(Spec.toml): Error: this file may not be changed here\n",
		"## Attempted but NOT executed (harness-rejected — no workspace effect)\n  dance(): unknown_tool\n",
		"[Execution agent report — loop 1]\n<final_answer>\n**STATUS: INCOMPLETE**", "loop = 1\n")
	holds(t, "the second execution", prompts[2], "Make a say done.\n\nLoop 2 of 5.\nFiles created across all prior loops: a, b\nLast loop — ran: make test  →  exit_code: 0 | check: not run | errors: read(gone)",
		"Pending next steps:\n  - make a say done\n\nWorking directory", "The task and the state that the last loop left are above.")
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
		"unchanged": {[]model.Reply{call("read", "path", "a")}, "  - write done\n  - look again\n  - [check] a says \"zero\\n\"\n    and not done\n"},
		"changed":   {[]model.Reply{call("write", "path", "a", "content", "one\n")}, "  - write done\n  - look again\n\nWorking directory"},
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

func whole(req model.Request) string { return string(must(json.Marshal(req.Messages))) }

func holds(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", what, want, text)
		}
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
	holds(t, "the prompt", must(p.whole().Preview(t.Context(), tree, 1)).Text, "\nFiles:\n  .env (withheld)\n  Spec.toml\n  b/c\nTask file:")
	for i := range 300 {
		files(t, dir, map[string]string{fmt.Sprintf("a/%03d", i): ""})
	}
	got := must(p.whole().Preview(t.Context(), tree, 1)).Text
	holds(t, "the prompt", got, "\nFiles (200 of 303; none of the others is less deep):\n  .env (withheld)\n  Spec.toml\n  a/000\n")
	if n := strings.Count(got, "\n  a/"); n != 198 {
		t.Errorf("%d files in a, want 198", n)
	}

	// Fewer files whose names are too long for the list.
	dir = t.TempDir()
	long := strings.Repeat("x", 200)
	for i := range 60 {
		files(t, dir, map[string]string{fmt.Sprintf("a/%s/%02d", long, i): ""})
	}
	files(t, dir, map[string]string{"Spec.toml": specText, "z": ""})
	tree = must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	holds(t, "the prompt", must(p.whole().Preview(t.Context(), tree, 1)).Text, "\nFiles (41 of 62; none of the others is less deep):\n  Spec.toml\n  z\n  a/"+long+"/00\n")
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

// TestCompleteIsNotBelieved where the check fails: what it found continues the
// session in the next loop, and no review is asked (ruling S3).
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
	holds(t, "the first execution", prompts[0], "Pending next steps:\n  - [check] a says \"zero\\n\"\n    and not done\n")
	for i, loop := range []string{"Loop 2 of 5.\n", "Loop 3 of 5.\n"} {
		sent := m.asked[i+1].Messages
		holds(t, "a later loop", sent[len(sent)-1].Parts[0].Text, loop+"Last loop — check: not run.\n", "The check does not pass", "[check] a says \"zero\\n\"\n    and not done\n", "This session continues, with at most")
		if len(sent) != 3+2*i || sent[len(sent)-2].Parts[0].Text != complete {
			t.Errorf("%d messages in loop %d: %+v", len(sent), i+2, sent)
		}
	}
	if len(prompts) != 1 {
		t.Errorf("%d sessions began, want 1", len(prompts))
	}
	for _, p := range prompts {
		if strings.Contains(p, "Task file:") {
			t.Error("a task that is no file has one")
		}
	}
}

// TestCheckOfASession: the reviewer reads whether the session ran the check, whatever its
// report says.
func TestCheckOfASession(t *testing.T) {
	const line = "The check that decides: "
	run, write := []string{"bash", "command", " make test"}, []string{"write", "path", "b", "content", "bee\n"}
	for name, c := range map[string]struct {
		calls [][]string
		want  string
	}{
		"no command":         {[][]string{write}, "Commands run: none\n" + line + "not run\n"},
		"another command":    {[][]string{{"bash", "command", "make tests"}}, line + "not run\n"},
		"the check, at last": {[][]string{write, run}, ""},
		"the last commands": {[][]string{run, write, {"bash", "command", "make 1"}, {"bash", "command", "make 2"}, {"bash", "command", "make 3"}, {"bash", "command", "make 4"}},
			"After the last write or edit ran: (1 before these are not listed) make 2  →  exit_code: 0; make 3  →  exit_code: 0; make 4  →  exit_code: 0\n"},
		"a later change": {[][]string{run, write}, line + "not run after the last change to a file\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files(t, dir, map[string]string{"a": "zero\n"})
			m := &recorder{replies: append([]model.Reply{calls(c.calls), say(incomplete)}, wrote("loop = 1\nsummary = 'half'\nblocker = ''\n")...)}
			process{model: m, loop: task.Loop{Text: "Make b."}, rounds: 1, check: saysDone(dir)}.live(t, dir)
			review := m.prompts()[1]
			if holds(t, "the review", review, c.want); c.want == "" && strings.Contains(review, line) {
				t.Errorf("%s", review)
			}
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
	holds(t, "the first execution", m.prompts()[0], "Make b.\n\nLoop 1 of 5.\nNo pending steps recorded")
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

// events reads an event log.
func events(t testing.TB, dir, name string) []map[string]any {
	t.Helper()
	var doc struct{ Event []map[string]any }
	b := must(os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))))
	if err := toml.Unmarshal(b, &doc); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, b)
	}
	return doc.Event
}

func names(events []map[string]any) string {
	var all []string
	for _, e := range events {
		all = append(all, fmt.Sprint(e["event"]))
	}
	return strings.Join(all, " ")
}

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
	for _, name := range []string{"run.toml", "state.toml"} {
		var doc map[string]any
		must(0, toml.Unmarshal(must(os.ReadFile(filepath.Join(dir, ".codescribe", "loop", name))), &doc))
		left[name] = fmt.Sprint(doc["loops_completed"], doc["cumulative_output_tokens"], doc["loop_index"], doc["phase"])
	}
	for name, text := range left {
		files(t, dir, map[string]string{".codescribe/loop/" + name: text})
	}
}

func TestPreview(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText})
	tree := must(workspace.Open(dir, workspace.Options{}))
	defer tree.Close()
	m := &recorder{replies: []model.Reply{say(complete)}}
	p := process{model: m, rounds: 4}
	got := must(p.whole().Preview(t.Context(), tree, 4))
	p.live(t, dir)
	if sent := m.prompts()[0]; got.Text != sent || got.System != m.asked[0].System || got.Fits != nil {
		t.Errorf("preview (-sent +got):\n%s", cmp.Diff(sent, got.Text))
	}
	l := p.whole()
	l.Executor.Context = 500
	var c *hone.ContextError
	if got := must(l.Preview(t.Context(), tree, 4)); !errors.As(got.Fits, &c) || !strings.Contains(c.Room, "the task takes 17 bytes") {
		t.Errorf("%v", got.Fits)
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
