package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/feed"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/recorded"
	"hone/cmd/hone/report"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/journal"
)

// showFlags select the part of a run that is shown.
type showFlags struct {
	dir     string
	round   int
	diff    bool
	full    bool
	verbose bool
	json    bool
	html    string // the file for the page; empty if none is wanted
}

func (a *app) showCommand() *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "show [RUN]",
		Short: "show what happened in a run, round by round",
		Long: `show reports what happened in a run on one screen: its result, a line for each round with the files that it
changed and the verdict of the check, what was declined or is pending, and what the run used. RUN is an id from
hone runs, a unique prefix of one, or "last", the default.

With -v, --round or --full it reports every event: the requests and replies, the tool calls and their results, the
outcome of every edit, and the complete findings of the check.`,
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error { return a.show(c.Context(), f, runArg(args)) },
	}
	registerDir(c, &f.dir)
	c.Flags().IntVar(&f.round, "round", 0, "show only this round, event by event")
	c.Flags().BoolVar(&f.diff, "diff", false, "show only what changed, including by commands, as a patch for git apply; with --round what changed in that round")
	c.Flags().BoolVar(&f.full, "full", false, "show every event, with complete requests, replies, calls and results")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show every event, with the model's text and the start of results; --round implies it")
	c.Flags().StringVar(&f.html, "html", "", "write a page that needs nothing else to `FILE`, which must not exist; - is standard output")
	c.Flags().BoolVar(&f.json, "json", false, "print the recorded events as JSON lines")
	return c
}

func (a *app) show(ctx context.Context, f showFlags, ref string) error {
	r, err := recorded.Open(f.dir, ref)
	if err != nil {
		return err
	}
	defer r.Close()
	if !r.Working {
		a.sayIncomplete(r)
	}
	if err := f.fit(r); err != nil {
		return err
	}
	switch {
	case f.json:
		return a.showJSON(r.Past, f.round)
	case f.diff:
		return a.showDiff(ctx, r, f.round)
	case f.html != "":
		return a.showHTML(ctx, report.OverviewOf(r), f.html)
	case f.round == 0 && !f.full && !f.verbose:
		columns, rows := a.outExtent()
		_, err := fmt.Fprintln(a.out, strings.Join(report.OverviewOf(r).Lines(a.outColour, columns, rows), "\n"))
		return err
	}
	t := a.transcript(r, f, false)
	defer t.Screen.Close()
	if err := t.Show(r); err != nil || f.round != 0 {
		return err
	}
	if _, ended := r.Past.End(); ended {
		return nil
	}
	named := journal.ShortRun(r.ID) + r.At()
	if r.Working {
		t.Screen.Say("the run is not finished; to follow it: hone watch %s", named)
		return nil
	}
	t.Screen.Say("died: the process of the run ended without a result\nnext: hone resume %s", named)
	return nil
}

// fit returns an error if the flags cannot be combined, or if the run has nothing to show
// for them.
func (f showFlags) fit(r *recorded.Run) error {
	show := "hone show " + r.ID + r.At()
	switch {
	case f.round != 0 && !slices.ContainsFunc(r.Past.Events(), func(e history.Event) bool { return e.Round() == f.round }):
		return failure.Usage(fmt.Sprintf("the run has no round %d", f.round), show)
	case f.json && f.diff:
		return failure.Usage("--diff and --json cannot be combined", "leave out one of them")
	case f.html != "" && (f.json || f.diff || f.round != 0 || f.full || f.verbose):
		return failure.Usage("--html cannot be combined with a flag that selects what is shown", "hone show --html "+f.html)
	case r.Start.Redacted && (f.diff || f.full || f.verbose || f.html != "" || f.round != 0):
		return failure.Usage("the texts of run "+r.ID+" were replaced by hone export --redacted", show+", or add --json")
	}
	return nil
}

// transcript returns what shows a run event by event, with a heading for the run. Live, on a
// terminal, finished rounds fold, and live lines say what is going on.
func (a *app) transcript(r *recorded.Run, f showFlags, live bool) *report.Transcript {
	limits := r.Past.Limits()
	t := &report.Transcript{Out: a.out, Colour: a.outColour, Round: f.round, Text: (f.verbose || f.round != 0) && !f.full, Full: f.full, Brief: live && a.outSize != nil}
	t.Columns, _ = a.outExtent()
	options := screen.Options{Whole: true, Verbose: t.Text, Colour: a.outColour, Get: r.Home.Get, Own: r.Own(), Rounds: limits.Rounds}
	if live {
		options.Typed = a.typed
		options.Size, options.Whole, options.Followed, options.Tokens = a.outSize, a.outSize == nil, true, limits.Tokens
	}
	t.Screen = screen.New(a.out, options)
	t.Screen.Say("run %s: %s with %s in %s, started %s", r.ID, r.Start.Loop, strings.Join(kinds.ModelNames(kinds.Recorded(r.Start), r.Start), " and "), r.Start.Dir, r.Past.Events()[0].Time.Local().Format("2006-01-02 15:04:05"))
	return t
}

func (a *app) showJSON(past *history.Past, round int) error {
	for _, e := range past.Events() {
		if round == 0 || e.Round() == round {
			if _, err := fmt.Fprintf(a.out, "%s\n", feed.Line(e.Event)); err != nil {
				return err
			}
		}
	}
	return nil
}
