// Package improve lets a model make a number better while a check stays clean. A number
// decides, which the user's command prints: in each round a model changes the code, and the
// engine keeps the change if it is a gain beyond the noise, and takes it back if not
// ([hone.Metric]). This package has the conversation, and it measures (rulings I1 to I6).
package improve

import (
	_ "embed"
	"strings"
	"sync"
	"text/template"

	"hone"
	"hone/check"
	"hone/history"
	"hone/internal/config"
	"hone/internal/render"
	"hone/loop"
)

// request has the templates of a prompt's two parts.
//
//go:embed request.md
var request string

const maxIdea = 200 // how long an idea is in the list of those that were tried, in columns

var parts = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"indented": loop.Indented, "advised": loop.Advised, "line": render.Line, "figure": history.Figure,
		"idea": func(text string) string { return render.Cut(render.Line(text), maxIdea) }}).Parse(request))
})

func fill(part string, data any) string {
	var b strings.Builder
	if err := parts().ExecuteTemplate(&b, part, data); err != nil {
		panic(err) // the templates use nothing that can fail
	}
	return b.String()
}

// report says how good the best is and what was tried before this round, and what the check said.
func (v *invocation) report(r *hone.Run, _ string, found []check.Finding) string {
	past := r.Past().Facts()
	best, tried := past.Before.Score, []hone.State(nil)
	for _, s := range past.States {
		if s.Round >= r.Round() || s.Score == nil {
			continue
		}
		if tried = append(tried, s); s.Score.Kept {
			best = s.Score
		}
	}
	noise := ""
	if best.Noise > 0 {
		noise = history.Part(best.Noise * 100)
	}
	name, _ := v.name()
	return fill("round", map[string]any{"Round": r.Round(), "Rounds": r.Limits.MaxRounds(), "Name": name, "Best": best, "Noise": noise, "Gain": config.MinGain.In(v.Values),
		"Profile": config.Profile.In(v.Values), "Tried": tried, "Found": strings.Join(loop.ForModel(found), "\n\n")})
}

// prompt returns the part of the prompt that is the same in all rounds.
func (v *invocation) prompt() string {
	name, lower := v.name()
	better := "higher"
	if lower {
		better = "lower"
	}
	return fill("start", map[string]any{"Name": name, "Better": better, "Metric": config.Metric.In(v.Values), "Absent": v.Walls.Absent,
		"Target": config.Target.In(v.Values), "Check": v.Check, "Task": v.Task})
}
