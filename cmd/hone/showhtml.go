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

	"hone/check"
	"hone/cmd/hone/page"
	"hone/cmd/hone/rounds"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
	"hone/tool"
)

// showHTML writes the page of a run to a new file, or to stdout if its name is "-".
func (a *app) showHTML(ctx context.Context, o overview, name string) error {
	p, err := a.pageOf(ctx, o)
	if err != nil {
		return err
	}
	clean := func(text string) string {
		for _, c := range a.secrets {
			text = c(text)
		}
		return text
	}
	var b bytes.Buffer
	if err := p.Write(&b, clean); err != nil {
		return err
	}
	if name == "-" {
		_, err := a.out.Write(b.Bytes())
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return usage(name+" exists", "remove it, or name another file, or - for standard output")
	case err != nil:
		return failed(err, "name another file, or - for standard output")
	}
	if _, err = f.Write(b.Bytes()); err != nil {
		err = failed(err, "free some disk space")
	}
	if err = errors.Join(err, f.Close()); err == nil {
		fmt.Fprintf(a.err, "wrote %s\n", render.Line(name))
	}
	return err
}

// pageOf returns the page of a run.
func (a *app) pageOf(ctx context.Context, o overview) (page.Page, error) {
	mark, result := runResult(o.past, o.working)
	why, more := o.why()
	switch {
	case o.working:
		why = "the run was not finished when this page was written"
	case !o.ended:
		why = "the process of the run ended without a result"
	case result == "done" && more == "":
		why = o.end.Why
	}
	p := page.Page{Title: fmt.Sprintf("%s %s %s: %s", mark, result, o.start.Loop, journal.ShortRun(o.run)), Version: version(), Mark: string(mark), Result: result,
		Loop: o.start.Loop, About: subject(o.loop), Why: strings.TrimSpace(why + "\n" + more), Notes: o.allNotes(), Facts: o.facts()}
	events, err := a.pageEvents(o)
	if err != nil {
		return p, err
	}
	if _, ok := events[0]; ok && (len(o.rounds) == 0 || o.rounds[0].Number > 0) {
		p.Rounds = append(p.Rounds, page.Round{Name: "start", Events: events[0]})
	}
	for _, r := range o.rounds {
		one, err := a.pageRound(ctx, o, r)
		if err != nil {
			return p, err
		}
		one.Events = events[r.Number]
		p.Rounds = append(p.Rounds, one)
	}
	return p, nil
}

// facts returns what is known about a run: its models, what it used, and when.
func (o overview) facts() []page.Fact {
	spent := o.past.Ledger()
	figures := used(spent, spent.Price(), render.Tokens)
	return []page.Fact{
		{Name: "run", Text: o.run},
		{Name: "model", Text: strings.Join(modelNames(o.loop, o.start), " · ")},
		{Name: "directory", Text: o.start.Dir},
		{Name: "started", Text: o.past.Events()[0].Time.Local().Format("2006-01-02 15:04:05 MST")},
		{Name: "time", Text: render.Duration(o.active)},
		{Name: "used", Text: strings.Join(figures, ", ")},
		{Name: "journal", Text: "intact, " + o.hash()},
	}
}

// pageRound returns a round without its events.
func (a *app) pageRound(ctx context.Context, o overview, r rounds.Round) (page.Round, error) {
	one := page.Round{Name: r.Name(), Mark: string(r.Outcome), Verdict: r.Verdict, Files: r.FilesText(80),
		Took: render.Duration(r.Took), Tokens: render.Short(r.Tokens)}
	switch {
	case r.Cost != nil:
		one.Cost = render.Cost(r.Cost, r.Unconfirmed > 0)
	case r.Tokens+r.Unconfirmed > 0:
		one.Cost = "?"
	}
	for _, f := range r.Findings {
		if f.Blocks() {
			one.Findings = append(one.Findings, page.Fact{Name: findingSource(f), Text: f.Text})
		}
	}
	if r.Number == 0 {
		return one, nil
	}
	deltas, err := o.past.Changes(r.Number, o.home.Get)
	if err != nil {
		return one, err
	}
	patch, omitted, err := patchOf(ctx, o.home, deltas, ownOf(o.start), false)
	one.Diff, one.NoDiff = string(patch), omitted
	one.Files = cmp.Or(one.Files, render.Count(len(deltas), "file"))
	return one, err
}

// findingSource says where a finding comes from.
func findingSource(f check.Finding) string {
	if f.File == "" {
		return f.Source
	}
	return f.Source + ", " + f.Place()
}

// pageEvents returns the events of each round, as a screen words them. An event that
// names no round belongs to the one that is open.
func (a *app) pageEvents(o overview) (map[int][]page.Event, error) {
	var shown strings.Builder
	s := screen.New(&shown, screen.Options{Whole: true, Get: o.home.Get, Own: ownOf(o.start), Rounds: o.past.Limits().Rounds})
	defer s.Close()
	all := map[int][]page.Event{}
	round := 0
	for _, e := range o.past.Events() {
		if e.Step != nil {
			round = e.Step.Round
		}
		s.Show(e)
		one, err := o.pageEvent(e, shown.String())
		if err != nil {
			return nil, err
		}
		if shown.Reset(); one.Line != "" {
			all[round] = append(all[round], one)
		}
	}
	s.Close() // names the calls without a result
	for line := range strings.Lines(shown.String()) {
		all[round] = append(all[round], page.Event{Line: strings.TrimSpace(line)})
	}
	return all, nil
}

// pageEvent returns an event that a screen words so, with what a model wrote or was
// shown. Its line is empty if there is nothing to show.
func (o overview) pageEvent(e history.Event, text string) (one page.Event, err error) {
	one.Line, one.Rest, _ = strings.Cut(strings.TrimRight(text, "\n"), "\n")
	one.Line = strings.TrimSpace(one.Line)
	part := func(name, text string) {
		if strings.TrimSpace(text) != "" {
			one.Parts = append(one.Parts, page.Fact{Name: name, Text: strings.TrimRight(text, "\n")})
		}
	}
	switch p := e.Payload.(type) {
	case history.Replied:
		reply, err := history.ReadReply(p, o.home.Get)
		if err != nil {
			return one, err
		}
		part("reply", reply.Text())
	case history.ToolResult:
		if call, ok := o.past.Begin(*e.Step); ok {
			if c, ok := call.Payload.(history.ToolCall); ok {
				args, err := c.Arguments(o.home.Get)
				if err != nil {
					return one, err
				}
				part("call of "+c.Tool, args)
			}
		}
		result, err := history.ReadResult[tool.Result](e.Event, o.home.Get)
		if err != nil {
			return one, err
		}
		part("result", result.Text)
	}
	return one, nil
}
