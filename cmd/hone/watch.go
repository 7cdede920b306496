package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/recorded"
	"hone/cmd/hone/report"
	"hone/journal"
)

func (a *app) watchCommand() *cobra.Command {
	var dir string
	var verbose bool
	c := &cobra.Command{
		Use:   "watch [RUN]",
		Short: "follow a run from another terminal until it ends",
		Long: `watch, or show --follow, shows what a run has done so far, and follows it until it ends. On a terminal it shows
a line for each round, and below them the current activity. It exits with the run's exit status, or with 5 if the run's process
died.

RUN is an id from hone runs, a unique prefix of one, or "last", the default. Ctrl-C ends watch, not the run.`,
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			return a.follow(c.Context(), dir, runArg(args), !verbose)
		},
	}
	registerDir(c, &dir)
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "show every event, also on a terminal")
	return c
}

const watchInterval = 300 * time.Millisecond

// It also ends when no process works on the run.
func (a *app) follow(ctx context.Context, dir, ref string, live bool) error {
	home, run, err := recorded.Find(dir, ref)
	if err != nil {
		return err
	}
	defer home.Close()
	w := watched{home: home, run: run, live: live}
	defer func() {
		if w.transcript != nil {
			w.transcript.Screen.Close()
		}
	}()
	for {
		working := recorded.Working(home, run) // before reading, so that nothing it still writes is missed
		end, err := a.showNew(&w)
		switch {
		case err != nil:
			return err
		case end != nil:
			a.exit = failure.ExitStatus(end.Kind)
			return nil
		case !working:
			return &failure.Error{Kind: hone.KindFailed, Why: "the process of run " + run + " ended without a result", Hint: "hone resume " + journal.ShortRun(run) + failure.Elsewhere(home.Workspace())}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchInterval):
		}
	}
}

type watched struct {
	home       *journal.Home
	run        string
	live       bool
	transcript *report.Transcript // nil until the run was read
	size       int64              // of the journal when it was read
}

// The end is nil if there are no new events or the last of them is not an end.
func (a *app) showNew(w *watched) (*hone.End, error) {
	size, err := w.home.Size(w.run)
	if err != nil || size == w.size {
		return nil, err
	}
	r, err := recorded.Read(w.home, w.run)
	if err != nil {
		return nil, err
	}
	if w.transcript == nil {
		w.transcript = a.transcript(r, showFlags{}, w.live)
	}
	err = w.transcript.Show(r)
	w.size = size
	if end, ended := r.Past.End(); ended {
		return &end, err
	}
	return nil, err
}
