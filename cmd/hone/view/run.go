package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"hone/cmd/hone/attempts"
	"hone/cmd/hone/kinds"
	"hone/cmd/hone/page"
	"hone/cmd/hone/patch"
	"hone/cmd/hone/report"
	"hone/cmd/hone/rounds"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/tool"
)

// RunPage makes the page of a run, repeatedly while the run works. It words each event
// once, and finds out once what a finished round changed.
type RunPage struct {
	own    func(string) bool
	screen *screen.Screen // words the events; nil: none is worded yet
	words  *strings.Builder
	events map[int][]page.Event // by round
	worded int                  // events
	round  int                  // of the last one
	diffs  map[int]roundDiff
	calls  Calls
}

// roundDiff is what a round changed.
type roundDiff struct {
	made    string // of which round; see roundKey
	diff    string
	omitted []string
	files   int
}

// NewRunPage returns the page of a run that does not write the files own reports. calls
// says how its model calls are shown.
func NewRunPage(own func(string) bool, calls Calls) *RunPage {
	return &RunPage{own: own, diffs: map[int]roundDiff{}, calls: calls}
}

// Page returns the page of the run with the changes of the rounds that choose chooses, and
// with links to the others.
func (p *RunPage) Page(ctx context.Context, o report.Overview, choose func([]page.Round) (page.Window, []page.Link)) (page.Page, error) {
	standing := report.StandingOf(o.Past, o.Working)
	made := page.Page{Meters: meters(o), Title: fmt.Sprintf("%s %s %s: %s", standing.Mark, standing.Text, o.Start.Loop, journal.ShortRun(o.ID)), Mark: string(standing.Mark), Result: standing.Text,
		Loop: o.Start.Loop, About: kinds.Subject(o.Loop), Why: reason(o), Said: o.End.Said, Notes: o.Notes(), Facts: facts(o), Walls: Walls(o.Past.Events())}
	if err := p.word(o); err != nil {
		return made, err
	}
	calls, err := p.calls.ByRound(o.Past.Events(), o.Home.Get)
	if err != nil {
		return made, err
	}
	if made.Contracts, err = contractsOf(o); err != nil {
		return made, err
	}
	if events, ok := p.events[0]; ok && (len(o.Rounds) == 0 || o.Rounds[0].Number > 0) {
		made.Rounds = append(made.Rounds, page.Round{Name: "start", Calls: calls[0], Events: events})
	}
	findings := Findings{}
	for _, r := range o.Rounds {
		one := pageRound(r)
		one.Findings, one.Change = findings.Next(r, one.Checked)
		one.Calls, one.Events = calls[r.Number], p.events[r.Number]
		made.Rounds = append(made.Rounds, one)
	}
	for i := len(made.Rounds) - 1; i >= 0; i-- {
		if r := &made.Rounds[i]; len(r.Findings) > 0 {
			r.Last = true
			break
		}
	}
	made.Shown, made.Windows = choose(made.Rounds)
	return made, p.addDiffs(ctx, o, made)
}

// reason returns the text below a run's result, which says why the run ended; empty if the
// result says it all.
func reason(o report.Overview) string {
	switch {
	case o.Working:
		return ""
	case !o.Ended:
		return "the process of the run ended without a result"
	case o.End.Why == string(o.End.Kind):
		return ""
	}
	return o.End.Why
}

// contractsOf returns the verdicts of the contracts in each round; nil if the loop has only
// its check.
func contractsOf(o report.Overview) (*page.Grid, error) {
	k, err := kinds.Of(o.Start)
	if err != nil || k.Verified == nil || o.Start.Redacted {
		return nil, nil
	}
	verdicts, err := k.Verified(o.Past, o.Home.Get)
	return Contracts(verdicts, o.Past.State().Round), err
}

// meters returns what a run has used of its limits.
func meters(o report.Overview) []page.Meter {
	spent, limits := attempts.Spent(o.Home, o.ID, o.Past), o.Past.Limits()
	share := func(used, limit float64) float64 {
		if limit <= 0 {
			return 0
		}
		return min(1, used/limit)
	}
	done, most := o.Past.Rounds(), limits.MaxRounds()*max(1, len(o.Past.Attempts()))
	rounds := page.Meter{Name: "rounds", Text: fmt.Sprint(done), Limit: fmt.Sprint(most), Share: share(float64(done), float64(most))}
	tokens := page.Meter{Name: "tokens", Text: render.Short(spent.Tokens), Share: share(float64(spent.Tokens), float64(limits.Tokens))}
	if limits.Tokens > 0 {
		tokens.Limit = render.Short(limits.Tokens)
	}
	cost := page.Meter{Name: "cost", Text: "unknown"}
	if price := spent.Price(); price != nil {
		cost.Text, cost.Share = render.Cost(price, spent.Assumed > 0), share(*price, limits.Cost)
	}
	if limits.Cost > 0 {
		cost.Limit = render.Cost(&limits.Cost, false)
	}
	took := page.Meter{Name: "time", Text: render.Duration(o.Active), Share: share(float64(o.Active), float64(limits.Time))}
	if limits.Time > 0 {
		took.Limit = render.Duration(limits.Time)
	}
	return []page.Meter{rounds, tokens, cost, took}
}

