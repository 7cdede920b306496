package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/failure"
	"hone/harness"
	"hone/internal/config"
)

type undoFlags struct {
	dir          string
	round        int
	force        bool
	plan         *string // nil if it is not given
	dryRun, json bool
}

func (a *app) undoCommand() *cobra.Command {
	var f undoFlags
	var plan string
	c := helped("undo", &cobra.Command{
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			if f.json && !f.dryRun {
				return failure.Usage("--json needs --dry-run", helpFor(c))
			}
			if c.Flags().Changed("plan") {
				f.plan = &plan
			}
			return a.undo(c.Context(), f, runArg(args))
		},
	})
	registerDir(c, &f.dir)
	c.Flags().IntVar(&f.round, "to-round", 0, "restore the state at the end of this round; 0 is before the first round")
	config.SetRule(c.Flags(), "natural", "to-round")
	c.Flags().BoolVar(&f.force, "force", false, "also overwrite files that were changed after the run; their contents are kept")
	c.Flags().StringVar(&plan, "plan", "", "restore only if the plan still has this `DIGEST`, which --dry-run prints")
	c.Flags().BoolVarP(&f.dryRun, "dry-run", "n", false, "print what would be restored, and restore nothing")
	c.Flags().BoolVar(&f.json, "json", false, "with --dry-run, print one JSON object")
	return c
}

func (a *app) undo(ctx context.Context, f undoFlags, ref string) error {
	run, err := openForChange(ctx, f.dir, ref, "undo")
	if err != nil {
		return err
	}
	defer run.Close()
	for _, n := range run.Notes {
		a.say("note", failure.NoticeText(n))
	}
	run.Journal.Observe(a.observer)
	plan, err := planUndo(ctx, run, f.round)
	if err != nil {
		return err
	}
	if f.plan != nil && *f.plan != plan.digest() {
		return failure.Usage("nothing was undone, because the files or the run have changed since the preview",
			fmt.Sprintf("preview it again: hone undo %s%s --dry-run", plan.named, toRound(plan.Round)))
	}
	if f.dryRun {
		preview, err := plan.preview(ctx)
		if err != nil {
			return err
		}
		if f.json {
			return json.NewEncoder(a.out).Encode(preview)
		}
		plan.print(a.out, preview, map[bool]string{true: " --force"}[f.force])
		return nil
	}
	done, err := plan.carryOut(ctx, f.force, harness.KnownKeys(a.env))
	for _, lost := range done.Lost {
		a.say("error", lost)
		a.exit = failure.ExitStatus(hone.KindBlocked) // if anything, not all files were restored
	}
	for _, line := range done.Lines {
		fmt.Fprintln(a.out, line)
	}
	return err
}
