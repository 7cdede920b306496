package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"hone/group"
	"hone/internal/artifact"
	"hone/internal/render"
	"hone/loop"
)

// Result is the result of one try. A record has one in each line.
type Result struct {
	Key       string    `json:"key"` // of what was tried; see [Try]
	Case      string    `json:"case"`
	Model     string    `json:"model"`
	Time      int       `json:"time"` // 1 is the first
	Passed    bool      `json:"passed"`
	Kind      string    `json:"result"` // how the run ended, such as "done" or "rounds"; "judge" if only the judge failed
	Why       string    `json:"why"`
	Rounds    int       `json:"rounds"`
	Tokens    int64     `json:"tokens"`         // unconfirmed ones included
	Cost      *float64  `json:"cost,omitempty"` // USD; nil if it is not known
	Gain      *float64  `json:"gain,omitempty"` // of a run with a number as its judge, in percent; nil if nothing was measured
	Malformed int       `json:"malformed"`      // replies that hone could not read, or had a call that it could not read
	Refused   int       `json:"refused"`        // replies with an edit that hone did not make
	Seconds   float64   `json:"seconds"`        // of active time
	Run       string    `json:"run"`
	Hone      string    `json:"hone"` // the version that ran it
	At        time.Time `json:"at"`
}

func (r Result) active() time.Duration { return time.Duration(r.Seconds * float64(time.Second)) }

func (r Result) used() group.Amount {
	a := group.Amount{Tokens: r.Tokens, Time: r.active()}
	if r.Cost != nil {
		a.Cost = group.Dollars(*r.Cost)
	}
	return a
}

// Line returns a result in a few words.
func (r Result) Line() string {
	verdict := "passed"
	if !r.Passed {
		why, _, _ := strings.Cut(r.Why, "\n")
		verdict = "failed: " + render.Line(why)
	}
	if r.Gain != nil {
		verdict += fmt.Sprintf(", gain %.1f %%", *r.Gain)
	}
	figures := append([]string{render.Count(r.Rounds, "round"), render.Duration(r.active())}, render.UsageParts(r.Tokens, 0, r.Cost, render.Tokens)...)
	return fmt.Sprintf("%s (%s)", verdict, strings.Join(figures, ", "))
}

// Record is the file with the results of an evaluation, a JSON object in each line. Only
// complete tries are in it, so that the same command continues where it was stopped.
type Record struct {
	Results map[string]Result // by the key of the try

	path string
	size int64 // of the complete lines
}

// OpenRecord reads a record; a file that does not exist is an empty one. A last line
// without an end, which a full disk or a lost machine leaves, does not count.
func OpenRecord(path string) (*Record, error) {
	r := &Record{path: path, Results: map[string]Result{}}
	text, err := artifact.Input(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, loop.UsageOf(err, "name another file with --output")
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	r.size = int64(len(text))
	for i, line := range bytes.Split(text, []byte("\n")) {
		var one Result
		if len(line) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &one); err != nil || one.Key == "" {
			return nil, loop.Usage(fmt.Sprintf("%s:%d: it is not a result of hone eval", path, i+1),
				"remove the line, whose try then runs again; or name another file with --output")
		}
		r.Results[one.Key] = one
	}
	return r, nil
}

// Of returns the results of the tries that have one.
func (r *Record) Of(tries []*Try) []Result {
	var all []Result
	for _, t := range tries {
		if one, ok := r.Results[t.Key]; ok {
			one.Case, one.Model, one.Time = t.Case, t.Model, t.Time // an earlier name may have been another
			all = append(all, one)
		}
	}
	return all
}

// CanAdd makes the file ready for Add, and returns why that is not possible.
func (r *Record) CanAdd() error {
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return loop.UsageOf(err, "name another file with --output")
	}
	return errors.Join(f.Truncate(r.size), f.Close())
}

// Add appends a result, and returns when it is on the disk.
func (r *Record) Add(one Result) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("record a result: %w", err)
	}
	r.Results[one.Key] = one
	return nil
}

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

