package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/report"
	"hone/cmd/hone/screen"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/journal/objects"
	"hone/story"
	"hone/workspace"
)

type replayFlags struct {
	dir     string
	verbose bool
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	c := helped("replay", &cobra.Command{
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			return a.replay(c.Context(), f, runArg(args))
		},
	})
	registerDir(c, &f.dir)
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show the run while it is replayed")
	return c
}

func (a *app) replay(ctx context.Context, f replayFlags, ref string) (err error) {
	home, run, err := report.Find(f.dir, ref)
	if err != nil {
		return err
	}
	defer home.Close()
	j, err := home.OpenReplay(run)
	if err != nil {
		return failure.Of(err, cmp.Or(runs.OtherVersion(err), "do not trust this journal from that line on: hone did not write it"))
	}
	start, err := runs.Started(run, j.Remaining())
	if err == nil {
		err = runs.CheckWhole(run, start)
	}
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "hone-replay-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	tree, err := workspace.Open(scratch, workspace.Options{Scratch: true})
	if err != nil {
		return err
	}
	defer tree.Close()
	k, err := kinds.Of(start)
	if err != nil {
		return err
	}
	h, err := a.host().Replay(ctx, &runs.Workspace{Dir: home.Workspace(), Home: home, Tree: tree}, j, start, k)
	if err != nil {
		return replayMismatch(err, j)
	}
	defer h.Close()
	built, err := h.Build()
	if err != nil {
		return replayMismatch(err, j)
	}
	r := built.Run
	s := screen.New(a.err, screen.Options{Options: story.Options{Whole: true, Get: home.Get, Own: r.Own, Rounds: r.Limits.Rounds, Turns: built.Turns}, Colour: a.errColour, At: failure.Elsewhere(home.Workspace())})
	if f.verbose {
		r.Journal.Observe(history.Observer(s.Show))
	}
	done, err := r.Replay(ctx, built.Round)
	s.Close()
	if err != nil {
		return replayMismatch(err, j)
	}
	for _, p := range done.Unexplained {
		fmt.Fprintf(a.out, "changed outside the run: %s\n", render.Line(p))
	}
	for _, p := range done.Lost {
		fmt.Fprintf(a.out, "not compared (contents were not stored): %s\n", render.Line(p))
	}
	if done.Open {
		fmt.Fprintln(a.out, "the journal ends within a round: the run was stopped there, or died")
	}
	fmt.Fprintf(a.out, "replay matches: %s, %s, %s and %s; hash of the journal: %s\n",
		render.Count(done.Rounds, "decision"), render.Count(done.Requests, "request"), render.Count(done.Edits, "edit"), render.Count(done.Trees, "snapshot"), j.Head())
	fmt.Fprintf(a.out, "next: hone show %s\n", render.Line(run+failure.Elsewhere(home.Workspace())))
	return nil
}

func replayMismatch(err error, j *journal.Journal) error {
	var missing *objects.MissingError
	run := j.Run() + failure.Elsewhere(j.Home().Workspace())
	if errors.As(err, &missing) {
		return failure.Of(fmt.Errorf("cannot read what the run recorded: %w", err), "restore .hone from a backup; hone show "+run+" shows what is left")
	}
	if _, ok := failure.Explain(err, ""); ok || errors.Is(err, context.Canceled) {
		return err
	}
	at := "before its first event"
	if events := j.Events(); len(events) > 0 {
		last := events[len(events)-1]
		at = fmt.Sprintf("after event %d (%s)", last.Seq, last.Type)
	}
	return &failure.Error{Kind: failure.Differs, Why: fmt.Sprintf("the replay does not match the journal, %s: %v", at, err),
		Hint: "another version of hone or of its loop recorded the run, or the journal was changed; hone show " + run + " --json shows it"}
}
