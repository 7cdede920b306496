package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"hone/loop"
)

func (a *app) resumeCommand() *cobra.Command {
	var dir, baseURL string
	var limits loop.LimitFlags
	var output outputFlags
	c := &cobra.Command{
		Use:   "resume [RUN]",
		Short: "continue a run that stopped or died",
		Long: `resume continues a run. It reuses recorded replies, so that you do not pay for them twice. Settings stay
the same, but you can raise limits. If questions about changes are open, resume asks them first, on a
terminal. If the run is done, it only prints the result again. RUN is an id from hone runs, a unique prefix
of one, or "last", the default. Before it continues a run from hone import, it restores the files as the
run left them.`,
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(validLimits(c, limits), output.valid(c)); err != nil {
				return err
			}
			return a.resume(c.Context(), dir, runArg(args), limits, baseURL, output)
		},
	}
	registerDir(c, &dir)
	c.Flags().StringVar(&baseURL, "base-url", "", "the provider's endpoint, if its address has changed")
	const own = " (default: the run's own limit)"
	registerLimits(c, &limits, limitNotes{own, own, own, own, own, own})
	output.register(c)
	output.registerAck(c)
	return c
}

func (a *app) resume(ctx context.Context, dir, ref string, limits loop.LimitFlags, baseURL string, output outputFlags) error {
	run, err := findRun(ctx, dir, ref, "resume")
	if err != nil {
		return err
	}
	defer run.Close()
	a.sayNotes(run.Notes)
	l, err := raisedLimits(run.Limits(), limits, ref+elsewhere(run.Dir))
	if err != nil {
		return err
	}
	k, err := kindOf(run.Start)
	if err != nil {
		return err
	}
	if err := a.placeRun(ctx, run); err != nil {
		return err
	}
	s, err := a.host().Resume(ctx, run, k, l, baseURL)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = a.drive(ctx, s, output)
	return err
}
