package main

import (
	"context"

	"github.com/spf13/cobra"

	"hone/harness"
	"hone/loop"
)

func (a *app) resumeCommand() *cobra.Command {
	var dir, baseURL string
	var limits loop.LimitFlags
	var output outputFlags
	c := &cobra.Command{
		Use:   "resume RUN",
		Short: "go on from where a run stopped or died",
		Long: `resume goes on with a run: nothing that is on record is done or bought again. RUN is an id, a
unique prefix of one, or "last". Settings are the run's own; limits can be raised. Questions that
nobody could be asked are asked first. A finished run only prints its end again.`,
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			if err := validLimits(c, limits); err != nil {
				return err
			}
			return a.resume(c.Context(), dir, args[0], limits, baseURL, output)
		},
	}
	registerDir(c, &dir)
	c.Flags().StringVar(&baseURL, "base-url", "", "the provider's endpoint, where it has moved")
	registerLimits(c, &limits)
	output.register(c)
	return c
}

func (a *app) resume(ctx context.Context, dir, ref string, limits loop.LimitFlags, baseURL string, output outputFlags) error {
	run, err := harness.Find(ctx, dir, ref)
	if err != nil {
		return err
	}
	defer run.Close()
	l, err := raised(run.Limits(), limits)
	if err != nil {
		return err
	}
	k, err := kindOf(run.Start)
	if err != nil {
		return err
	}
	s, err := a.host().Resume(run, k, l, baseURL)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = a.drive(ctx, s, output)
	return err
}
