package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/render"
	"hone/loop"
)

// trustRun shows what resuming a run would run and open, and asks whether resume,
// undo and settling may accept it as if it had been recorded here. yes answers;
// without it and without a terminal nothing is accepted.
func (a *app) trustRun(ctx context.Context, dir, ref string, yes bool) error {
	run, err := runs.Inspect(ctx, dir, ref)
	if err != nil {
		return err
	}
	if err := runs.CheckWhole(run.Run, run.Start); err != nil {
		return err
	}
	if run.Foreign == 0 {
		_, err := fmt.Fprintf(a.out, "run %s can be resumed: you recorded or accepted all of it\n", run.Run)
		return err
	}
	why := "not recorded by you on this machine"
	if run.Imported {
		why = "imported, or recorded elsewhere"
	}
	fmt.Fprintf(a.out, "run %s: %s, from event %d on %s\n", run.Run, render.Count(len(run.Events), "event"), run.Foreign, why)
	run.Start = runs.Relocated(run.Start, run.Dir)
	for _, line := range runLines(run) {
		fmt.Fprintf(a.out, "  %-10s %s\n", line.what, render.Line(line.text))
	}
	named := run.Run + failure.Elsewhere(run.Dir)
	fmt.Fprintln(a.out, "Replies and results in the journal would be used as if they were real: hone show "+named+" --full shows them.")
	if !yes && !a.present() {
		return failure.Usage("nothing was accepted, because there is no terminal to ask on", "read the lines above, then add --trust")
	}
	if !yes && !a.confirm(ctx, "Accept this run, so that resume and undo continue it?") {
		return failure.Usage("run "+run.Run+" was not accepted", "hone show "+named+" shows what happened in it")
	}
	if err := run.Accept(); err != nil {
		return failure.Of(err, "set XDG_STATE_HOME to a directory of your own")
	}
	_, err = fmt.Fprintf(a.out, "accepted; next: hone resume %s\n", named)
	return err
}

// runLine is one thing that a run uses.
type runLine struct{ what, text string }

// runLines returns what a recorded run would run, ask, open and complete.
func runLines(run *runs.Inspection) []runLine {
	lines := []runLine{{"loop", run.Start.Loop + " in " + run.Dir}}
	if run.Start.Dir != run.Dir {
		lines = append(lines, runLine{"elsewhere", "it was recorded in " + run.Start.Dir})
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
	lines = append(lines, runLine{"limits", fmt.Sprintf("%s, %s tokens, %s", render.Count(limits.MaxRounds(), "round"), render.Tokens(limits.Tokens), limits.Time)})
	for _, e := range run.Past.Unapplied() {
		for _, v := range e.Payload.(history.ApplyBegun).Verdicts {
			lines = append(lines, runLine{"completes", "the change of " + v.Path})
		}
	}
	return lines
}

// modelLines returns the lines about a model: its address, and what an agent may use.
func modelLines(m loop.RoleModel) []runLine {
	text := m.Model.Name
	if m.Role != "" {
		text += " as " + m.Role
	}
	if m.Model.BaseURL != "" {
		text += " at " + harness.RedactURL(m.Model.BaseURL)
	}
	lines := []runLine{{"model", text}}
	for _, f := range m.Model.Fallbacks {
		lines = append(lines, runLine{"fallback", f.Name + " of " + m.Model.Name})
	}
	if up := m.Model.Escalation; up != nil {
		lines = append(lines, runLine{"escalation", up.Name + " of " + m.Model.Name})
	}
	if m.Model.Agent != nil {
		b, _ := json.Marshal(m.Model.Agent)
		lines = append(lines, leafLines("agent", b)...)
	}
	return lines
}

// commandLines returns the lines about the check, and about what commands may use.
func commandLines(s loop.Settings) []runLine {
	var lines []runLine
	add := func(what, text string) {
		if text != "" {
			lines = append(lines, runLine{what, text})
		}
	}
	add("check", s.Check)
	add("check env", strings.Join(s.CheckEnv, " "))
	if s.Walls.None() {
		add("walls", "none: commands run with your rights")
	} else {
		add("walls", s.Walls.Wall)
	}
	if s.Walls.Net {
		add("network", "open")
	}
	add("may write", strings.Join(s.Walls.Write, " "))
	add("may read", strings.Join(s.Walls.Read, " "))
	add("variables", strings.Join(s.Walls.Env, " "))
	add("may send", strings.Join(s.Send, " "))
	if s.Approve == "all" {
		add("approve", "all: changes are not asked about")
	}
	return lines
}

// loopLines returns the lines about settings that only one loop has, such as
// hooks. System texts are omitted; they change only what a model is told.
func loopLines(settings json.RawMessage) []runLine {
	var all map[string]json.RawMessage
	if json.Unmarshal(settings, &all) != nil {
		return nil
	}
	shared := []string{"model", "approve", "send", "walls", "trust", "check", "check_timeout_ns", "check_env"}
	var lines []runLine
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(shared, key) && !strings.HasSuffix(key, "_model") && !strings.HasSuffix(key, "system") {
			lines = append(lines, leafLines(key, all[key])...)
		}
	}
	return lines
}

// leafLines returns one line for each value in a JSON value, named by its path.
func leafLines(name string, value json.RawMessage) []runLine {
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) != nil || object == nil {
		return []runLine{{"setting", name + " = " + string(value)}}
	}
	var lines []runLine
	for _, key := range slices.Sorted(maps.Keys(object)) {
		lines = append(lines, leafLines(name+"."+key, object[key])...)
	}
	return lines
}
