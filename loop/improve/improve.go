// Package improve lets a model make a number better while a check stays clean. A number
// decides, which the user's command prints: in each round a model changes the code, and the
// engine keeps the change if it is a gain beyond the noise, and takes it back if not
// ([hone.Metric]). This package has the conversation, and it measures (rulings I1 to I6).
package improve

import (
	"fmt"
	"strings"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/config"
	"hone/internal/render"
	"hone/loop"
)

// report says how good the best is and what was tried, and what the check said.
func (v *invocation) report(r *hone.Run, _ string, found []check.Finding) string {
	text := v.standing(r)
	if len(found) > 0 {
		text += "\nWhat the check said of the change that was taken back, and what else you should know:\n\n" + strings.Join(loop.ForModel(found), "\n\n") + "\n"
	}
	return text
}

// standing says how good the best is, and what was tried before this round.
func (v *invocation) standing(r *hone.Run) string {
	var tried []hone.State
	for _, s := range r.Past().Facts().States {
		if s.Round < r.Round() && s.Score != nil {
			tried = append(tried, s)
		}
	}
	best := r.Past().Facts().Before.Score
	for _, s := range tried {
		if s.Score.Kept {
			best = s.Score
		}
	}
	name, _ := v.name()
	gain, noise := config.MinGain.In(v.Values), ""
	if best.Noise > 0 {
		gain += ", and more than what single runs differ by"
		noise = " ± " + history.Part(best.Noise*100) + " %"
	}
	text := fmt.Sprintf("\nThis is round %d of at most %d. %s was %s at the start. The best so far is %s%s. A gain must be at least %s.\n",
		r.Round(), r.Limits.MaxRounds(), name, history.Figure(best.First), history.Figure(best.Best), noise, gain)
	for _, name := range best.ShownNames() {
		text += fmt.Sprintf("%s is %s; it does not decide.\n", render.Line(name), history.Figure(best.Shown[name]))
	}
	if best.Profile != "" {
		text += fmt.Sprintf("\nA profile of the best, printed by `%s`, at most 8 KB of it:\n\n%s\n", render.Line(config.Profile.In(v.Values)), loop.Indented(strings.TrimRight(best.Profile, "\n")))
	}
	if len(tried) == 0 {
		return text
	}
	text += "\nWhat was tried, each measured beside the best of its time, in turn:\n\n"
	for _, s := range tried {
		text += fmt.Sprintf("- round %d: %s. You said: %s\n", s.Round, render.Line(s.Score.Verdict()), render.Cut(render.Line(s.Score.Idea), maxIdea))
	}
	return text
}

// maxIdea is how long an idea is in the list of those that were tried, in columns.
const maxIdea = 200

// prompt returns the part of the prompt that is the same in all rounds.
func (v *invocation) prompt() string {
	name, lower := v.name()
	better := "higher"
	if lower {
		better = "lower"
	}
	howToRun := "You may run it with `bash`, exactly as it is written here."
	if v.Walls.Absent {
		howToRun = "You cannot run it."
	}
	text := fmt.Sprintf("This command prints the number %s, which is better the %s it is:\n\n%s\n\n%s\n", name, better, loop.Indented(config.Metric.In(v.Values)), howToRun)
	if target := config.Target.In(v.Values); target != "" {
		text += "\nThe goal is " + target + ".\n"
	}
	if v.Check != "" {
		text += "\nThis check must pass:\n\n" + loop.Indented(v.Check) + "\n\n" + howToRun + "\n"
	}
	return text + loop.Advised(v.Task)
}
