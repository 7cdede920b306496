package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/page"
	"hone/cmd/hone/report"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/sandbox"
	"hone/story"
)

type showFlags struct {
	dir      string
	round    int
	diff     bool
	full     bool
	verbose  bool
	json     bool
	follow   bool
	markdown bool
	html     string // the file for the page; empty if none is wanted
}

func (a *app) showCommand() *cobra.Command {
	var f showFlags
	c := helped("show", &cobra.Command{
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error { return a.show(c.Context(), f, runArg(args)) },
	})
	registerDir(c, &f.dir)
	c.Flags().BoolVar(&f.follow, "follow", false, "follow the run until it ends, as hone watch does; with -v every event")
	c.Flags().IntVar(&f.round, "round", 0, "show only this round, event by event")
	c.Flags().BoolVar(&f.diff, "diff", false, "show only what changed, including by commands, as a patch for git apply; with --round what changed in that round")
	c.Flags().BoolVar(&f.full, "full", false, "show every event, with complete requests, replies, calls and results")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show every event, with the model's text and the start of results; --round implies it")
	c.Flags().StringVar(&f.html, "html", "", "write a page that needs nothing else to `FILE`, which must not exist; - is standard output")
	c.Flags().BoolVar(&f.markdown, "markdown", false, "print a table of the rounds and the findings that are left as Markdown, for a summary of CI")
	c.Flags().BoolVar(&f.json, "json", false, "print the recorded events as JSON lines")
	c.MarkFlagsMutuallyExclusive("follow", "html", "markdown", "json", "diff")
	c.MarkFlagsMutuallyExclusive("follow", "html", "markdown", "full")
	c.MarkFlagsMutuallyExclusive("follow", "html", "markdown", "round")
	c.MarkFlagsMutuallyExclusive("html", "markdown", "verbose")
	return c
}

func (a *app) show(ctx context.Context, f showFlags, ref string) error {
	r, err := report.Open(f.dir, ref)
	if err != nil {
		return err
	}
	defer r.Close()
	if !r.Working {
		a.say("note", r.Incomplete())
	}
	if err := f.fit(r); err != nil {
		return err
	}
	switch {
	case f.follow:
		return a.follow(ctx, f.dir, ref, !f.verbose)
	case f.json:
		for _, e := range r.Past.Events() {
			if f.round != 0 && e.Round() != f.round {
				continue
			}
			if _, err := fmt.Fprintf(a.out, "%s\n", eventLine(e)); err != nil {
				return err
			}
		}
		return nil
	case f.diff:
		return a.showDiff(ctx, r, f.round)
	case f.markdown:
		_, err := fmt.Fprint(a.out, report.Of(r).Markdown())
		return err
	case f.html != "":
		return a.showHTML(ctx, report.Of(r), f.html)
	case f.round == 0 && !f.full && !f.verbose:
		o := report.Of(r)
		columns, rows := a.outExtent()
		_, err := fmt.Fprintln(a.out, strings.Join(o.Lines(o.Rounds(), a.outColour, columns, rows), "\n"))
		return err
	}
	t := a.transcript(r, f, false)
	defer t.Screen.Close()
	if err := t.Show(r); err != nil || f.round != 0 {
		return err
	}
	if r.Past.Facts().Ended {
		return nil
	}
	if r.Working {
		t.Screen.Say("the run is not finished; to follow it: hone watch %s", journal.ShortRun(r.ID)+failure.Elsewhere(r.Home.Workspace()))
		return nil
	}
	t.Screen.Say("died: the process of the run ended without a result\nnext: %s", r.Resume())
	return nil
}

func (f showFlags) fit(r *report.Run) error {
	show := "hone show " + r.ID + failure.Elsewhere(r.Home.Workspace())
	switch {
	case f.round < 0 || f.round > r.Past.Facts().LastRound:
		return failure.Usage(fmt.Sprintf("the run has no round %d", f.round), show)
	case r.Start.Redacted && (f.diff || f.full || f.verbose || f.html != "" || f.round != 0):
		return failure.Usage("the texts of run "+r.ID+" were replaced by hone export --redacted", show+", or add --json")
	}
	return nil
}