// Sum adds up tries of one model, at most k of each case.
func Sum(results []Result, k int) (s Score) {
	tries, passed := map[string]int{}, map[string]int{}
	cost, gain, gains, known := 0.0, 0.0, 0, true
	for _, r := range results {
		tries[r.Case]++
		if r.Passed {
			s.Passed++
			passed[r.Case]++
		}
		s.Tries, s.Rounds, s.Tokens, s.Seconds = s.Tries+1, s.Rounds+float64(r.Rounds), s.Tokens+r.Tokens, s.Seconds+r.Seconds
		s.Malformed, s.Refused = s.Malformed+r.Malformed, s.Refused+r.Refused
		if r.Gain != nil {
			gain, gains = gain+*r.Gain, gains+1
		}
		if r.Cost != nil {
			cost += *r.Cost
		}
		known = known && (r.Cost != nil || r.Tokens == 0)
	}
	share, once, whole := 0.0, 0, 0 // whole are the cases with k tries, once those of them that passed
	for _, name := range slices.Sorted(maps.Keys(tries)) {
		share += float64(passed[name]) / float64(tries[name])
		if tries[name] >= k {
			whole++
			once += min(1, passed[name])
		}
	}
	by := func(sum float64, n int) *float64 {
		if n == 0 {
			return nil
		}
		return new(sum / float64(n))
	}
	s.Rounds /= float64(max(1, s.Tries))
	s.Pass1, s.PassK, s.Gain = by(share, len(tries)), by(float64(once), whole), by(gain, gains)
	if known && s.Tries > 0 {
		s.Cost, s.CostPerPass = &cost, by(cost, s.Passed)
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
		for _, model := range models {
			s := Sum(of(model, name), k)
			s.Model, s.Case = model, name
			rep.Cases = append(rep.Cases, s)
		}
	}
	return rep
}

// Table returns the lines of a report: a table of the models, and one of the cases.
func (r Report) Table() []string {
	heads := r.figures()
	cases := [][]string{append([]string{"CASE", "MODEL"}, heads...)}
	for _, s := range r.Cases {
		cases = append(cases, append([]string{render.Line(s.Case), render.Line(s.Model)}, s.cells(heads)...))
	}
	right := slices.Repeat([]bool{true}, len(heads)+2)
	lines := append(render.Aligned(r.ModelRows(), append([]bool{false}, right...)...), "")
	return append(lines, render.Aligned(cases, append([]bool{false, false}, right...)...)...)
}

// ModelRows returns the table of the models: its head, and a row for each.
func (r Report) ModelRows() [][]string {
	heads := slices.Concat([]string{"PASS@1", fmt.Sprintf("PASS@%d", r.K)}[:min(r.K, 2)], r.figures())
	rows := [][]string{append([]string{"MODEL"}, heads...)}
	for _, s := range r.Models {
		rows = append(rows, append([]string{render.Line(s.Model)}, s.cells(heads)...))
	}
	return rows
}

// figures are the heads of the columns that both tables have.
func (r Report) figures() []string {
	heads := []string{"PASSED", "ROUNDS", "TOKENS", "COST", "COST/PASS", "MALFORMED", "REFUSED", "TIME"}
	if slices.ContainsFunc(r.Models, func(s Score) bool { return s.Gain != nil }) {
		heads = slices.Insert(heads, 1, "GAIN")
	}
	return heads
}

func (s Score) cells(heads []string) (cells []string) {
	number := func(n *float64, text func(n *float64) string) string {
		if n == nil {
			return "-"
		}
		return text(n)
	}
	share := func(n *float64) string { return fmt.Sprintf("%.2f", *n) }
	dollars := func(usd *float64) string { return render.Cost(usd, false) }
	text := map[string]string{"PASS@1": number(s.Pass1, share), "PASSED": fmt.Sprintf("%d/%d", s.Passed, s.Tries), "ROUNDS": fmt.Sprintf("%.1f", s.Rounds),
		"GAIN":   number(s.Gain, func(n *float64) string { return fmt.Sprintf("%.1f %%", *n) }),
		"TOKENS": render.Tokens(s.Tokens), "COST": number(s.Cost, dollars), "COST/PASS": number(s.CostPerPass, dollars), "MALFORMED": fmt.Sprint(s.Malformed),
		"REFUSED": fmt.Sprint(s.Refused), "TIME": render.Duration(time.Duration(s.Seconds * float64(time.Second)))}
	for _, head := range heads {
		cell, ok := text[head]
		switch {
		case !ok: // PASS@K
			cell = number(s.PassK, share)
		case s.Tries == 0 && head != "PASSED":
			cell = "-"
		}
		cells = append(cells, cell)
	}
	return cells
}