// facts returns what is known about a run: its models, and when it began.
func facts(o report.Overview) []page.Fact {
	spent := attempts.Spent(o.Home, o.ID, o.Past)
	figures := report.UsageParts(spent, spent.Price(), render.Tokens)
	facts := []page.Fact{
		{Name: "run", Text: o.ID},
		{Name: "model", Text: strings.Join(kinds.ModelNames(o.Loop, o.Start), " · ")},
		{Name: "directory", Text: o.Start.Dir},
		{Name: "started", Text: o.Past.First().Time.Local().Format("2006-01-02 15:04:05 MST")},
		{Name: "time", Text: render.Duration(o.Active)},
		{Name: "used", Text: strings.Join(figures, ", ")},
		{Name: "journal", Text: "intact, " + o.Hash()},
	}
	return slices.DeleteFunc(facts, func(f page.Fact) bool { return f.Text == "" })
}

// pageRound returns a round without its findings, changes and events.
func pageRound(r rounds.Round) page.Round {
	one := page.Round{Number: r.Number, Name: r.Name(), Mark: string(r.Outcome), Verdict: r.Verdict, Files: r.FilesText(80),
		Took: render.Duration(r.Took), Seconds: r.Took.Seconds(), Tokens: render.Short(r.Tokens), Used: r.Tokens + r.Unconfirmed,
		Checked: r.Outcome == rounds.Passed || r.Outcome == rounds.Failed}
	switch {
	case r.Cost != nil:
		one.Cost = render.Cost(r.Cost, r.Unconfirmed > 0)
	case r.Tokens+r.Unconfirmed > 0:
		one.Cost = "?"
	}
	if one.Checked {
		one.Count = Blocking(r.Findings)
	}
	return one
}

// addDiffs adds the changes of the rounds on a page.
func (p *RunPage) addDiffs(ctx context.Context, o report.Overview, made page.Page) error {
	for i := range made.InWindow() {
		one := &made.InWindow()[i]
		at := slices.IndexFunc(o.Rounds, func(r rounds.Round) bool { return r.Number == one.Number })
		if one.Number == 0 || at < 0 {
			continue
		}
		d, err := p.diff(ctx, o, o.Rounds[at])
		if err != nil {
			return err
		}
		one.Diff, one.NoDiff, one.Files = d.diff, d.omitted, cmp.Or(one.Files, render.Count(d.files, "file"))
	}
	return nil
}

// diff returns what a round changed.
func (p *RunPage) diff(ctx context.Context, o report.Overview, r rounds.Round) (roundDiff, error) {
	made := roundKey(r)
	if d, ok := p.diffs[r.Number]; ok && d.made == made {
		return d, nil
	}
	deltas, err := o.Past.Changes(r.Number, o.Home.Get)
	if err != nil {
		return roundDiff{}, err
	}
	diff, omitted, err := patch.Of(ctx, o.Home, deltas, p.own, false)
	d := roundDiff{made: made, diff: string(diff), omitted: omitted, files: len(deltas)}
	if err == nil {
		p.diffs[r.Number] = d
	}
	return d, err
}

// roundKey returns a text that changes whenever something is added to a round.
func roundKey(r rounds.Round) string {
	return fmt.Sprint(r.Outcome, r.Took, r.Tokens, r.Unconfirmed, r.Changes())
}

// word words the events that were recorded since the last call, as a screen does, and
// sorts them by round. An event that names no round belongs to the one that is open.
func (p *RunPage) word(o report.Overview) error {
	events := o.Past.Events()
	if p.screen == nil {
		p.words, p.events, p.worded, p.round = &strings.Builder{}, map[int][]page.Event{}, 0, 0
		p.screen = screen.New(p.words, screen.Options{Whole: true, Get: o.Home.Get, Own: p.own, Rounds: o.Past.Limits().Rounds})
	}
	for _, e := range events[p.worded:] {
		if e.Step != nil {
			p.round = e.Step.Round
		}
		p.screen.Show(e)
		one, err := pageEvent(o, e, p.words.String())
		if err != nil {
			return err
		}
		if p.words.Reset(); one.Line != "" {
			p.events[p.round] = append(p.events[p.round], one)
		}
		p.worded++
	}
	if o.Working {
		return nil
	}
	p.screen.Close() // names the calls without a result
	p.screen = nil   // a resumed run is worded from its start
	for line := range strings.Lines(p.words.String()) {
		p.events[p.round] = append(p.events[p.round], page.Event{Line: strings.TrimSpace(line)})
	}
	return nil
}

// pageEvent returns an event that a screen words so, with what a model wrote or was
// shown. Its line is empty if there is nothing to show.
func pageEvent(o report.Overview, e history.Event, text string) (one page.Event, err error) {
	one.Line, one.Rest, _ = strings.Cut(strings.TrimRight(text, "\n"), "\n")
	one.Line = strings.TrimSpace(one.Line)
	part := func(name, text string) {
		if strings.TrimSpace(text) != "" {
			one.Parts = append(one.Parts, page.Fact{Name: name, Text: strings.TrimRight(text, "\n")})
		}
	}
	switch p := e.Payload.(type) {
	case history.Replied:
		reply, err := history.ReadReply(p, o.Home.Get)
		if err != nil {
			return one, err
		}
		part("reply", reply.Text())
	case history.ToolResult:
		if call, ok := o.Past.Begin(*e.Step); ok {
			if c, ok := call.Payload.(history.ToolCall); ok {
				args, err := c.Arguments(o.Home.Get)
				if err != nil {
					return one, err
				}
				part("call of "+c.Tool, args)
			}
		}
		result, err := history.ReadResult[tool.Result](e.Event, o.Home.Get)
		if err != nil {
			return one, err
		}
		part("result", result.Text)
	}
	return one, nil
}