// Live, on a terminal, finished rounds fold, and live lines say what is going on.
func (a *app) transcript(r *report.Run, f showFlags, live bool) *report.Transcript {
	limits := r.Past.Facts().Limits
	t := &report.Transcript{Out: a.out, Colour: a.outColour, Round: f.round, Text: (f.verbose || f.round != 0) && !f.full, Full: f.full, Brief: live && a.outSize != nil}
	t.Columns, _ = a.outExtent()
	options := screen.Options{Options: story.Options{Whole: true, Verbose: t.Text, Get: r.Home.Get, Own: r.Own(), Rounds: limits.Rounds}, Colour: a.outColour, At: failure.Elsewhere(r.Home.Workspace())}
	if live {
		options.Size, options.Whole, options.Followed, options.Tokens = a.outSize, a.outSize == nil, true, limits.Tokens
	}
	t.Screen = screen.New(a.out, options)
	t.Screen.Say("run %s: %s with %s in %s, started %s", r.ID, r.Start.Loop, strings.Join(kinds.ModelNames(kinds.Recorded(r.Start), r.Start), " and "), r.Start.Dir, r.Past.First().Time.Local().Format("2006-01-02 15:04:05"))
	return t
}

// It is a patch that "git apply" accepts; round 0 means the whole run. On a terminal it is coloured, and control characters are
// escaped. Files that the loop itself writes for the user are left out.
func (a *app) showDiff(ctx context.Context, r *report.Run, round int) error {
	deltas, err := r.Past.AllChanges(r.Home.Get)
	if round != 0 {
		deltas, err = r.Past.Changes(round, r.Home.Get)
	}
	if err != nil {
		return err
	}
	diff, omitted, err := report.Patch(ctx, r.Home, deltas, r.Own(), true)
	if err != nil {
		return err
	}
	a.sayNotes(omitted)
	if len(diff)+len(omitted) == 0 {
		why := fmt.Sprintf("round %d changed no files", round)
		if round == 0 {
			why = cmp.Or(report.UndoneText(r.Past, r.ID+failure.Elsewhere(r.Home.Workspace())), "the run changed no files")
		}
		a.say("note", why)
		return nil
	}
	if a.outTerminal {
		return showInPager(os.Stdout, sandbox.OwnEnviron(a.environ, r.Home.Workspace()), a.redactKnown(a.outColour.Diff(render.Escape(string(diff)))))
	}
	_, err = a.out.Write(diff)
	return err
}

func (a *app) showHTML(ctx context.Context, o report.Account, name string) error {
	maker := page.Maker{Own: o.Own(), Clean: a.redactKnown}
	p, err := maker.Page(ctx, o)
	if err != nil {
		return err
	}
	p.Version = version()
	p.Attempts = page.AttemptsOf(o, func(a history.Attempt, home *journal.Home) page.Run {
		row := page.RunOf(report.Summarize(home, a.Run, report.Working(home, a.Run), nil))
		row.Link = "" // nothing serves it
		return row
	})
	if o.Working {
		p.Why = "the run was not finished when this page was written"
	}
	var b bytes.Buffer
	if err := page.New(a.redactKnown).File(&b, p); err != nil {
		return err
	}
	if name == "-" {
		_, err := a.out.Write(b.Bytes())
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return failure.Usage(name+" exists", "remove it, or name another file, or - for standard output")
	case err != nil:
		return cannotCreate(name, err)
	}
	if _, err = f.Write(b.Bytes()); err != nil {
		err = failure.Of(err, "free some disk space")
	}
	if err = errors.Join(err, f.Close()); err == nil {
		fmt.Fprintf(a.err, "wrote %s\n", render.Line(name))
	}
	return err
}

func cannotCreate(name string, err error) error {
	return failure.Usage(fmt.Sprintf("%s cannot be written: %v", name, cause(err)), "name a file in a directory that exists and that you can write")
}

// The path may be that of a temporary file.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

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
