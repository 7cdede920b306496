package view

import (
	"fmt"

	"hone/cmd/hone/page"
	"hone/cmd/hone/rounds"
	"hone/history"
	"hone/internal/render"
	"hone/loop/phase"
)

// mostRounds is how many rounds a grid shows: the last ones.
const mostRounds = 40

// Marks of the grid of contracts.
var (
	passed = page.Tick{Mark: string(rounds.Passed), Title: string(phase.Passed)}
	unseen = page.Tick{Mark: string(rounds.Held), Title: string(phase.PassedUnseen)}
	failed = page.Tick{Mark: string(rounds.Failed), Title: string(phase.Failed)}
	notRun = page.Tick{Mark: "·", Title: "not verified"}
)

// Phase returns which contracts held in which round of a phase; nil for a run of another
// loop, or before it has read the specifications.
func Phase(past *history.Past, get history.Get) (*page.Grid, error) {
	events, last := past.Events(), past.State().Round
	if start, ok := events[0].Payload.(history.Start); !ok || start.Loop != phase.Kind().Name || start.Redacted {
		return nil, nil
	}
	verdicts, err := phase.Verdicts(past, get)
	if err != nil || len(verdicts) == 0 {
		return nil, err
	}
	for _, v := range verdicts { // a round that is not decided may have verified them
		for round := range v.Rounds {
			last = max(last, round)
		}
	}
	g := &page.Grid{ID: "contracts", Title: "contracts", Corner: "contract / round", Legend: []page.Tick{passed, unseen, failed, notRun}}
	first := max(1, last-mostRounds+1)
	if first > 1 {
		g.Note = fmt.Sprintf("%s not shown", render.Count(first-1, "earlier round"))
	}
	for round := first; round <= last; round++ {
		g.Columns = append(g.Columns, page.Column{Name: fmt.Sprint(round), Link: fmt.Sprintf("#r%d", round)})
	}
	for _, v := range verdicts {
		row := page.Row{Name: v.Text, Note: v.Place}
		for round := first; round <= last; round++ {
			row.Cells = append(row.Cells, page.Cell{Marks: []page.Tick{verdictMark(v.Rounds[round])}})
		}
		g.Rows = append(g.Rows, row)
	}
	return g, nil
}

// verdictMark returns the mark of a verdict.
func verdictMark(v phase.Verdict) page.Tick {
	switch v {
	case phase.Passed:
		return passed
	case phase.PassedUnseen:
		return unseen
	case phase.Failed:
		return failed
	}
	return notRun
}
