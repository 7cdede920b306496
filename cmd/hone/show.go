package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/screen"
	"hone/harness"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/model"
	"hone/tool"
)

// showFlags say which part of a run is shown.
type showFlags struct {
	dir     string
	round   int
	diff    bool
	full    bool
	verbose bool
	json    bool
}

// more reports whether models' words and the beginning of what tools printed
// are shown as well.
func (f showFlags) more() bool { return (f.verbose || f.round != 0) && !f.full }

func (a *app) showCommand() *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "show RUN",
		Short: "what happened in a run, round by round",
		Long: `show tells what happened in a run: what was asked, what came back, which tools were called and what
became of it, what became of every edit and what the check found. RUN is an id, a unique prefix of one, or "last".`,
		Args: oneRun,
		RunE: func(_ *cobra.Command, args []string) error { return a.show(f, args[0]) },
	}
	registerDir(c, &f.dir)
	c.Flags().IntVar(&f.round, "round", 0, "only this round")
	c.Flags().BoolVar(&f.diff, "diff", false, "with what each round changed as a diff, also what commands changed")
	c.Flags().BoolVar(&f.full, "full", false, "with requests, replies, calls and their results whole")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "with the model's words and the beginning of results, as --round shows them too")
	c.Flags().BoolVar(&f.json, "json", false, "the events as they are on record")
	return c
}

func (a *app) show(f showFlags, ref string) error {
	root, err := harness.FindRoot(f.dir)
	if err != nil {
		return err
	}
	home, err := journal.FindHome(root)
	if err != nil {
		return harness.NoHome(root, err)
	}
	defer home.Close()
	run, err := home.Find(ref)
	if err != nil {
		return usage(err.Error(), "hone runs")
	}
	events, err := home.Read(run)
	if err != nil {
		return failed(err, "hone runs")
	}
	start, err := harness.Started(events)
	if err != nil {
		return err
	}
	if f.round != 0 && !slices.ContainsFunc(events, func(e journal.Event) bool { return roundOf(e) == f.round }) {
		return usage(fmt.Sprintf("the run has no round %d", f.round), "hone show "+run)
	}
	if f.json {
		return a.showJSON(events, f.round)
	}
	s := screen.New(a.out, screen.Options{Whole: true, Verbose: f.more(), Colour: a.colour, Get: home.Get, Own: ownOf(start), Rounds: harness.LastLimits(start, events).Rounds})
	defer s.Close()
	s.Say("run %s: %s with %s in %s, begun %s", run, start.Loop, strings.Join(askedBy(start), " and "), start.Dir, events[0].Time.Local().Format("2006-01-02 15:04:05"))
	return a.showEvents(s, home, events, ownOf(start), f)
}

// askedBy are the models that a run asks.
func askedBy(start hone.Start) []string {
	if _, name := second(start); name != "" {
		return []string{start.Model, name}
	}
	return []string{start.Model}
}

