package fix

import (
	"context"
	_ "embed"
	"slices"

	"hone"
	"hone/internal/config"
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
		Args: loop.OneText, Text: true, Modelless: true, Attempts: loop.RequireCheck,
		New:     func() loop.Loop { return &invocation{} },
		Preview: loop.Preview{Short: "what fix would send first, without the check's report"},
		Starters: func() loop.Starters {
			return loop.Starters{Short: "a .config/hone.toml with a check to enable", NeedsCheck: true, Next: func(string) string {
				return `hone fix --check "make test"; or remove the # before "command" in .config/hone.toml, then: hone fix`
			}}
		},
	}
}

type invocation struct {
	loop.Settings
	System string `json:"system"`
	Advice string `json:"advice,omitempty"`
}

// Resolve reads flags and configuration. It requires a check.
func (v *invocation) Resolve(_ context.Context, in *loop.Input) (l hone.Limits, err error) {
	if config.Check.In(in.Values) == "" {
		return l, loop.Usage("there is no check, so nothing says what to fix",
			`hone fix --check "make test", or set "command" in the [check] section of .config/hone.toml`)
	}
	if v.Settings, err = in.Settings(); err != nil {
		return l, err
	}
	v.Advice, err = in.Text()
	v.System = v.Walls.System(System)
	return in.Limits(), err
}

// RepeatArgs gives the same advice.
func (v *invocation) RepeatArgs() []string { return v.Repeat(v.Advice) }

// Build puts loop, tools and check together.
func (v *invocation) Build(s loop.Session) (built loop.Built, err error) {
	r := s.NewRun(workspace.Rules{Guard: s.Guard()})
	l := v.loop(s.Role("fixer", v.System))
	l.Guard = s.Guard()
	if l.Fixer.Tools, err = s.Tools(loop.Toolset{Programs: slices.Concat(allow.ExecutionPrograms(), config.Allow.In(v.Values))}); err != nil {
		return built, err
	}
	s.SetCheck(nil, s.Check)
	v.SetJudge(r, v.Check)
	r.Trust.CheckFirst = hone.UnlessClean
	return loop.Built{Run: r, Round: l.Round, Turns: map[string]int{l.Fixer.Name: v.Bounds().Turns}, Summary: v.summary}, nil
}

func (v *invocation) loop(fixer hone.Role) Loop {
	fixer.Bounds = v.Bounds()
	return Loop{Fixer: fixer, Check: v.Check, Advice: v.Advice, NoBash: v.Walls.Absent}
}

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
