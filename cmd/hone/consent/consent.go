// Package consent words what the user is asked to trust: the programs and settings of a
// directory, and what hone would run and open if it resumed a run that the user did not
// record. It asks nothing and decides nothing.
package consent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hone/cmd/hone/kinds"
	"hone/harness"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/config"
	"hone/internal/render"
	"hone/loop"
)

// Line names one thing that a run uses, and what kind of thing it is.
type Line struct{ What, Text string }

// Run returns what a recorded run would run, ask, open and complete.
func Run(run *runs.Inspection) []Line {
	lines := []Line{{"loop", run.Start.Loop + " in " + run.Dir}}
	if run.Start.Dir != run.Dir {
		lines = append(lines, Line{"elsewhere", "it was recorded in " + run.Start.Dir})
	}
	var shared loop.Settings
	_ = json.Unmarshal(run.Start.Settings, &shared) // what is unreadable cannot be resumed
	models := shared.Models()
	if l := kinds.Recorded(run.Start); l != nil {
		models = l.Models()
	}
	for _, m := range models {
		lines = append(lines, modelLines(m)...)
	}
	lines = append(lines, commandLines(shared)...)
	lines = append(lines, loopLines(run.Start.Settings)...)
	limits := run.Past.Limits()
	lines = append(lines, Line{"limits", fmt.Sprintf("%s, %s tokens, %s", render.Count(limits.MaxRounds(), "round"), render.Tokens(limits.Tokens), limits.Time)})
	for _, e := range run.Past.Unapplied() {
		for _, v := range e.Payload.(history.ApplyBegun).Verdicts {
			lines = append(lines, Line{"completes", "the change of " + v.Path})
		}
	}
	return lines
}

func modelLines(m loop.RoleModel) []Line {
	text := m.Model.Name
	if m.Role != "" {
		text += " as " + m.Role
	}
	if m.Model.BaseURL != "" {
		masked, _ := config.MaskAddress(m.Model.BaseURL) // other versions recorded more
		text += " at " + masked
	}
	lines := []Line{{"model", text}}
	for _, f := range m.Model.Fallbacks {
		lines = append(lines, Line{"fallback", f.Name + " of " + m.Model.Name})
	}
	if up := m.Model.Escalation; up != nil {
		lines = append(lines, Line{"escalation", up.Name + " of " + m.Model.Name})
	}
	if m.Model.Agent != nil {
		b, _ := json.Marshal(m.Model.Agent)
		lines = append(lines, leafLines("agent", b)...)
	}
	return lines
}

func commandLines(s loop.Settings) []Line {
	var lines []Line
	add := func(what, text string) {
		if text != "" {
			lines = append(lines, Line{what, text})
		}
	}
	add("check", s.Check)
	add("check env", strings.Join(config.CheckEnv.In(s.Values), " "))
	if s.Walls.None() {
		add("walls", "none: commands run with your rights")
	} else {
		add("walls", string(s.Walls.Wall))
	}
	if s.Walls.Net {
		add("network", "open")
	}
	if s.Walls.AllowGit {
		add("git", "repositories that commands make stay, with their hooks and settings")
	}
	add("may write", strings.Join(s.Walls.Write, " "))
	add("may read", strings.Join(s.Walls.Read, " "))
	add("variables", strings.Join(s.Walls.Env, " "))
	add("may send", strings.Join(config.Send.In(s.Values), " "))
	if !config.GuardTools.In(s.Values) {
		add("your tools", "files that they run are changed without asking")
	}
	if config.Approve.In(s.Values) == "all" {
		add("approve", "all: changes are not asked about")
	}
	return lines
}

// System texts are omitted; they change only what a model is told.
func loopLines(settings json.RawMessage) []Line {
	var all map[string]json.RawMessage
	if json.Unmarshal(settings, &all) != nil {
		return nil
	}
	shared := []string{"model", "approve", "send", "walls", "trust", "check", "check_timeout_ns", "check_env"}
	var lines []Line
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(shared, key) && !strings.HasSuffix(key, "_model") && !strings.HasSuffix(key, "system") {
			lines = append(lines, leafLines(key, all[key])...)
		}
	}
	return lines
}

func leafLines(name string, value json.RawMessage) []Line {
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) != nil || object == nil {
		return []Line{{"setting", name + " = " + string(value)}}
	}
	var lines []Line
	for _, key := range slices.Sorted(maps.Keys(object)) {
		lines = append(lines, leafLines(name+"."+key, object[key])...)
	}
	return lines
}

// Setting returns a setting with its place, and what it opens.
func Setting(s config.Opening) string {
	text := fmt.Sprintf("%s:%d: %s = %s", s.File, s.Line, s.Key, s.Value)
	if s.Opens != "" {
		text += ": " + s.Opens
	}
	return render.Line(text)
}

// Needs returns the lines of hone trust about a folder: its programs, its settings, and the
// digest that accepts them.
func Needs(n harness.Needs) (lines []string) {
	for _, p := range n.Programs {
		lines = append(lines, "program  "+render.Line(p))
	}
	for _, s := range n.Settings {
		lines = append(lines, "setting  "+Setting(s))
	}
	if digest := n.Digest(); digest != "" {
		lines = append(lines, "digest   "+digest)
	}
	return lines
}

// Question returns a question of trust, and the text to read before it is answered.
func Question(q harness.TrustQuestion) (text, question string) {
	var b strings.Builder
	what := "this directory's programs"
	fmt.Fprintf(&b, "\n%s\n", render.Line(q.Folder))
	switch {
	case len(q.Programs) > 0:
		fmt.Fprintln(&b, "hone would run these programs of the directory:")
		for _, p := range q.Programs {
			fmt.Fprintf(&b, "  %s\n", render.Line(p))
		}
		fmt.Fprintln(&b, "Yes also covers these programs when they change, until hone trust --revoke.")
	default:
		what = "these settings"
		fmt.Fprintln(&b, map[bool]string{true: "These settings are new or have changed since you trusted the directory's settings:", false: "The configuration of the directory allows more than hone does by default:"}[q.Changed])
		for _, s := range q.Settings {
			fmt.Fprintf(&b, "  %s\n", render.Line(fmt.Sprintf("%s = %s (%s:%d)", s.Key, s.Value, s.File, s.Line)))
			if s.Opens != "" {
				fmt.Fprintf(&b, "      %s\n", s.Opens)
			}
		}
		fmt.Fprintln(&b, "hone asks again when one of them changes.")
	}
	return b.String(), "Do you trust " + what + "?"
}
