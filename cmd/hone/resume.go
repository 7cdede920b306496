package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"hone"
	"hone/history"
	"hone/journal"
)

func (a *app) resumeCommand() *cobra.Command {
	var dir, baseURL string
	var limits limitFlags
	var output outputFlags
	c := &cobra.Command{
		Use:   "resume RUN",
		Short: "go on from where a run stopped or died",
		Long: `resume goes on with a run: nothing that is on record is done or bought again. RUN is an id, a
unique prefix of one, or "last". Settings are the run's own; limits can be raised. Questions that
nobody could be asked are asked first. A finished run only prints its end again.`,
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			if err := limits.valid(c); err != nil {
				return err
			}
			return a.resume(c.Context(), dir, args[0], limits, baseURL, output)
		},
	}
	registerDir(c, &dir)
	c.Flags().StringVar(&baseURL, "base-url", "", "the provider's endpoint, where it has moved")
	limits.register(c, 0)
	output.register(c)
	return c
}

func (a *app) resume(ctx context.Context, dir, ref string, limits limitFlags, baseURL string, output outputFlags) error {
	return a.takeUp(ctx, dir, ref, func(p *place, j *journal.Journal, start hone.Start) error {
		l, err := raised(lastLimits(start, j.Events()), limits)
		if err != nil {
			return err
		}
		return a.again(ctx, session{place: p, journal: j, limits: l, output: output}, start, baseURL)
	})
}

// takeUp has something done with a run that has begun: its workspace is locked
// and settled, keeps the files that the run keeps, and its journal is open.
func (a *app) takeUp(ctx context.Context, dir, ref string, do func(*place, *journal.Journal, hone.Start) error) error {
	root, err := findRoot(dir)
	if err != nil {
		return err
	}
	p, err := a.enter(ctx, root, false)
	if err != nil {
		return err
	}
	defer p.leave()
	j, start, err := reopen(p.home, ref)
	if err != nil {
		return err
	}
	defer j.Close()
	if err := p.include(trustOf(start).Include); err != nil {
		return err
	}
	return do(p, j, start)
}

// again drives a run that has begun, by the loop and the settings of its start.
func (a *app) again(ctx context.Context, o session, start hone.Start, baseURL string) error {
	switch start.Loop {
	case "reconcile":
		return a.resumeReconcile(ctx, o, start, baseURL)
	case "implement":
		return a.resumeImplement(ctx, o, start, baseURL)
	case "task":
		return a.resumeTask(ctx, o, start, baseURL)
	case "phase":
		return a.resumePhase(ctx, o, start, baseURL)
	}
	return usage(fmt.Sprintf("this hone knows no loop %q", start.Loop), "hone help")
}

// reopen finds a run and opens its journal.
func reopen(home *journal.Home, ref string) (*journal.Journal, hone.Start, error) {
	run, err := home.Find(ref)
	if err != nil {
		return nil, hone.Start{}, usage(err.Error(), "hone runs")
	}
	j, err := home.Open(run)
	if err != nil {
		return nil, hone.Start{}, damaged(err)
	}
	start, err := started(j.Events())
	if err != nil {
		j.Close()
		return nil, start, usage(fmt.Sprintf("run %s: %v", run, err), "hone runs")
	}
	return j, start, nil
}

// lastLimits are those of the start, or of the last resume that raised them.
func lastLimits(start hone.Start, events []journal.Event) hone.Limits {
	l := start.Limits
	for _, e := range events {
		if e.Type == history.TypeResume {
			_ = e.Decode(&l)
		}
	}
	return l
}
