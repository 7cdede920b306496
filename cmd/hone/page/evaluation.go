package page

import (
	"fmt"
	"slices"
	"time"

	"hone/cmd/hone/eval"
	"hone/internal/render"
	"hone/story"
)

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
