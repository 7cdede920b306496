package view

import (
	"fmt"
	"slices"
	"time"

	"hone/cmd/hone/eval"
	"hone/cmd/hone/page"
	"hone/cmd/hone/rounds"
	"hone/internal/render"
)

// Evaluation returns what an evaluation has recorded so far. Cases and models are in the order
// of their first results.
func Evaluation(name string, results []eval.Result) page.Evaluation {
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
	e := page.Evaluation{Name: name, About: "no results yet"}
	if n := len(results); n > 0 {
		e.About = fmt.Sprintf("%s with %s · last result %s", render.Count(len(cases), "case"), render.Count(len(models), "model"), results[n-1].At.Local().Format(time.DateTime))
		rows := eval.NewReport(results, cases, models, k).ModelRows()
		e.Head, e.Rows = rows[0], rows[1:]
		e.Cases = triesGrid(results, cases, models)
	}
	return e
}

// triesGrid returns the tries of each case with each model.
func triesGrid(results []eval.Result, cases, models []string) *page.Grid {
	g := &page.Grid{ID: "cases", Title: "cases", Corner: "case / model", Legend: []page.Tick{
		{Mark: string(rounds.Passed), Title: "a try that passed"}, {Mark: string(rounds.Failed), Title: "a try that failed"}}}
	for _, model := range models {
		g.Columns = append(g.Columns, page.Column{Name: model})
	}
	for _, name := range cases {
		row := page.Row{Name: name}
		for _, model := range models {
			row.Cells = append(row.Cells, triesCell(results, name, model))
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// triesCell returns a mark for each try of a case with a model, in the order of the tries.
func triesCell(results []eval.Result, name, model string) page.Cell {
	of := slices.DeleteFunc(slices.Clone(results), func(r eval.Result) bool { return r.Case != name || r.Model != model })
	slices.SortStableFunc(of, func(x, y eval.Result) int { return x.Time - y.Time })
	var c page.Cell
	passed := 0
	for _, r := range of {
		mark := rounds.Failed
		if r.Passed {
			mark = rounds.Passed
			passed++
		}
		c.Marks = append(c.Marks, page.Tick{Mark: string(mark), Title: fmt.Sprintf("try %d: %s, %s, %s tokens", r.Time, r.Why, render.Count(r.Rounds, "round"), render.Short(r.Tokens))})
	}
	if len(of) > 1 {
		c.Text = fmt.Sprintf("%d/%d", passed, len(of))
	}
	return c
}
