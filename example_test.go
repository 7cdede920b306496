package hone_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hone"
	"hone/check"
	"hone/journal"
	"hone/model"
	"hone/tool"
	"hone/workspace"
)

// parrot is a model that returns scripted replies in order. Request.Seq says
// how many replies the run already has, so the model needs no memory.
type parrot []string

func (p parrot) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	return model.Reply{Finish: model.Stop, Parts: []model.Part{{Text: p[req.Seq]}}}, nil
}

// A loop is one function. This one asks a model to rewrite a file until the
// check passes: each round tells the model what the last one left wrong.
func Example() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	greeting := filepath.Join(dir, "greeting.txt")
	_ = os.WriteFile(greeting, []byte("hi"), 0o644)

	editor := hone.Role{
		Name:      "editor",
		Model:     parrot{"hello", "hello, world"},
		System:    "Answer with the new contents of the file.",
		MaxOutput: 1000,
	}
	rewrite := func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		prompt := "Improve greeting.txt."
		for _, f := range prior {
			prompt += "\n" + f.Text
			fmt.Println("the model is told:", f.Text)
		}
		reply, err := r.Ask(ctx, editor, hone.Text(prompt))
		if err != nil {
			return nil, err
		}
		text, unusable := hone.UsableText(reply)
		if unusable != nil {
			return unusable, nil
		}
		change, faults, err := r.Interpret(ctx, workspace.Change{Edits: []workspace.Edit{{Path: "greeting.txt", Content: []byte(text)}}})
		if err != nil || faults != nil {
			return check.Unusable(faults...), err
		}
		_, err = r.Apply(ctx, change, nil)
		return nil, err // the check finds what is wrong
	}

	run, done, err := open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()
	run.Limits.Rounds = 5
	run.Check = func(context.Context) ([]check.Finding, error) {
		b, err := os.ReadFile(greeting)
		if strings.Contains(string(b), "world") {
			return nil, err
		}
		return []check.Finding{{Source: "check", Text: "greet the whole world"}}, err
	}

	end, err := run.Do(context.Background(), rewrite)
	b, _ := os.ReadFile(greeting)
	fmt.Printf("%s after %d rounds: %s (%v)\n", end.Kind, end.Rounds, b, err)
	// Output:
	// the model is told: greet the whole world
	// done after 2 rounds: hello, world (<nil>)
}

// reader is a model that reads a file before it answers.
type reader struct{}

func (reader) Generate(_ context.Context, req model.Request) (model.Reply, error) {
	last := req.Messages[len(req.Messages)-1].Parts[0]
	if last.Result == nil {
		call := &model.Call{ID: "1", Name: "read", Args: `{"path":"greeting.txt"}`}
		return model.Reply{Finish: model.Calls, Parts: []model.Part{{Call: call}}}, nil
	}
	return model.Reply{Finish: model.Stop, Parts: []model.Part{{Text: "It says " + last.Result.Text + "."}}}, nil
}

// In a conversation the model calls tools until it answers. A tool is data with
// one function; this one reads from the run's own tree.
func ExampleRun_Talk() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "greeting.txt"), []byte("hello"), 0o644)
	run, done, err := open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	type args struct {
		Path string `json:"path"`
	}
	read := tool.Define(tool.Tool{ReadOnly: true}, "read", "Reads a file.",
		`{"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}`,
		func(ctx context.Context, _ tool.Input, a args) (tool.Result, error) {
			f, err := tool.ReadFile(ctx, run.Tree, nil, a.Path)
			return tool.Result{Text: string(f.Content), Shown: map[string]string{f.Path: f.Digest}}, err
		})
	assistant := hone.Role{
		Name:      "assistant",
		Model:     reader{},
		MaxOutput: 1000,
		Tools:     []tool.Tool{read},
		Bounds:    hone.Bounds{Turns: 5},
	}
	end, err := run.Do(context.Background(), func(ctx context.Context, r *hone.Run, _ []check.Finding) ([]check.Finding, error) {
		talk, err := r.Talk(ctx, assistant, hone.Text("What does greeting.txt say?"))
		for _, c := range talk.Calls {
			fmt.Println("it called", c.Name, c.Args)
		}
		fmt.Println(talk.Reply.Text())
		return nil, err
	})
	fmt.Println(end.Kind, err)
	// Output:
	// it called read {"path":"greeting.txt"}
	// It says hello.
	// done <nil>
}

// open starts a run in a directory. Its journal is in .hone there.
func open(dir string) (run *hone.Run, done func(), err error) {
	tree, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		return nil, nil, err
	}
	home, err := journal.OpenHome(dir)
	if err != nil {
		return nil, nil, err
	}
	j, err := home.Create(home.NewRun())
	if err != nil {
		return nil, nil, err
	}
	run = &hone.Run{Tree: tree, Journal: j}
	return run, func() { j.Close(); home.Close(); tree.Close() }, run.Start(hone.Start{Loop: "example"})
}
