package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/report"
	"hone/journal"
)

func (a *app) watchCommand() *cobra.Command {
	var dir string
	var verbose bool
	c := helped("watch", &cobra.Command{
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			return a.follow(c.Context(), dir, runArg(args), !verbose)
		},
	})
	registerDir(c, &dir)
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "show every event, also on a terminal")
	return c
}

const watchInterval = 300 * time.Millisecond

// It also ends when no process works on the run.
func (a *app) follow(ctx context.Context, dir, ref string, live bool) error {
	home, run, err := report.Find(dir, ref)
	if err != nil {
		return err
	}
	defer home.Close()
	var shown *report.Transcript // nil until the run was read
	defer func() {
		if shown != nil {
			shown.Screen.Close()
		}
	}()
	for read := int64(0); ; {
		working := report.Working(home, run) // before reading, so that nothing it still writes is missed
		size, err := home.Size(run)
		if err != nil {
			return err
		}
		if size != read {
			r, err := report.Read(home, run)
			if err != nil {
				return err
			}
			if shown == nil {
				shown = a.transcript(r, showFlags{}, live)
			}
			if err := shown.Show(r); err != nil {
				return err
			}
			if now := r.Past.Facts(); now.Ended {
				a.exit = failure.ExitStatus(now.End.Kind)
				return nil
			}
			read = size
		}
		if !working {
			return &failure.Error{Kind: hone.KindFailed, Why: "the process of run " + run + " ended without a result", Hint: "hone resume " + journal.ShortRun(run) + failure.Elsewhere(home.Workspace())}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchInterval):
		}
	}
}
