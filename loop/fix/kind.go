// Package fix lets a model fix what a check reports, until the check passes. Only the
// check decides: it runs before the first round (ruling G18), and if it passes then,
// no model is called.
package fix

import (
	"context"
	_ "embed"
	"strings"

	"hone"
	"hone/check"
	"hone/internal/config"
	"hone/internal/render"
	"hone/loop"
	"hone/workspace"
	"hone/workspace/secret"
)

var (
	//go:embed help.md
	help string
	//go:embed prompt.md
	system string // describes its part to the model (ruling G13)
)

// Kind is what fix declares of itself.
func Kind() loop.Kind {
	return loop.Kind{
		Name: "fix", Help: loop.ReadHelp(help), Args: loop.OneText, Text: true, Modelless: true,
		New:      func() loop.Loop { return &invocation{} },
		Preview:  loop.Preview{Short: "what fix would send first, without the check's report"},
		Starters: loop.CheckStarters(`hone fix --check "make test"; or remove the # before "command" in .config/hone.toml, then: hone fix`),
	}
}

type invocation struct {
	loop.Settings
	System   string         `json:"system"`
	Reported *hone.Reported `json:"reported,omitempty"`
}

// Resolve reads flags and configuration. It requires a check.
func (v *invocation) Resolve(ctx context.Context, in *loop.Input) (l hone.Limits, err error) {
	switch {
	case config.Check.In(in.Values) == "":
		return l, loop.Usage("there is no check, so nothing says what to fix",
			`hone fix --check "make test", or set "command" in the [check] section of .config/hone.toml`)
	case config.OnlyNew.In(in.Values) && config.Findings.In(in.Values) == "":
		return l, loop.Usage("--only-new leaves nothing to fix: at the start, nothing that the check finds is new",
			`name what is new with --findings FILE; or for work that must add nothing: hone task "what is to be done" --only-new`)
	}
	if v.Settings, err = in.Settings(); err != nil {
		return l, err
	}
	v.About, v.System = v.Check, v.Walls.System(system)
	if v.Task, err = in.Text(); err == nil {
		v.Reported, err = in.Reported(ctx)
	}
	return in.Limits(), err
}

// A round is one conversation. It starts with what the one before did and said, and what the check reports now.
func (v *invocation) round(fixer hone.Role, guard *secret.Guard) hone.Round {
	return func(ctx context.Context, r *hone.Run, wrong []check.Finding) ([]check.Finding, error) {
		last, err := r.LastSession(fixer)
		if err != nil {
			return nil, err
		}
		if last != "" {
			last = "\n" + last + "\n" + loop.FalseClaim(last, wrong)
		}
		place, err := loop.Look(ctx, r, guard)
		if err != nil {
			return nil, err
		}
		lead := "What it reports now:"
		if v.Reported != nil && r.Round() == 1 && !config.OnlyNew.In(v.Values) && v.Prove() == "" {
			lead = "What it reported elsewhere, as " + render.Line(v.Reported.Name) + " says (it has not run here yet, and lines may have moved since):"
		}
		if note, others := loop.ProofNote(wrong); note != "" {
			lead, wrong = note+"\n\nWhat it reports:", others
		}
		report := place + last + "\n" + lead + "\n\n" + strings.Join(loop.ForModel(wrong), "\n\n") + "\n"
		_, err = r.Talk(ctx, fixer, hone.Text(v.prompt(), report))
		return nil, err
	}
}

// It is the same in all rounds.
func (v *invocation) prompt() string {
	goal, howToRun := "This check must pass", "You may run it with `bash`, exactly as it is written here, as often as you need."
	if config.OnlyNew.In(v.Values) {
		goal = "This check must find nothing but what was there before and does not count"
	}
	if v.Walls.Absent {
		howToRun = "You cannot run it. It runs when your session ends."
	}
	return goal + ":\n\n" + loop.Indented(v.Check) + "\n\n" + howToRun + "\n" + loop.Advised(v.Task)
}

// Build puts round, tools and check together.
func (v *invocation) Build(s loop.Session) (built loop.Built, err error) {
	r := s.NewRun(workspace.Rules{Guard: s.Guard()})
	fixer := s.Role("fixer", v.System)
	fixer.Tools, err = s.Tools(loop.Toolset{Programs: v.Programs()})
	s.SetCheck(nil, s.Check)
	v.SetJudge(r, v.Check)
	r.Trust.CheckFirst, r.Trust.Reported = hone.UnlessClean, v.Reported
	return loop.Built{Run: r, Round: v.round(fixer, s.Guard()), Turns: map[string]int{fixer.Name: v.Bounds().Turns}, Summary: v.summary}, err
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

// Preview returns the first prompt without the check's report.
func (v *invocation) Preview(context.Context, loop.View) (loop.Prompt, error) {
	return v.PromptOf("fixer", v.System, v.prompt(), "the instructions; a run adds the check's report")
}
