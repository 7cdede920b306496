package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness/runs"
	"hone/internal/config"
	"hone/journal"
	"hone/loop"
	"hone/story"
)

type resumeFlags struct {
	config.Values // that were given
	dir           string
	answers       []string // as typed
	output        outputFlags
}

func (a *app) resumeCommand() *cobra.Command {
	var f resumeFlags
	c := helped("resume", &cobra.Command{
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.output.valid(c); err != nil {
				return err
			}
			return a.resume(c.Context(), f, runArg(args))
		},
	})
	registerDir(c, &f.dir)
	c.Flags().StringArrayVar(&f.answers, "answer", nil, "answer an open question, as `DIGEST=yes`, DIGEST=no or DIGEST=TEXT; hone show prints the digest; repeat it for more")
	f.Values = config.Values{}
	config.AddFlags(c.Flags(), f.Values, "", c.Name())
	f.output.register(c)
	f.output.registerAck(c)
	return c
}

func (a *app) resume(ctx context.Context, f resumeFlags, ref string) error {
	if err := a.openLog(f.output.log); err != nil {
		return err
	}
	run, err := openForChange(ctx, f.dir, ref, "resume")
	if err != nil {
		return err
	}
	defer run.Close()
	end := run.Past.Facts().End
	if to := run.Past.UndoneTo(); end.Kind == hone.KindDone && to != nil {
		return failure.Usage("the run is done, and it was undone: the files are as they were "+story.EndOfRound(*to),
			fmt.Sprintf("start a new run with its command; or bring its result back: hone undo %s%s --to-round %d", ref, failure.Elsewhere(run.Dir), run.Past.Facts().State.Round))
	}
	for _, n := range run.Notes {
		a.say("note", failure.NoticeText(n))
	}
	l, err := loop.RaiseLimits(run.Past.Facts().Limits, f.Values, ref+failure.Elsewhere(run.Dir))
	if err != nil {
		return err
	}
	k, err := kinds.Of(run.Start)
	if err != nil {
		return err
	}
	notes, err := placeRun(ctx, run)
	if err != nil {
		return err
	}
	a.sayNotes(notes)
	if a.given, err = answersTo(run, f.answers); err != nil {
		return err
	}
	s, err := a.host().Resume(ctx, run, k, l, config.BaseURL.In(f.Values))
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = a.drive(ctx, s, f.output)
	return err
}

// openForChange opens a run for a command that changes its workspace. It does not follow the name
// of an attempt to its copy, as [report.Find] does, because the user may mean their own files.
func openForChange(ctx context.Context, dir, ref, command string) (*runs.Recorded, error) {
	run, err := runs.Find(ctx, dir, ref)
	if err == nil {
		return run, nil
	}
	home, none := runs.Open(dir)
	if none != nil {
		return nil, err
	}
	defer home.Close()
	var missing *journal.NotFoundError
	if _, none := home.FindRun(ref); !errors.As(none, &missing) || len(missing.Matches) > 0 {
		return nil, err
	}
	found, none := attempts.Find(home, ref)
	if none != nil {
		return nil, err
	}
	return nil, failure.Usage(fmt.Sprintf("%s is attempt %d of run %s, which works in a copy", ref, found.Number, journal.ShortRun(found.Of)),
		"hone "+command+" "+journal.ShortRun(found.Run)+failure.Elsewhere(found.Dir))
}
