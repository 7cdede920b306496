package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hone/model"
	"hone/sandbox"
	"hone/sandbox/wall"
)

// runner implements sandbox.Runner with a function.
type runner func(context.Context, sandbox.Command) (sandbox.Result, error)

func (r runner) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) { return r(ctx, c) }

// request returns a request with one message.
func request(system string, texts ...string) model.Request {
	m := model.Message{Role: model.User}
	for _, text := range texts {
		m.Parts = append(m.Parts, model.Part{Text: text})
	}
	return model.Request{System: system, Messages: []model.Message{m}}
}

// fault returns err as a *model.Error, which must not be temporary.
func fault(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("error = %v (%T), want a *model.Error", err, err)
	}
	if e.Temporary() {
		t.Errorf("%v is temporary", e)
	}
	return e
}

func TestTexts(t *testing.T) {
	part := func(text string) model.Part { return model.Part{Text: text} }
	for name, c := range map[string]struct {
		req            model.Request
		prompt, before string
	}{
		"one text":     {request("", "do"), "do", ""},
		"with system":  {request("be\n", "do"), "do", "be"},
		"several":      {request("be", "spec\n\n", "map", "do\n"), "do\n", "be\n\nspec\n\nmap"},
		"empty parts":  {request("", "", "spec", "", "do", ""), "do", "spec"},
		"no messages":  {model.Request{System: "be"}, "", ""},
		"no last text": {model.Request{Messages: []model.Message{{Parts: []model.Part{part("do")}}, {Parts: []model.Part{{Call: &model.Call{}}}}}}, "", ""},
		"conversation": {model.Request{System: "be", Messages: []model.Message{
			{Role: model.User, Parts: []model.Part{part("one")}},
			{Role: model.Assistant, Parts: []model.Part{part("two"), {Call: &model.Call{Name: "x"}}}},
			{Role: model.User, Parts: []model.Part{{Result: &model.Result{Text: "y"}}, part("three")}},
		}}, "three", "be\n\none\n\ntwo"},
	} {
		t.Run(name, func(t *testing.T) {
			prompt, before := splitPrompt(c.req)
			if prompt != c.prompt || before != c.before {
				t.Errorf("prompt = %q, text before it = %q", prompt, before)
			}
		})
	}
}

func TestInvalidConfigurations(t *testing.T) {
	argv := func(args ...string) Config { return Config{Name: "gemini", Argv: args} }
	with := func(c Config, change func(*Config)) Config { change(&c); return c }
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"no model":   {argv("x", "-m", "{model}"), "no model is set"},
		"only input": {with(argv("x"), func(c *Config) { c.Usage.Input = "a" }), "usage needs both input and output"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(wall.None{}, c.config)
			e := fault(t, err)
			if !strings.HasPrefix(e.Message, "gemini: ") || !strings.Contains(e.Message, c.want) || !strings.Contains(e.Hint, "[commands.gemini]") {
				t.Errorf("%s; hint: %s", e.Message, e.Hint)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	var got sandbox.Command
	c := Config{Name: "x", Argv: []string{"{model}", "-m={model}", "{prompt}", "{other}", "$HOME"}, Model: "m/{prompt}", Dir: "/d"}
	a, err := New(runner(func(_ context.Context, c sandbox.Command) (sandbox.Result, error) {
		got = c
		return sandbox.Result{}, nil
	}), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Generate(t.Context(), request("be", "{model} `x` {context}")); err != nil {
		t.Fatal(err)
	}
	want := []string{"m/{prompt}", "-m=m/{prompt}", "{model} `x` {context}", "{other}", "$HOME"}
	if diff := cmp.Diff(want, got.Argv); diff != "" {
		t.Error(diff)
	}
	if got.Dir != "/d" || got.Timeout != 30*time.Minute {
		t.Errorf("command = %+v", got)
	}
}

func TestNoPrompt(t *testing.T) {
	a, err := New(runner(func(context.Context, sandbox.Command) (sandbox.Result, error) {
		t.Error("the agent was started")
		return sandbox.Result{}, nil
	}), Config{Name: "x", Argv: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, req := range []model.Request{{System: "be"}, request("be", "")} {
		_, err = a.Generate(t.Context(), req)
		if e := fault(t, err); !strings.Contains(e.Message, "has no text") || e.Usage == nil || e.Usage.Total() != 0 {
			t.Errorf("%v, usage %+v", e, e.Usage)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	a, err := New(runner(func(_ context.Context, c sandbox.Command) (sandbox.Result, error) {
		_, _ = c.LiveOut.Write([]byte(codexOut))
		return sandbox.Result{Exit: -1, OverLimit: "memory", Signal: "killed"}, nil
	}), Config{Name: "codex", Argv: []string{"codex"}, Answer: codexAnswer, Usage: codexUsage})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Generate(t.Context(), request("", "do"))
	e := fault(t, err)
	if !strings.HasPrefix(e.Message, "it exceeded its limit of memory; its stdout ends with: ") {
		t.Errorf("message = %s", e.Message)
	}
	if e.Usage == nil || e.Usage.Output != 1590 {
		t.Errorf("usage = %+v, want 1590 output tokens", e.Usage)
	}
}
