package page

import (
	"fmt"
	"slices"
	"time"

	"hone/cmd/hone/eval"
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

// Evaluation is what hone eval has recorded so far.
type Evaluation struct {
	Name  string
	About string     // such as how many tries there are
	Head  []string   // of the report
	Rows  [][]string // a model in each; the first cell names it
	Cases *Grid      // by model
}

// EvaluationOf returns what an evaluation has recorded so far. Cases and models are in the order
// of their first results.
func EvaluationOf(name string, results []eval.Result) Evaluation {
	var cases, models []string
	tries := map[[2]string]int{}
	k := 1
	for _, r := range results {
		if !slices.Contains(cases, r.Case) {
			cases = append(cases, r.Case)
		}
		if !slices.Contains(models, r.Model) {
			models = append(models, r.Model)
		}
		at := [2]string{r.Case, r.Model}
		tries[at]++
		k = max(k, tries[at])
	}
	e := Evaluation{Name: name, About: "no results yet"}
	if n := len(results); n > 0 {
		e.About = fmt.Sprintf("%s with %s · last result %s", render.Count(len(cases), "case"), render.Count(len(models), "model"), results[n-1].At.Local().Format(time.DateTime))
		rows := eval.NewReport(results, cases, models, k).ModelRows()
		e.Head, e.Rows = rows[0], rows[1:]
		e.Cases = &Grid{ID: "cases", Title: "cases", Corner: "case / model", Legend: []Tick{
			{Mark: string(story.Passed), Title: "a try that passed"}, {Mark: string(story.Failed), Title: "a try that failed"}}}
		for _, model := range models {
			e.Cases.Columns = append(e.Cases.Columns, Column{Name: model})
		}
		for _, name := range cases {
			row := Row{Name: name}
			for _, model := range models {
				of := slices.DeleteFunc(slices.Clone(results), func(r eval.Result) bool { return r.Case != name || r.Model != model })
				slices.SortStableFunc(of, func(x, y eval.Result) int { return x.Time - y.Time })
				var c Cell
				passed := 0
				for _, r := range of {
					mark := story.Failed
					if r.Passed {
						mark = story.Passed
						passed++
					}
					c.Marks = append(c.Marks, Tick{Mark: string(mark), Title: fmt.Sprintf("try %d: %s, %s, %s tokens", r.Time, r.Why, render.Count(r.Rounds, "round"), render.Short(r.Tokens))})
				}
				if len(of) > 1 {
					c.Text = fmt.Sprintf("%d/%d", passed, len(of))
				}
				row.Cells = append(row.Cells, c)
			}
			e.Cases.Rows = append(e.Cases.Rows, row)
		}
	}
	return e
}
