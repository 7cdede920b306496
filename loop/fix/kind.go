// Package fix lets a model fix what a check reports, until the check passes. Only the
// check decides: it runs before the first round (ruling G18), and if it passes then,
// no model is called.
package fix

import (
	"context"
	_ "embed"

	"hone"
	"hone/check"
	"hone/internal/config"
	"hone/internal/render"
	"hone/loop"
)

var (
	//go:embed help.md
	help string
	//go:embed prompt.md
	rules string
	//go:embed prompt-agent.md
	agentRules string
	//go:embed request.md
	request string
)

var fill = loop.Template(request, nil)

// Kind is what fix declares of itself.
func Kind() loop.Kind {
	return loop.Kind{
		Name: "fix", Help: loop.ReadHelp(help), Text: true, Modelless: true, Agents: true,
		New:      func() loop.Loop { return newInvocation() },
		Starters: loop.CheckStarters(`hone fix --check "make test"; or remove the # before "command" in .config/hone.toml, then: hone fix`),
	}
}

type invocation struct {
	loop.Chat
	Reported *hone.Reported `json:"reported,omitempty"`
}

func newInvocation() *invocation {
	v := &invocation{Chat: loop.Chat{Role: "fixer", Rules: rules, AgentRules: agentRules, Prompt: prompt}}
	v.Report = v.report
	return v
}

// Resolve reads flags and configuration. It requires a check.
func (v *invocation) Resolve(ctx context.Context, in *loop.Input) (err error) {
	switch {
	case config.Check.In(in.Values) == "":
		return loop.Usage("there is no check, so nothing says what to fix",
			`hone fix --check "make test", or set "command" in the [check] section of .config/hone.toml`)
	case config.OnlyNew.In(in.Values) && config.Findings.In(in.Values) == "":
		return loop.Usage("--only-new leaves nothing to fix: at the start, nothing that the check finds is new",
			`name what is new with --findings FILE; or for work that must add nothing: hone task "what is to be done" --only-new`)
	}
	if err = v.Use(in); err == nil {
		v.Reported, err = in.Reported(ctx)
	}
	return err
}

func prompt(s *loop.Settings) string {
	return fill("", map[string]any{"Check": s.Check, "OnlyNew": config.OnlyNew.In(s.Values), "Agent": s.Model.Agent != nil, "Absent": s.Walls.Absent, "Task": s.Task})
}

func (v *invocation) report(r *hone.Run, last string, found []check.Finding) string {
	lead := "What it reports now:"
	if v.Reported != nil && r.Round() == 1 && !config.OnlyNew.In(v.Values) && v.Prove() == "" {
		lead = "What it reported elsewhere, as " + render.Line(v.Reported.Name) + " says (it has not run here yet, and lines may have moved since):"
	}
	return loop.Report(last, lead, found)
}

// Build makes a check that passes at the start the end of the run.
func (v *invocation) Build(s loop.Session) (loop.Built, error) {
	built, err := v.Chat.Build(s)
	built.Run.Trust.CheckFirst, built.Run.Trust.Reported = hone.UnlessClean, v.Reported
	built.Summary = v.summary
	return built, err
}

func (v *invocation) summary(end hone.End) string {
	if end.Kind != hone.KindDone || end.Rounds > 0 {
		return ""
	}
	why := `; for new work: hone task "what is to be done"`
	if v.Reported != nil {
		why = ": the check does not find here what " + v.Reported.Name + " reports"
	}
	return "there is nothing to fix, and no model was asked" + why + "\n"
}
