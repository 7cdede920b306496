package eval

import (
	"fmt"
	"time"

	"hone/internal/render"
)

// figures are the heads of the columns that both tables have.
func figures() []string {
	return []string{"PASSED", "ROUNDS", "TOKENS", "COST", "COST/PASS", "MALFORMED", "REFUSED", "TIME"}
}

// Table returns the lines of a report: a table of the models, and one of the cases.
func (r Report) Table() []string {
	models := r.ModelRows()
	right := make([]bool, len(models[0]))
	for i := range right {
		right[i] = i > 0
	}
	cases := [][]string{append([]string{"CASE", "MODEL"}, figures()...)}
	for _, s := range r.Cases {
		cases = append(cases, append([]string{render.Line(s.Case), render.Line(s.Model)}, s.cells()...))
	}
	lines := append(render.Aligned(models, right...), "")
	lines = append(lines, render.Aligned(cases, false, false, true, true, true, true, true, true, true, true)...)
	for _, name := range r.Already {
		lines = append(lines, "does not count: "+render.Line(name)+", whose check passes already, without a model")
	}
	return lines
}

// ModelRows returns the table of the models: its head, and a row for each.
func (r Report) ModelRows() [][]string {
	head := []string{"MODEL", "PASS@1"}
	if r.K > 1 {
		head = append(head, fmt.Sprintf("PASS@%d", r.K))
	}
	rows := [][]string{append(head, figures()...)}
	for _, s := range r.Models {
		row := []string{render.Line(s.Model), percent(s.Pass1)}
		if r.K > 1 {
			row = append(row, percent(s.PassK))
		}
		rows = append(rows, append(row, s.cells()...))
	}
	return rows
}

// cells returns the columns that both tables have.
func (s Score) cells() []string {
	if s.Tries == 0 {
		return []string{"0/0", "-", "-", "-", "-", "-", "-", "-"}
	}
	return []string{fmt.Sprintf("%d/%d", s.Passed, s.Tries), fmt.Sprintf("%.1f", s.Rounds), render.Tokens(s.Tokens), dollars(s.Cost), dollars(s.CostPerPass),
		fmt.Sprint(s.Malformed), fmt.Sprint(s.Refused), render.Duration(time.Duration(s.Active))}
}

// percent formats a probability; nil means that it is not known.
func percent(p *float64) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *p)
}

// dollars formats a cost; nil means that it is not known.
func dollars(usd *float64) string {
	if usd == nil {
		return "-"
	}
	return render.Cost(usd, false)
}
