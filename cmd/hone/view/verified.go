package view

import (
	"fmt"

	"hone/cmd/hone/page"
	"hone/cmd/hone/rounds"
	"hone/internal/render"
	"hone/loop"
)

// mostRounds is how many rounds a grid shows: the last ones.
const mostRounds = 30

// Marks of the grid of contracts.
var (
	passed = page.Tick{Mark: string(rounds.Passed), Title: string(loop.Passed)}
	unseen = page.Tick{Mark: string(rounds.Held), Title: string(loop.PassedUnseen)}
	failed = page.Tick{Mark: string(rounds.Failed), Title: string(loop.Failed)}
	notRun = page.Tick{Mark: "·", Title: "not verified"}
)

// Contracts returns a grid of contracts and rounds, up to the round last, which is decided;
// nil if there are no contracts.
func Contracts(verdicts []loop.Verified, last int) *page.Grid {
	if len(verdicts) == 0 {
		return nil
	}
	for _, v := range verdicts { // a round in progress may have verified some
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
	return g
}

// verdictMark returns the mark of a verdict.
func verdictMark(v loop.Verdict) page.Tick {
	switch v {
	case loop.Passed:
		return passed
	case loop.PassedUnseen:
		return unseen
	case loop.Failed:
		return failed
	}
	return notRun
}
