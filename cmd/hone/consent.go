package main

import (
	"context"
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

// consentLines says what a recorded run would run, ask, open and complete if it were resumed. System
// texts are left out: they change only what a model is told.
func consentLines(run *runs.Inspection) (lines []string) {
	add := func(what, text string) {
		if text != "" {
			lines = append(lines, fmt.Sprintf("%-10s %s", what, render.Line(text)))
		}
	}
	add("loop", run.Start.Loop+" in "+run.Dir)
	if run.Start.Dir != run.Dir {
		add("elsewhere", "it was recorded in "+run.Start.Dir)
	}
	var s loop.Settings
	_ = json.Unmarshal(run.Start.Settings, &s) // what is unreadable cannot be resumed
	models := s.Models()
	if l := kinds.Recorded(run.Start); l != nil {
		models = l.Models()
	}
	for _, m := range models {
		text := m.Model.Name
		if m.Role != "" {
			text += " as " + m.Role
		}
		if m.Model.BaseURL != "" {
			masked, _ := config.MaskAddress(m.Model.BaseURL) // other versions recorded more
			text += " at " + masked
		}
		add("model", text)
		for _, f := range m.Model.Fallbacks {
			add("fallback", f.Name+" of "+m.Model.Name)
		}
		if up := m.Model.Escalation; up != nil {
			add("escalation", up.Name+" of "+m.Model.Name)
		}
		if m.Model.Agent != nil {
			b, _ := json.Marshal(m.Model.Agent)
			addLeaves(add, "agent", b)
		}
	}
	add("check", s.Check)
	if s.Walls.None() {
		add("walls", "none: commands run with your rights")
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(run.Start.Settings, &all)
	known := []string{"model", "check"} // are above
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(known, key) && !strings.HasSuffix(key, "_model") && !strings.HasSuffix(key, "system") {
			addLeaves(add, key, all[key])
		}
	}
	limits := run.Past.Facts().Limits
	add("limits", fmt.Sprintf("%s, %s tokens, %s", render.Count(limits.MaxRounds(), "round"), render.Tokens(limits.Tokens), limits.Time))
	for _, e := range run.Past.Unapplied() {
		for _, v := range e.Payload.(history.ApplyBegun).Verdicts {
			add("completes", "the change of "+v.Path)
		}
	}
	return lines
}

func addLeaves(add func(what, text string), name string, value json.RawMessage) {
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) != nil || object == nil {
		add("setting", name+" = "+string(value))
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		addLeaves(add, name+"."+key, object[key])
	}
}

func (a *app) askTrust(ctx context.Context, q harness.TrustQuestion) bool {
	what := "this directory's programs"
	fmt.Fprintf(a.err, "\n%s\n", render.Line(q.Folder))
	if len(q.Programs) > 0 {
		fmt.Fprintln(a.err, "hone would run these programs of the directory:")
		for _, p := range q.Programs {
			fmt.Fprintf(a.err, "  %s\n", render.Line(p))
		}
		fmt.Fprintln(a.err, "Yes also covers these programs when they change, until hone trust --revoke.")
	} else {
		what = "these settings"
		fmt.Fprintln(a.err, map[bool]string{true: "These settings are new or have changed since you trusted the directory's settings:", false: "The configuration of the directory allows more than hone does by default:"}[q.Changed])
		for _, s := range q.Settings {
			fmt.Fprintf(a.err, "  %s\n", render.Line(fmt.Sprintf("%s = %s (%s:%d)", s.Key, s.Value, s.File, s.Line)))
			if s.Opens != "" {
				fmt.Fprintf(a.err, "      %s\n", s.Opens)
			}
		}
		fmt.Fprintln(a.err, "hone asks again when one of them changes.")
	}
	return a.confirm(ctx, "Do you trust "+what+"?")
}
