package fix

import (
	"cmp"
	"context"
	_ "embed"
	"slices"

	"github.com/spf13/pflag"

	"hone"
	"hone/loop"
	"hone/tool/allow"
	"hone/workspace"
)

//go:embed help.md
var help string

// Kind is what fix declares of itself.
func Kind() loop.Kind {
	return loop.Kind{
		Name: "fix", Use: "fix [TEXT]", Short: "let a model fix what a check reports, until it passes", Long: help,
		Example: `  hone fix --check "go vet ./... && go test ./..."
  hone fix "the parser is right, the printer is wrong" --check "make test" --allow go
  git log -3 | hone fix - --check "npm test" -m ollama/qwen3-coder`,
		Args: loop.OneText, Text: true, Rounds: 5, Modelless: true, Attempts: loop.RequireCheck,
		New:     func() loop.Loop { return &invocation{} },
		Preview: loop.Preview{Short: "what fix would send first, without the check's report"},
		Starters: func() loop.Starters {
			return loop.Starters{Short: "a .config/hone.toml with a check to enable", NeedsCheck: true, Next: func(string) string {
				return `set "command" in the [check] section of .config/hone.toml, then: hone fix; or: hone fix --check "make test"`
			}}
		},
	}
}

// invocation is one fix with all its settings resolved.
type invocation struct {
	loop.Settings
	loop.Conversing
	System string `json:"system"`
	Advice string `json:"advice,omitempty"`
	table  loop.ConversingTable
}

func (v *invocation) Section() any               { return &v.table }
func (v *invocation) Valid(in *loop.Input) error { return v.ValidFlags(in) }

func (v *invocation) Flags(fs *pflag.FlagSet) {
	v.AddFlags(fs)
	fs.Lookup("check").Usage = "the check: a shell command that exits with status 0 if all is well (default: command in the [check] section of .config/hone.toml)"
}

// Resolve reads flags and configuration. It requires a check.
func (v *invocation) Resolve(_ context.Context, in *loop.Input) (l hone.Limits, err error) {
	if in.Flags.Check == "" && in.File.Check.Command == "" {
		return l, loop.Usage("there is no check, so nothing says what to fix",
			`hone fix --check "make test", or set "command" in the [check] section of .config/hone.toml`)
	}
	if v.Settings, err = in.Settings(); err != nil {
		return l, err
	}
	v.Advice, err = in.Text()
	v.System, v.Approve = v.Walls.System(System), in.Approve(v.table.Approve)
	v.Complete(v.table.Turns, v.table.MaxToolCalls)
	v.Judge = cmp.Or(v.Judge, in.File.Check.Judge, loop.DefaultJudge)
	return in.Limits(v.table.Rounds), err
}

// RepeatArgs gives the same advice.
func (v *invocation) RepeatArgs() []string { return v.Conversing.RepeatArgs(v.Advice) }

// Build puts loop, tools and check together.
func (v *invocation) Build(s loop.Session) (built loop.Built, err error) {
	r := s.NewRun(workspace.Rules{Guard: s.Guard()})
	l := v.loop(s.Role("fixer", v.System))
	if l.Fixer.Tools, err = s.Tools(loop.Toolset{Programs: slices.Concat(allow.ExecutionPrograms(), v.Allow)}); err != nil {
		return built, err
	}
	s.SetCheck(nil, s.Check)
	v.SetJudge(r, v.Check)
	r.Trust.CheckFirst = hone.UnlessClean
	return loop.Built{Run: r, Round: l.Round, Turns: map[string]int{l.Fixer.Name: v.Turns}, Summary: v.summary}, nil
}

func (v *invocation) loop(fixer hone.Role) Loop {
	fixer.Bounds = v.Bounds()
	return Loop{Fixer: fixer, Check: v.Check, Advice: v.Advice, NoBash: v.Walls.Absent}
}

// summary returns what to type for new work if there was nothing to fix.
func (v *invocation) summary(end hone.End) string {
	if end.Kind != hone.KindDone || end.Rounds > 0 {
		return ""
	}
	return "there is nothing to fix, and no model was asked; for new work: hone task \"what is to be done\"\n"
}

// Preview returns the first prompt without the check's report.
func (v *invocation) Preview(context.Context, loop.View) (loop.Prompt, error) {
	system := v.WithAdvice(v.System)
	l := v.loop(v.Model.Role("fixer", system))
	return loop.Prompt{System: system, Text: l.prompt(), Fits: l.Fixer.Fits(int64(len(system) + len(l.prompt()))), What: "the instructions; a run adds the check's report"}, nil
}
