package eval

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hone/internal/render"
)

// Score is what tries add up to, of a model in one case or in all.
type Score struct {
	Model string `json:"model"`
	Case  string `json:"case,omitempty"` // empty for all cases
	Tries int    `json:"tries"`
	// Passed is how many of the tries passed.
	Passed int `json:"passed"`
	// Pass1 is the share of the tries that passed, and PassK that of the cases of which one of K
	// tries passed; both are means over the cases. Nil if no case has as many tries.
	Pass1 *float64 `json:"pass_at_1"`
	PassK *float64 `json:"pass_at_k"`
	// Rounds is the mean of the tries.
	Rounds float64 `json:"rounds"`
	Tokens int64   `json:"tokens"`
	// Cost is in USD; nil if the price of some call is not known.
	Cost *float64 `json:"cost"`
	// CostPerPass is Cost by Passed; nil if that is not known.
	CostPerPass *float64 `json:"cost_per_pass"`
	// Gain is the mean of the tries that measured a number, in percent; nil if none did.
	Gain      *float64 `json:"gain,omitempty"`
	Malformed int      `json:"malformed"`
	Refused   int      `json:"refused"`
	Seconds   float64  `json:"seconds"` // of active time
}

// Sum adds up tries of one model, at most k of each case. Tries of a case whose check passes
// without a model do not count.
func Sum(results []Result, k int) Score {
	var s Score
	tries, passed := map[string]int{}, map[string]int{}
	cost, known := 0.0, true
	var gains []float64
	for _, r := range results {
		if r.Kind == Already {
			continue
		}
		tries[r.Case]++
		if r.Passed {
			s.Passed++
			passed[r.Case]++
		}
		s.Tries, s.Rounds, s.Tokens, s.Seconds = s.Tries+1, s.Rounds+float64(r.Rounds), s.Tokens+r.Tokens, s.Seconds+r.Seconds
		s.Malformed, s.Refused = s.Malformed+r.Malformed, s.Refused+r.Refused
		if r.Gain != nil {
			gains = append(gains, *r.Gain)
		}
		if r.Cost != nil {
			cost += *r.Cost
		} else {
			known = known && r.Tokens == 0
		}
	}
	if s.Tries == 0 {
		return s
	}
	s.Rounds /= float64(s.Tries)
	if len(gains) > 0 {
		sum := 0.0
		for _, gain := range gains {
			sum += gain
		}
		sum /= float64(len(gains))
		s.Gain = &sum
	}
	if known {
		s.Cost = &cost
		if each := cost / float64(max(1, s.Passed)); s.Passed > 0 {
			s.CostPerPass = &each
		}
	}
	share, once, whole := 0.0, 0.0, 0.0 // whole are the cases with k tries, once those of them that passed
	for _, name := range slices.Sorted(maps.Keys(tries)) {
		share += float64(passed[name]) / float64(tries[name])
		if tries[name] >= k {
			whole++
			once += float64(min(1, passed[name]))
		}
	}
	share /= float64(len(tries))
	if s.Pass1 = &share; whole > 0 {
		once /= whole
		s.PassK = &once
	}
	return s
}

// Report sums up an evaluation.
type Report struct {
	Type   string  `json:"type"` // "report"
	K      int     `json:"k"`
	Models []Score `json:"models"` // in the order in which the user named them
	Cases  []Score `json:"cases"`  // of each case and model, in the order of the file
	// Missing is how many tries have no result.
	Missing int `json:"missing"`
	// Already are the cases that do not count, because their check passes without a model.
	Already []string `json:"already,omitempty"`
}

// NewReport adds up results by cases and models.
func NewReport(results []Result, cases, models []string, k int) Report {
	rep := Report{Type: "report", K: k, Models: []Score{}, Cases: []Score{}}
	of := func(model, name string) []Result {
		return slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Model != model || name != "" && r.Case != name })
	}
	for _, model := range models {
		s := Sum(of(model, ""), k)
		s.Model = model
		rep.Models = append(rep.Models, s)
	}
	for _, name := range cases {
		if slices.ContainsFunc(results, func(r Result) bool { return r.Case == name && r.Kind == Already }) {
			rep.Already = append(rep.Already, name)
		}
		for _, model := range models {
			s := Sum(of(model, name), k)
			s.Model, s.Case = model, name
			rep.Cases = append(rep.Cases, s)
		}
	}
	return rep
}

// figures are the heads of the columns that both tables have.
func (r Report) figures() []string {
	heads := []string{"PASSED", "ROUNDS", "TOKENS", "COST", "COST/PASS", "MALFORMED", "REFUSED", "TIME"}
	if slices.ContainsFunc(r.Models, func(s Score) bool { return s.Gain != nil }) {
		heads = slices.Insert(heads, 1, "GAIN")
	}
	return heads
}

// Table returns the lines of a report: a table of the models, and one of the cases.
func (r Report) Table() []string {
	heads := r.figures()
	right := slices.Repeat([]bool{true}, len(heads)+2)
	cases := [][]string{append([]string{"CASE", "MODEL"}, heads...)}
	for _, s := range r.Cases {
		cases = append(cases, append([]string{render.Line(s.Case), render.Line(s.Model)}, s.cells(heads)...))
	}
	lines := append(render.Aligned(r.ModelRows(), append([]bool{false}, right...)...), "")
	lines = append(lines, render.Aligned(cases, append([]bool{false, false}, right...)...)...)
	for _, name := range r.Already {
		lines = append(lines, "does not count: "+render.Line(name)+", whose check passes already, without a model")
	}
	return lines
}

// ModelRows returns the table of the models: its head, and a row for each.
func (r Report) ModelRows() [][]string {
	head, figures := []string{"MODEL", "PASS@1", fmt.Sprintf("PASS@%d", r.K)}[:1+min(r.K, 2)], r.figures()
	rows := [][]string{append(head, figures...)}
	for _, s := range r.Models {
		row := []string{render.Line(s.Model), number("%.2f", s.Pass1), number("%.2f", s.PassK)}[:len(head)]
		rows = append(rows, append(row, s.cells(figures)...))
	}
	return rows
}

func (s Score) cells(heads []string) (cells []string) {
	dollars := func(usd *float64) string {
		if usd == nil {
			return "-"
		}
		return render.Cost(usd, false)
	}
	text := map[string]string{"PASSED": fmt.Sprintf("%d/%d", s.Passed, s.Tries), "GAIN": number("%.1f %%", s.Gain), "ROUNDS": fmt.Sprintf("%.1f", s.Rounds),
		"TOKENS": render.Tokens(s.Tokens), "COST": dollars(s.Cost), "COST/PASS": dollars(s.CostPerPass), "MALFORMED": fmt.Sprint(s.Malformed),
		"REFUSED": fmt.Sprint(s.Refused), "TIME": render.Duration(time.Duration(s.Seconds * float64(time.Second)))}
	for _, head := range heads {
		if cell := text[head]; s.Tries > 0 || head == "PASSED" {
			cells = append(cells, cell)
		} else {
			cells = append(cells, "-")
		}
	}
	return cells
}

func number(format string, n *float64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprintf(format, *n)
}
