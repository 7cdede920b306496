package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"hone"
	"hone/check"
	"hone/internal/config"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/loop"
	"hone/loop/task"
	"hone/model"
	"hone/tool"
	"hone/workspace"
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
	noTools error       // of Tools
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
		l.Tools = func(allow []string) (execute, review []tool.Tool, err error) {
			if p.noTools != nil {
				return nil, nil, p.noTools
			}
			if p.allowed != nil {
				*p.allowed = append(*p.allowed, allow)
			}
			looks := []tool.Tool{readTool(r), bashTool(dir)}
			return append([]tool.Tool{writeTool(r, p.after)}, looks...), looks, nil
		}
		r.Rules, r.Own, r.Limits, r.Check = l.Rules(), task.Own, hone.Limits{Rounds: max(p.rounds, 1), Tokens: p.tokens}, p.check
		r.Trust.CheckFirst = hone.Informed // as the command has it
		return l.Record(r).Round
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

// preview is that of a context of so many tokens.
func (p process) preview(t *testing.T, tree *workspace.Tree, loops int, context int64) loop.Prompt {
	t.Helper()
	l := p.whole()
	l.Settings = loop.Settings{Values: config.Values{}, Model: loop.Model{Name: l.Executor.Called, MaxOutput: 4096, Context: context}}
	if l.System, l.AgentSystem = task.System, task.AgentSystem; p.agent {
		l.Model.Agent = &loop.Agent{}
	}
	return must(l.Preview(t.Context(), loop.View{Tree: tree, Guard: l.Guard, Limits: hone.Limits{Rounds: loops}}))
}

func (p process) live(t testing.TB, dir string) hone.End {
	t.Helper()
	return crashtest.RunProcess(t, dir, nil, p.observe, p.set(dir))
}

// again is a later process that finds the run ended. It returns CodeScribe's line.
func (p process) again(t *testing.T, dir string) (line string) {
	t.Helper()
	p.run = new(*hone.Run)
	p.live(t, dir)
	return task.Summary(*p.run)
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
			return tool.Result{Text: "Error: " + vs[0].Reason, Failed: true, Refused: true}, nil
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

func whole(req model.Request) string { return string(must(json.Marshal(req.Messages))) }

func holds(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", what, want, text)
		}
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
