package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/config"
	"hone/internal/git"
	"hone/internal/render"
	"hone/loop"
)

type trustFlags struct {
	dir               string // of the runs
	list, revoke, yes bool
}

func (a *app) trustCommand() *cobra.Command {
	var f trustFlags
	c := helped("trust", &cobra.Command{
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if f.list {
				return a.listTrust()
			}
			if len(args) == 0 {
				args = []string{f.dir}
			}
			if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
				return a.trustNamed(c.Context(), args[0], f)
			}
			switch {
			case f.yes:
				return failure.Usage("--trust accepts a run, and "+args[0]+" is a directory", "hone trust "+failure.Quoted(args[0]))
			case f.revoke:
				return a.revokeTrust(args[0])
			}
			return a.trustFolder(c.Context(), args[0])
		},
	})
	registerDir(c, &f.dir)
	c.Flags().BoolVar(&f.list, "list", false, "list the directories that you trust")
	c.Flags().BoolVar(&f.revoke, "revoke", false, "no longer trust the directory, or the run")
	c.Flags().BoolVar(&f.yes, "trust", false, "accept the run without asking")
	c.MarkFlagsMutuallyExclusive("list", "revoke")
	return c
}

// The name is that of a run, or of a folder that no longer exists and whose record is to be removed.
func (a *app) trustNamed(ctx context.Context, name string, f trustFlags) error {
	if !f.revoke {
		return a.trustRun(ctx, f.dir, name, f.yes)
	}
	if folder, err := filepath.Abs(name); err == nil {
		if ok, err := harness.RevokeTrust(folder); ok || err != nil {
			return err
		}
	}
	if err := runs.Revoke(f.dir, name); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "run %s is no longer accepted\n", name)
	return err
}

// resume, undo and settling may then accept the run as if it had been recorded here. yes answers; without it and without a
// terminal nothing is accepted.
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
	for _, line := range consentLines(run) {
		fmt.Fprintf(a.out, "  %s\n", line)
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

// On a terminal it asks for what is not trusted yet.
func (a *app) trustFolder(ctx context.Context, dir string) error {
	root, err := loop.AbsDir(dir)
	if err != nil {
		return err
	}
	if _, err := git.Root(root); errors.As(err, new(*git.ForeignError)) {
		return err // loops refuse it, whatever is trusted
	}
	n, err := a.allNeeds(root)
	if err != nil {
		return err
	}
	if len(n.Programs) == 0 && len(n.Settings) == 0 {
		_, err := fmt.Fprintf(a.out, "%s needs no trust: hone would run no program of its own, and no setting opens anything\n", root)
		return err
	}
	if !a.present() {
		for _, p := range n.Programs {
			fmt.Fprintln(a.out, "program  "+render.Line(p))
		}
		for _, s := range n.Settings {
			fmt.Fprintln(a.out, "setting  "+render.Line(s.InWords()))
		}
		if digest := n.Digest(); digest != "" {
			fmt.Fprintln(a.out, "digest   "+digest)
		}
	}
	if err := a.host().Trusted(ctx, n); err != nil {
		hint := "to trust it, answer yes" // the advice of hone trust must not be hone trust
		switch digest := n.Digest(); {
		case a.present():
		case digest != "":
			hint = "type hone trust on a terminal, or accept the programs and these settings with HONE_TRUST=" + digest
		default:
			hint = "type hone trust on a terminal, or accept all of these programs with HONE_TRUST=1"
		}
		return failure.UsageOf(err, hint)
	}
	_, err = fmt.Fprintf(a.out, "%s is trusted\n", root)
	return err
}

// A check that the user typed replaces the check of the file, which then does not run.
func (a *app) startNeeds(root string, file config.File, typed config.Values, run ...loop.Kind) (harness.Needs, error) {
	if config.Check.Given(typed) != "" {
		file = file.Without(config.Check.Row)
	}
	return kinds.Needs(root, file, run...)
}

func (a *app) allNeeds(root string) (harness.Needs, error) {
	file, err := a.loadConfig(root)
	if err != nil {
		return harness.Needs{}, err
	}
	return kinds.Needs(root, file, kinds.All()...)
}

// Only yes is a yes.
func (a *app) confirm(ctx context.Context, question string) bool {
	fmt.Fprint(a.err, question+" [y/N] ")
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.err)
	case line := <-a.answerLine():
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true
		}
	}
	return false
}

func (a *app) listTrust() error {
	all, err := harness.TrustRecords()
	if len(all) == 0 && err == nil {
		a.sayPlain("no directories are trusted")
	}
	for _, r := range all {
		var what []string
		if r.Programs {
			what = append(what, "programs")
		}
		if n := len(r.Settings); n > 0 {
			what = append(what, render.Count(n, "setting"))
		}
		fmt.Fprintf(a.out, "%s  %s\n", r.Folder, strings.Join(what, ", "))
	}
	if err != nil {
		return failure.Of(err, "")
	}
	return nil
}

func (a *app) revokeTrust(dir string) error {
	folder, err := loop.AbsDir(dir)
	if err != nil {
		return err
	}
	ok, err := harness.RevokeTrust(folder)
	switch {
	case err != nil:
		return failure.Of(err, "")
	case !ok:
		return failure.Usage(folder+" is not trusted", "hone trust --list")
	}
	_, err = fmt.Fprintf(a.out, "%s is no longer trusted\n", folder)
	return err
}

// The folder had no files that need trust before hone wrote some.
func (a *app) trustStarters(root string) error {
	n, err := a.allNeeds(root)
	if err != nil {
		return err
	}
	if err := harness.TrustOwn(n); err != nil {
		a.say("note", err.Error()+"; hone will ask whether you trust the directory")
	}
	return nil
}

func (a *app) hasTrustFiles(root string) bool {
	for _, name := range []string{config.HonePath, config.BorkPath} {
		if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name))); err == nil {
			return true
		}
	}
	n, err := kinds.Needs(root, config.File{}, kinds.All()...)
	return err != nil || len(n.Programs) > 0 || len(n.Settings) > 0
}

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
