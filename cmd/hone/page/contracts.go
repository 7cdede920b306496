package page

import (
	"fmt"

	"hone/cmd/hone/report"
	"hone/internal/render"
	"hone/loop"
	"hone/story"
)

// Grid is a table of marks.
type Grid struct {
	ID, Title string // of the element, and its heading
	Corner    string // what the rows are
	Columns   []Column
	Rows      []Row
	Note      string // such as what is left out
	Legend    []Tick
}

// Column is the head of a column.
type Column struct{ Name, Link string }

// Row is a row of a grid.
type Row struct {
	Name, Note string
	Cells      []Cell // one for each column
}

// Cell has marks, whose titles describe them. A cell without marks means that nothing is
// known.
type Cell struct {
	Marks []Tick
	Text  string
}

// mostRounds is how many rounds a grid shows: the last ones.
const mostRounds = 30

// Marks of the grid of contracts.
var (
	passed = Tick{Mark: string(story.Passed), Title: string(loop.Passed)}
	unseen = Tick{Mark: string(story.Held), Title: string(loop.PassedUnseen)}
	failed = Tick{Mark: string(story.Failed), Title: string(loop.Failed)}
	notRun = Tick{Mark: "·", Title: "not verified"}
)

// It is nil if the loop has only its check.
func contractsOf(a report.Account) (*Grid, error) {
	if a.Start.Redacted {
		return nil, nil
	}
	verdicts, err := loop.VerifiedOf(a.Past, a.Home.Get)
	if err != nil || len(verdicts) == 0 {
		return nil, err
	}
	last := a.Past.Facts().State.Round
	for _, v := range verdicts { // a round in progress may have verified some
		for round := range v.Rounds {
			last = max(last, round)
		}
	}
	g := &Grid{ID: "contracts", Title: "contracts", Corner: "contract / round", Legend: []Tick{passed, unseen, failed, notRun}}
	first := max(1, last-mostRounds+1)
	if first > 1 {
		g.Note = fmt.Sprintf("%s not shown", render.Count(first-1, "earlier round"))
	}
	for round := first; round <= last; round++ {
		g.Columns = append(g.Columns, Column{Name: fmt.Sprint(round), Link: fmt.Sprintf("#r%d", round)})
	}
	for _, v := range verdicts {
		row := Row{Name: v.Text, Note: v.Place}
		for round := first; round <= last; round++ {
			mark, known := map[loop.Verdict]Tick{loop.Passed: passed, loop.PassedUnseen: unseen, loop.Failed: failed}[v.Rounds[round]]
			if !known {
				mark = notRun
			}
			row.Cells = append(row.Cells, Cell{Marks: []Tick{mark}})
		}
		g.Rows = append(g.Rows, row)
	}
	return g, nil
}