func (a *app) showJSON(events []journal.Event, round int) error {
	for _, e := range events {
		if round == 0 || roundOf(e) == round {
			if _, err := fmt.Fprintf(a.out, "%s\n", feedLine(e)); err != nil {
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
	if e.Type == history.TypeRound && e.Decode(&s) == nil {
		return s.Round
	}
	return 0
}

// roundAround is roundOf for whoever shows a round: what tells of attempts at a
// call, or of a server, belongs to the round of the event before it.
func roundAround(e journal.Event, round int) int {
	switch e.Type {
	case "commit", "retry", "server":
		return round
	}
	return roundOf(e)
}

func (a *app) showEvents(s *screen.Screen, home *journal.Home, events []journal.Event, own func(string) bool, f showFlags) error {
	round, last := 0, ends(events)
	for i, e := range events {
		if e.Step != nil {
			round = e.Step.Round
		}
		if f.round != 0 && roundAround(e, round) != f.round {
			continue
		}
		if e.Type == history.TypeReply && f.more() {
			if err := a.showWords(s, home, e); err != nil {
				return err
			}
		}
		s.Event(e)
		if err := a.showMore(home, e, f); err != nil {
			return err
		}
		if f.diff && last[round] == i {
			if err := a.showChanges(home, events, round, own); err != nil {
				return err
			}
		}
	}
	return nil
}

// ends are the indexes of the events that each round ends with: its decision,
// or the last step of one that came to none.
func ends(events []journal.Event) map[int]int {
	last, decided := map[int]int{}, map[int]bool{}
	for i, e := range events {
		switch n := roundOf(e); {
		case n == 0:
		case e.Type == history.TypeRound:
			last[n], decided[n] = i, true
		case !decided[n]:
			last[n] = i
		}
	}
	return last
}

// showMore shows what the screen of a running loop does not.
func (a *app) showMore(home *journal.Home, e journal.Event, f showFlags) error {
	switch {
	case e.Type == history.TypeStep && e.Phase == journal.Record && f.diff:
		return a.showCommit(e)
	case e.Type == history.TypeAsk && f.full:
		return a.showRequest(home, e)
	case e.Type == history.TypeReply && f.full:
		return a.showReply(home, e)
	case e.Type == history.TypeTool && f.full:
		return a.showCall(home, e)
	case e.Type == history.TypeResume:
		fmt.Fprintf(a.out, "gone on with at %s\n", e.Time.Local().Format("2006-01-02 15:04:05"))
	case e.Type == history.TypeEnd:
		var end hone.End
		if err := e.Decode(&end); err != nil {
			return err
		}
		a.conclude(home, e.Run, end, outputFlags{})
		active := (time.Duration(e.Active) * time.Millisecond).Round(100 * time.Millisecond)
		fmt.Fprintf(a.out, "after %s of work; the journal's hash is %s\n", active, e.Hash())
	}
	return nil
}

// showCommit says where the diff of a commit is: what commands change is in no
// other.
func (a *app) showCommit(e journal.Event) error {
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

// showRequest shows what was sent; of a request that repeats an earlier one,
// what it adds to it.
func (a *app) showRequest(home *journal.Home, e journal.Event) error {
	var asked history.Asked
	if err := e.Decode(&asked); err != nil {
		return err
	}
	var held struct {
		After string `json:"after"`
		model.Request
	}
	if err := fetch(home, asked.Request, &held); err != nil {
		return err
	}
	if held.After != "" {
		fmt.Fprintln(a.out, "---- what was sent before, and ----")
	}
	a.showText("system", held.System)
	for _, t := range held.Tools {
		a.showText("tool "+render.Line(t.Name), t.Description)
	}
	for _, m := range held.Messages {
		a.showParts(string(m.Role), m.Parts)
	}
	return nil
}

// showParts shows parts of a message. Results stand whole where they came
// about, and are not shown again.
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

// fetch reads an object that holds JSON.
func fetch(home *journal.Home, object string, v any) error {
	b, err := home.Get(object)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read object %s: %w", object, err)
	}
	return nil
}

// replied is the reply that a record names.
func replied(home *journal.Home, e journal.Event) (model.Reply, error) {
	var r history.Replied
	if err := e.Decode(&r); err != nil {
		return model.Reply{}, err
	}
	var held struct {
		Reply model.Reply `json:"reply"`
	}
	err := fetch(home, r.Reply, &held)
	return held.Reply, err
}

func (a *app) showReply(home *journal.Home, e journal.Event) error {
	r, err := replied(home, e)
	if err == nil {
		a.showParts("reply", r.Parts)
	}
	return err
}

// showWords shows a reply's text as whoever watched the run with -v saw it.
func (a *app) showWords(s *screen.Screen, home *journal.Home, e journal.Event) error {
	r, err := replied(home, e)
	if text := r.Text(); text != "" {
		s.Text(strings.TrimRight(text, "\n"))
	}
	return err
}

// showCall shows the arguments of a tool call, or its result.
func (a *app) showCall(home *journal.Home, e journal.Event) error {
	var held struct {
		history.ToolCall
		tool.Result
		Long string `json:"result_object"`
	}
	if err := e.Decode(&held); err != nil {
		return err
	}
	if e.Phase == journal.Record {
		if held.Long != "" {
			if err := fetch(home, held.Long, &held.Result); err != nil {
				return err
			}
		}
		a.showText("result", held.Text)
		return nil
	}
	if held.Object != "" {
		b, err := home.Get(held.Object)
		if err != nil {
			return err
		}
		held.Args = string(b)
	}
	a.showText("call of "+render.Line(held.Tool), held.Args)
	return nil
}

func (a *app) showText(who, text string) {
	if text != "" {
		fmt.Fprintf(a.out, "---- %s ----\n%s\n", who, render.Escape(text))
	}
}
