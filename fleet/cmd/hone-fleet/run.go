package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"hone/fleet/flow"
	"hone/fleet/job"
	"hone/fleet/leg"
	"hone/fleet/store"
	"hone/internal/render"
)

// exportRuns writes the runs of the named jobs, or of all that have one, to files.
func (a *app) exportRuns(ctx context.Context, f resultsFlags, s flow.Status, names []string) error {
	if err := known(s, names); err != nil {
		return err
	}
	if f.store == "" || f.key == "" {
		return usage("--run needs the workers' store and key", "add --store DIR and --key FILE")
	}
	key, err := leg.ReadKey(f.key)
	if err != nil {
		return usage(err.Error(), "")
	}
	from, err := store.Open(f.store)
	if err != nil {
		return usage(err.Error(), "")
	}
	hone, err := findHone("")
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "hone-run-")
	if err != nil {
		return failed(err, "")
	}
	defer os.RemoveAll(tmp)
	if err := os.MkdirAll(f.run, 0o755); err != nil {
		return failed(err, "")
	}
	w := &leg.Worker{Store: from, Key: key, Hone: hone, Dir: tmp}
	for _, j := range s.Jobs {
		if j.Outcome.Run == "" || len(names) > 0 && !slices.Contains(names, j.Name) {
			continue
		}
		file := filepath.Join(f.run, j.Name+".hone")
		if err := w.Export(ctx, s.ID, job.Job{Name: j.Name, Repo: j.Repo, Ref: j.Ref}, file); err != nil {
			return failed(fmt.Errorf("%s: %w", j.Name, err), "")
		}
		fmt.Fprintf(a.out, "%s: run %s is in %s; next, in a clone of %s: hone import %s\n", j.Name, j.Outcome.Run, file, render.Line(j.Repo), file)
		if !j.State.Ended() {
			fmt.Fprintf(a.out, "  it is a copy: the fleet continues the run, and does not see what hone resume does in the clone\n")
			if j.State == flow.NeedsYou {
				fmt.Fprintf(a.out, "  next: %s\n", answerLine(s.ID, j))
			}
		}
	}
	return nil
}
