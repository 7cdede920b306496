package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/screen"
	"hone/journal"
)

func (a *app) watchCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "watch [RUN]",
		Short: "follow a run from another terminal until it ends",
		Long: `watch shows what a run has done so far, and follows it until it ends. It exits with the run's exit status, or
with 5 if the process of the run died.
RUN is an id from hone runs, a unique prefix of one, or "last", the default. Ctrl-C ends watch, not the run.`,
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error { return a.follow(c.Context(), dir, runArg(args)) },
	}
	registerDir(c, &dir)
	return c
}

// watchInterval is how often the journal is read.
const watchInterval = 300 * time.Millisecond

// follow shows the events of a run until it ends, or until no process works on it.
func (a *app) follow(ctx context.Context, dir, ref string) error {
	home, run, err := openRun(dir, ref)
	if err != nil {
		return err
	}
	defer home.Close()
	var s *screen.Screen
	for shown := 0; ; {
		working := works(home, run) // before reading, so that nothing it still writes is missed
		past, start, err := readRun(home, run)
		if err != nil {
			return err
		}
		if s == nil {
			s = a.recordScreen(home, run, past, start, showFlags{})
			defer s.Close()
		}
		if err := a.showEvents(s, home, past, showFlags{}, shown); err != nil {
			return err
		}
		shown = len(past.Events())
		switch end, ended := past.End(); {
		case ended:
			a.exit = exitStatus(end.Kind)
			return nil
		case !working:
			return &failure{kind: hone.KindFailed, why: "the process of run " + run + " ended without a result", hint: "hone resume " + journal.ShortRun(run)}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchInterval):
		}
	}
}
