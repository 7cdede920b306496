package fix

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"hone"
	"hone/loop"
	"hone/sandbox"
	"hone/tool/allow"
	"hone/workspace"
)

// Kind is what fix declares of itself.
func Kind() loop.Kind {
	return loop.Kind{
		Name: "fix", Use: "fix [TEXT]", Short: "let a model fix what a check reports, until it passes",
		Long: `fix runs a check, which is any command that exits 0 if all is well. If the check fails, a model with
tools (read, glob, grep, write, edit, bash) gets its output and fixes the cause, until the check passes.
If it already passes, fix ends at once and asks no model.

The check is --check, or command below [check] in .config/hone.toml. TEXT is advice for the model; - reads
it from standard input. Commands of the model run behind walls, without network: the check itself, programs that
look around, and those of --allow. For new work, which no check asks for yet, use hone task.`,
		Example: `  hone fix --check "go vet ./... && go test ./..."
  hone fix "the parser is right, the printer is wrong" --check "make test" --allow go
  hone fix -m ollama/qwen3-coder --rounds 10
  git diff main | hone fix - --check "npm test"`,
		Args: atMostOne, Rounds: 5, Walls: sandbox.Auto,
		New:     func() loop.Loop { return &invocation{} },
		Preview: loop.Preview{Short: "what fix would send first, but for what the check reports"},
		Starters: func() loop.Starters {
			return loop.Starters{
				Short: "a .config/hone.toml with a check to switch on",
				Files: func(string, func(string)) ([]loop.File, error) { return nil, nil },
				Next: func(string) string {
					return `name the check with command below [check] in .config/hone.toml, then: hone fix; or: hone fix --check "make test"`
				},
			}
		},
	}
}

func atMostOne(args []string) error {
	if len(args) > 1 {
		return loop.Usage(fmt.Sprintf("fix takes one text, and there are %d", len(args)), `put the text in quotes: hone fix "advice for the model"`)
	}
	return nil
}

// invocation is one fix: all that it depends on, resolved.
type invocation struct {
	loop.Settings
	System string   `json:"system"`
	Advice string   `json:"advice,omitempty"`
	Turns  int      `json:"turns"`           // most model calls in a session
	Calls  int      `json:"max_tool_calls"`  // most in a session
	Allow  []string `json:"allow,omitempty"` // programs beside the standard list

	flags, table table
	check        string // of a preview
}

// table is the table [fix]; the flags of the same names go before it.
type table struct {
	Rounds       int    `toml:"rounds" valid:"positive"`
	Turns        int    `toml:"turns" valid:"positive"`
	MaxToolCalls int    `toml:"max-tool-calls" valid:"positive"`
	Approve      string `toml:"approve" valid:"ask|none|all"`
}

func (v *invocation) Section() any { return &v.table }

func (v *invocation) Flags(fs *pflag.FlagSet) {
	fs.IntVar(&v.flags.Turns, "turns", 0, "most model calls in one session (default 30)")
	fs.IntVar(&v.flags.MaxToolCalls, "max-tool-calls", 0, "most tool calls in one session (default 120)")
	fs.StringSliceVar(&v.Allow, "allow", nil, "programs that the model may run beside the standard list, such as go,make; the check itself is always allowed")
}

func (v *invocation) Valid(in *loop.Input) error {
	return in.Positive(map[string]bool{"turns": v.flags.Turns > 0, "max-tool-calls": v.flags.MaxToolCalls > 0})
}

func (v *invocation) Resolve(_ context.Context, in *loop.Input) (l hone.Limits, err error) {
	in.Flags.Check = cmp.Or(in.Flags.Check, v.check, in.File.Check.Command)
	if in.Flags.Check == "" {
		return l, loop.Usage("there is no check, so nothing says what to fix",
			`hone fix --check "make test", or command below [check] in .config/hone.toml`)
	}
	if v.Settings, err = in.Settings(); err != nil {
		return l, err
	}
	if v.Advice, err = advice(in); err != nil {
		return l, err
	}
	v.System, v.Approve = System, cmp.Or(in.Flags.Approve, v.table.Approve, "ask")
	v.Turns, v.Calls = cmp.Or(v.flags.Turns, v.table.Turns, 30), cmp.Or(v.flags.MaxToolCalls, v.table.MaxToolCalls, 120)
	return in.Limits(v.table.Rounds), nil
}

// advice is TEXT, or standard input in its place.
func advice(in *loop.Input) (string, error) {
	if len(in.Args) == 0 || in.Args[0] != "-" {
		return slices.Concat(in.Args, []string{""})[0], nil
	}
	text, err := io.ReadAll(in.In)
	if err != nil {
		return "", loop.Usage("read the advice from standard input: "+err.Error(), `hone fix "advice for the model"`)
	}
	return string(text), nil
}

// Build puts loop, tools and check together.
func (v *invocation) Build(s loop.Session) (built loop.Built, err error) {
	r := s.NewRun(workspace.Rules{Guard: s.Guard()})
	l := v.loop()
	if err = s.SetModel(&l.Fixer, &v.Model, nil); err != nil {
		return built, err
	}
	if l.Fixer.Tools, err = s.Tools(loop.Toolset{Programs: slices.Concat(allow.Execution(), v.Allow)}); err != nil {
		return built, err
	}
	s.SetCheck(nil, s.Check)
	r.Trust.CheckFirst = hone.UnlessClean
	return loop.Built{Run: r, Round: l.Round, Turns: map[string]int{l.Fixer.Name: v.Turns}, Summary: v.summary}, nil
}

func (v *invocation) loop() Loop {
	l := Loop{Fixer: v.Model.Role("fixer", v.System), Check: v.Check, Advice: v.Advice}
	l.Fixer.Bounds = hone.Bounds{Turns: v.Turns, Calls: v.Calls}
	return l
}

// summary says where advice belongs that there was nothing to fix with.
func (v *invocation) summary(end hone.End) string {
	if end.Kind != hone.KindDone || end.Rounds > 0 || v.Advice == "" {
		return ""
	}
	return "the text was not used, because there is nothing to fix; for new work: hone task \"what is to be done\"\n"
}

func (v *invocation) PreviewFlags(fs *pflag.FlagSet) {
	fs.StringVar(&v.check, "check", "", "a command that has to exit 0 (default command below [check])")
}

func (v *invocation) Preview(context.Context, loop.View) (loop.Prompt, error) {
	l := v.loop()
	text := l.prompt()
	return loop.Prompt{System: v.System, Text: text, Fits: l.Fixer.Fits(int64(len(v.System) + len(text))),
		What: "the check's line and the instructions; a run adds what the check reports"}, nil
}
