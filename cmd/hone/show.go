package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/feed"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/recorded"
	"hone/cmd/hone/report"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/model"
	"hone/tool"
)

// showFlags select the part of a run that is shown.
type showFlags struct {
	dir     string
	round   int
	diff    bool
	full    bool
	verbose bool
	json    bool
	live    bool   // on a terminal finished rounds fold, and live lines say what is going on
	html    string // the file for the page; empty if none is wanted
}

// showsText reports whether the model's text and the start of tool results are
// shown.
func (f showFlags) showsText() bool { return (f.verbose || f.round != 0) && !f.full }

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
	s := a.recordScreen(r, f)
	defer s.Close()
	if err := a.showEvents(s, r, f, 0); err != nil || f.round != 0 {
		return err
	}
	if _, ended := r.Past.End(); ended {
		return nil
	}
	named := journal.ShortRun(r.ID) + r.At()
	if r.Working {
		s.Say("the run is not finished; to follow it: hone watch %s", named)
		return nil
	}
	s.Say("died: the process of the run ended without a result\nnext: hone resume %s", named)
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

// recordScreen returns a screen for a recorded run, with a heading on it.
func (a *app) recordScreen(r *recorded.Run, f showFlags) *screen.Screen {
	options := screen.Options{Whole: true, Verbose: f.showsText(), Colour: a.outColour, Get: r.Home.Get, Own: r.Own(), Rounds: r.Past.Limits().Rounds}
	if f.live {
		options.Typed = a.typed
		options.Size, options.Whole, options.Followed, options.Tokens = a.outSize, a.outSize == nil, true, r.Past.Limits().Tokens
	}
	s := screen.New(a.out, options)
	s.Say("run %s: %s with %s in %s, started %s", r.ID, r.Start.Loop, strings.Join(kinds.ModelNames(kinds.Recorded(r.Start), r.Start), " and "), r.Start.Dir, r.Past.Events()[0].Time.Local().Format("2006-01-02 15:04:05"))
	return s
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

// roundOf returns the round that an event is shown in. An event about an attempt
// at a call, or about a server, names no round. It belongs to the open round.
func roundOf(e history.Event, open int) int {
	switch e.Payload.(type) {
	case history.Commit, history.Retried, history.Served:
		return open
	}
	return e.Round()
}

// showEvents shows the events of a run from the one with the index from on.
func (a *app) showEvents(s *screen.Screen, r *recorded.Run, f showFlags, from int) (err error) {
	round := 0
	for i, e := range r.Past.Events() {
		if e.Step != nil {
			round = e.Step.Round
		}
		if i < from || f.round != 0 && roundOf(e, round) != f.round {
			continue
		}
		if p, ok := e.Payload.(history.Replied); ok && f.showsText() {
			if err := a.showReplyText(s, r.Home, p); err != nil {
				return err
			}
		}
		s.Show(e)
		s.Around(func() { err = a.showDetails(r, e, f) })
		if err != nil {
			return err
		}
	}
	return nil
}

// showDetails shows what the screen of a running loop omits.
func (a *app) showDetails(r *recorded.Run, e history.Event, f showFlags) error {
	switch p := e.Payload.(type) {
	case history.Resumed:
		fmt.Fprintf(a.out, "resumed at %s\n", e.Time.Local().Format("2006-01-02 15:04:05"))
	case history.End:
		active := (time.Duration(e.Active) * time.Millisecond).Round(100 * time.Millisecond)
		columns, _ := a.outExtent()
		report.RecordedEnding(r, p, active).Print(a.out, a.outColour, columns)
		if f.live && a.outSize != nil {
			return nil
		}
		fmt.Fprintf(a.out, "hash of the journal: %s\n", e.Hash())
	case history.StepResult:
		if !f.live || a.outSize == nil {
			return a.showCommit(e)
		}
	default:
		if f.full {
			return a.showFull(r.Home, e)
		}
	}
	return nil
}

// showFull shows a complete request, reply, tool call or result.
func (a *app) showFull(home *journal.Home, e history.Event) error {
	switch p := e.Payload.(type) {
	case history.Asked:
		return a.showRequest(home, p)
	case history.Replied:
		reply, err := history.ReadReply(p, home.Get)
		if err == nil {
			a.showParts("reply", reply.Parts)
		}
		return err
	case history.ToolCall:
		args, err := p.Arguments(home.Get)
		if err == nil {
			a.showText("call of "+render.Line(p.Tool), args)
		}
		return err
	case history.ToolResult:
		result, err := history.ReadResult[tool.Result](e.Event, home.Get)
		if err == nil {
			a.showText("result", result.Text)
		}
		return err
	}
	return nil
}

// showCommit prints the command that shows the diff of a commit. No other diff
// contains the changes that commands made in that repository.
func (a *app) showCommit(e history.Event) error {
	var made struct {
		Repo string `json:"repo"`
		ID   string `json:"id"`
	}
	if e.Step.Name != "commit" || e.Decode(&made) != nil || made.ID == "" {
		return nil
	}
	_, err := fmt.Fprintf(a.out, "    git -C %s show %.12s\n", render.Line(made.Repo), render.Line(made.ID))
	return err
}

// showRequest shows a request. If the request continues a session, it shows only
// the new messages.
func (a *app) showRequest(home *journal.Home, asked history.Asked) error {
	request, err := history.ReadRequest(asked.Request, home.Get)
	if err != nil {
		return err
	}
	switch {
	case request.Repeated > 0:
		if request.Request, err = history.ReadWholeRequest(asked.Request, home.Get); err != nil {
			return err
		}
	case request.After != "":
		fmt.Fprintln(a.out, "---- the earlier request, followed by: ----")
	}
	a.showText("system", request.System)
	for _, t := range request.Tools {
		a.showText("tool "+render.Line(t.Name), t.Description)
	}
	for _, m := range request.Messages {
		a.showParts(string(m.Role), m.Parts)
	}
	return nil
}

// showParts shows the parts of a message. It only names results and calls,
// because their own events show them in full.
func (a *app) showParts(who string, parts []model.Part) {
	for _, p := range parts {
		a.showText(who, p.Text)
		if p.Result != nil {
			a.showText(who, fmt.Sprintf("(the result of %s, %s of it)", p.Result.Name, render.Bytes(int64(len(p.Result.Text)))))
		}
		if p.Call != nil {
			a.showText(who, fmt.Sprintf("(calls %s: %s)", p.Call.Name, render.Bytes(int64(len(p.Call.Args)))))
		}
	}
}

// showReplyText shows the text of a reply as -v shows it during the run.
func (a *app) showReplyText(s *screen.Screen, home *journal.Home, replied history.Replied) error {
	r, err := history.ReadReply(replied, home.Get)
	if text := r.Text(); text != "" {
		s.Text(strings.TrimRight(text, "\n"))
	}
	return err
}

func (a *app) showText(who, text string) {
	if text != "" {
		fmt.Fprintf(a.out, "---- %s ----\n%s\n", who, render.Escape(text))
	}
}
