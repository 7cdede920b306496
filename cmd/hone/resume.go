package main

import (
	"context"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/recorded"
	"hone/cmd/hone/undo"
	"hone/internal/config"
	"hone/loop"
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
	run, err := recorded.ForChange(ctx, f.dir, ref, "resume")
	if err != nil {
		return err
	}
	defer run.Close()
	for _, n := range run.Notes {
		a.say("note", failure.NoticeText(n))
	}
	l, err := loop.RaiseLimits(run.Limits(), f.Values, ref+failure.Elsewhere(run.Dir))
	if err != nil {
		return err
	}
	k, err := kinds.Of(run.Start)
	if err != nil {
		return err
	}
	notes, err := undo.Place(ctx, run)
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
