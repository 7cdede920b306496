// Package improve lets a model make a number better while a check stays clean. A number
// decides, which the user's command prints: in each round a model changes the code, and the
// engine keeps the change if it is a gain beyond the noise, and takes it back if not
// ([hone.Metric]). This package has the conversation, and it measures (rulings I1 to I6).
package improve

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"hone"
	"hone/check"
	"hone/check/judge"
	"hone/history"
	"hone/internal/config"
	"hone/internal/render"
	"hone/loop"
	"hone/tool"
)

// request has the templates of a prompt's two parts.
//
//go:embed request.md
var request string

var fill = loop.Template(request, template.FuncMap{"figure": history.Figure, "idea": func(text string) string { return render.Cut(render.Line(text), maxIdea) }})

const maxIdea = 200 // how long an idea is in the list of those that were tried, in columns

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

var (
	//go:embed help.md
	help string
	//go:embed prompt.md
	rules string
)

// Kind is what improve declares of itself.
func Kind() loop.Kind {
	return loop.Kind{
		Name: "improve", Help: loop.ReadHelp(help), Text: true,
		New:      func() loop.Loop { return newInvocation() },
		Starters: loop.CheckStarters(`hone improve --metric ./bench.sh --lower p95_ms --check "make test"; hone help improve says what a metric prints`),
	}
}

// invocation is one improvement with all its settings resolved.
type invocation struct{ loop.Chat }

func newInvocation() *invocation {
	v := &invocation{loop.Chat{Role: "improver", Rules: rules}}
	v.Prompt, v.Report, v.Tools = func(*loop.Settings) string { return v.prompt() }, v.report, v.tools
	return v
}

// Resolve reads flags and configuration. It requires a metric, and the name of its number.
func (v *invocation) Resolve(_ context.Context, in *loop.Input) (err error) {
	for _, pair := range [][2]config.Setting[string]{{config.Lower, config.Higher}, {config.Higher, config.Lower}} {
		if pair[0].Given(in.Flags) != "" && pair[1].Given(in.Flags) == "" {
			pair[1].Set(in.Values, "") // the flag replaces both keys
		}
	}
	samples, rounds := config.Samples.In(in.Values), config.Rounds.In(in.Values)
	switch lower, higher := config.Lower.In(in.Values), config.Higher.In(in.Values); {
	case config.Metric.In(in.Values) == "":
		return loop.Usage("there is no metric, so nothing says what is better", `hone improve --metric ./bench.sh --lower NAME, or set both in the [improve] section of .config/hone.toml`)
	case lower != "" && higher != "" && config.Lower.Given(in.Flags) == "":
		return loop.UsageOf(in.File.Wrong(config.Higher.Key, "improve.lower is set, too, but one number must decide", "remove one of them"), "hone help config")
	case (lower == "") == (higher == ""):
		return loop.Usage("one number must decide, and whether it should be lower or higher", "--lower NAME or --higher NAME; a number alone has the name value")
	case samples > 0 && samples < firstSamples:
		return loop.Usage(fmt.Sprintf("--samples %d is too few to tell a gain from noise", samples), fmt.Sprintf("--samples %d", manySamples))
	case samples > 0 && leastP(samples) >= allAlpha/float64(rounds):
		return loop.Usage(fmt.Sprintf("with %d rounds, --samples %d cannot show any gain: by chance alone one would be kept too often", rounds, samples), fmt.Sprintf("--samples %d, or fewer rounds", manySamples))
	}
	config.Prove.Set(in.Values, "off") // it measures in clean copies anyway, and its check passes at the start
	if err := loop.CheckLine(config.Metric.In(in.Values)); err != nil {
		return loop.Usage("the metric has only blanks and comments", "--metric ./bench.sh")
	}
	if err = v.Use(in); err != nil {
		return err
	}
	name, _ := v.name()
	v.About = strings.TrimSpace(name + " of " + config.Metric.In(v.Values))
	return nil
}

// leastP returns the smallest p that a test of so many samples on each side can have.
func leastP(samples int) float64 {
	p := 1.0
	for i := 1; i <= samples; i++ {
		p *= float64(i) / float64(samples+i)
	}
	return p
}

// name returns the name of the number that decides, and whether lower is better.
func (v *invocation) name() (name string, lower bool) {
	if name = config.Lower.In(v.Values); name != "" {
		return name, true
	}
	return config.Higher.In(v.Values), false
}

// The model may run the metric, and sees nothing of the metric that confirms (ruling I5).
func (v *invocation) tools(s loop.Session, set *loop.Toolset) ([]tool.Tool, error) {
	set.Always = []string{config.Metric.In(v.Values)}
	if hidden := judge.Scripts(config.Confirm.In(v.Values)); len(hidden) > 0 {
		s.Guard().Hide(hidden)
		var paths []string
		for _, p := range hidden {
			file := filepath.Join(s.Root(), filepath.FromSlash(strings.TrimPrefix(p, "**/")))
			if _, err := os.Lstat(file); err == nil {
				paths = append(paths, file)
			}
		}
		set.Walls = s.Walls(loop.WallPlan{Hide: paths})
	}
	return nil, nil
}

// Build adds the metric.
func (v *invocation) Build(s loop.Session) (loop.Built, error) {
	built, err := v.Chat.Build(s)
	r, round, metric, confirm := built.Run, built.Round, config.Metric.In(v.Values), config.Confirm.In(v.Values)
	r.Trust.Judges, r.Trust.Keep = judge.Of(strings.Join([]string{v.Check, metric, confirm}, "\n")), true
	r.Trust.Protect = slices.Concat(r.Trust.Protect, judge.Scripts(metric), judge.Scripts(confirm), judge.Scripts(v.Check))
	r.Words = func(text string) string { first, _, _ := strings.Cut(text, "\n"); return first }
	gain, _ := parseNumber(strings.TrimSuffix(config.MinGain.In(v.Values), "%")) // the setting's rule accepts nothing else
	m := meter{session: s, run: r, line: metric, confirm: confirm, profile: config.Profile.In(v.Values),
		samples: config.Samples.In(v.Values), timeout: config.MetricTimeout.In(v.Values), redact: s.Guard().Redact, gain: gain / 100}
	m.name, m.lower = v.name()
	r.Metric = &hone.Metric{First: m.first, Compare: m.compare}
	if number, ok := parseNumber(config.Target.In(v.Values)); ok {
		r.Metric.Target = &number
	}
	built.Round = func(ctx context.Context, r *hone.Run, found []check.Finding) ([]check.Finding, error) {
		found, err := round(ctx, r, found)
		if hone.OutOfBudget(err) {
			found = []check.Finding{} // what was changed is measured all the same
		}
		return found, err
	}
	built.Summary = func(end hone.End) string { return summaryText(r, end) }
	return built, err
}

// summaryText returns what the run has gained, and what that has cost.
func summaryText(r *hone.Run, end hone.End) string {
	score := r.Past().Facts().State.Score
	if score == nil {
		return ""
	}
	text := score.Tally()
	if gain := score.Gain(score.First, score.Best); gain > 0 {
		text += fmt.Sprintf("; %.0f tokens", float64(end.Tokens)/gain)
		if end.Cost != nil && *end.Cost > 0 {
			text += fmt.Sprintf(" and $%.4f", *end.Cost/gain)
		}
		text += " for each percent"
	}
	return text + "\n"
}

// Preview returns the first prompt without what is measured at the start.
func (v *invocation) Preview(ctx context.Context, view loop.View) (loop.Prompt, error) {
	p, err := v.Chat.Preview(ctx, view)
	p.What = "the instructions; a run adds what it measures"
	return p, err
}
