package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/screen"
	"hone/internal/render"
	"hone/journal"
	"hone/model"
	"hone/workspace"
)

// showFlags say which part of a run is shown.
type showFlags struct {
	dir   string
	round int
	diff  bool
	full  bool
	json  bool
}

func (a *app) showCommand() *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "show RUN",
		Short: "what happened in a run, round by round",
		Long: `show tells what happened in a run: what was asked, what came back, what became of every edit and
what the check found. RUN is an id, a unique prefix of one, or "last".`,
		Args: oneRun,
		RunE: func(_ *cobra.Command, args []string) error { return a.show(f, args[0]) },
	}
	registerDir(c, &f.dir)
	c.Flags().IntVar(&f.round, "round", 0, "only this round")
	c.Flags().BoolVar(&f.diff, "diff", false, "with every change as a diff")
	c.Flags().BoolVar(&f.full, "full", false, "with requests and replies whole")
	c.Flags().BoolVar(&f.json, "json", false, "the events as they are on record")
	return c
}

func (a *app) show(f showFlags, ref string) error {
	root, err := findRoot(f.dir)
	if err != nil {
		return err
	}
	home, err := journal.FindHome(root)
	if err != nil {
		return noHome(root, err)
	}
	defer home.Close()
	run, err := home.Find(ref)
	if err != nil {
		return usage(err.Error(), "hone runs")
	}
	events, err := home.Read(run)
	if err != nil {
		return &hone.Stop{Exit: hone.ExitEnvironment, Why: err.Error(), Hint: "hone runs"}
	}
	start, err := started(events)
	if err != nil {
		return err
	}
	if f.round != 0 && !slices.ContainsFunc(events, func(e journal.Event) bool { return roundOf(e) == f.round }) {
		return usage(fmt.Sprintf("the run has no round %d", f.round), "hone show "+run)
	}
	if f.json {
		return a.showJSON(events, f.round)
	}
	s := screen.New(a.out, screen.Options{Verbose: true, Get: home.Get, Rounds: lastLimits(start, events).Rounds})
	defer s.Close()
	s.Say("run %s: %s with %s in %s, begun %s", run, start.Loop, start.Model, start.Dir, events[0].Time.Local().Format("2006-01-02 15:04:05"))
	return a.showEvents(s, home, events, f)
}

func (a *app) showJSON(events []journal.Event, round int) error {
	for _, e := range events {
		if round == 0 || roundOf(e) == round {
			if _, err := fmt.Fprintf(a.out, "%s\n", e.Line()); err != nil {
				return err
			}
		}
	}
	return nil
}

// roundOf is the round that an event belongs to; 0 where it belongs to none.
func roundOf(e journal.Event) int {
	if e.Step != nil {
		return e.Step.Round
	}
	var s hone.State
	if e.Type == "round" && e.Decode(&s) == nil {
		return s.Round
	}
	return 0
}

func (a *app) showEvents(s *screen.Screen, home *journal.Home, events []journal.Event, f showFlags) error {
	for _, e := range events {
		if f.round != 0 && roundOf(e) != f.round {
			continue
		}
		s.Event(e)
		if err := a.showMore(home, e, f); err != nil {
			return err
		}
	}
	return nil
}

// showMore shows what the screen of a running loop does not.
func (a *app) showMore(home *journal.Home, e journal.Event, f showFlags) error {
	switch {
	case e.Type == "change" && f.diff:
		return a.showDiff(home, e)
	case e.Type == "ask" && f.full:
		return a.showRequest(home, e)
	case e.Type == "reply" && f.full:
		return a.showReply(home, e)
	case e.Type == "resume":
		fmt.Fprintf(a.out, "gone on with at %s\n", e.Time.Local().Format("2006-01-02 15:04:05"))
	case e.Type == "end":
		var end hone.End
		if err := e.Decode(&end); err != nil {
			return err
		}
		a.conclude(end, outputFlags{})
		active := (time.Duration(e.Active) * time.Millisecond).Round(100 * time.Millisecond)
		fmt.Fprintf(a.out, "after %s of work; the journal's hash is %s\n", active, e.Hash())
	}
	return nil
}

func (a *app) showDiff(home *journal.Home, e journal.Event) error {
	var c hone.Changed
	if err := e.Decode(&c); err != nil || c.Ruling != workspace.Allow {
		return err
	}
	before, err := image(home, c.Before)
	if err != nil {
		return err
	}
	after, err := image(home, c.After)
	if err != nil {
		return err
	}
	d := render.Diff(render.Line(c.Path), before, after)
	if a.colour {
		d = render.Colour(d)
	}
	_, err = fmt.Fprint(a.out, d)
	return err
}

// image reads a file as it was; nil where there was none.
func image(home *journal.Home, i workspace.Image) ([]byte, error) {
	if !i.Exists() {
		return nil, nil
	}
	return home.Get(i.Digest)
}

func (a *app) showRequest(home *journal.Home, e journal.Event) error {
	var asked hone.Asked
	if err := e.Decode(&asked); err != nil {
		return err
	}
	b, err := home.Get(asked.Request)
	if err != nil {
		return err
	}
	var req model.Request
	if err := json.Unmarshal(b, &req); err != nil {
		return err
	}
	a.showText("system", req.System)
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			a.showText(string(m.Role), p.Text)
		}
	}
	return nil
}

func (a *app) showReply(home *journal.Home, e journal.Event) error {
	var replied hone.Replied
	if err := e.Decode(&replied); err != nil {
		return err
	}
	b, err := home.Get(replied.Reply)
	if err != nil {
		return err
	}
	var held struct {
		Reply model.Reply `json:"reply"`
	}
	if err := json.Unmarshal(b, &held); err != nil {
		return err
	}
	a.showText("reply", held.Reply.Text())
	return nil
}

func (a *app) showText(who, text string) {
	if text != "" {
		fmt.Fprintf(a.out, "---- %s ----\n%s\n", who, render.Escape(text))
	}
}
