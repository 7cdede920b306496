package view

import (
	"maps"
	"slices"
	"strings"

	"hone/check"
	"hone/cmd/hone/attempts"
	"hone/cmd/hone/page"
	"hone/cmd/hone/recorded"
	"hone/cmd/hone/report"
	"hone/cmd/hone/rounds"
	"hone/cmd/hone/screen"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
)

// Attempts returns the attempts of a run; nil if it has none. row reads the run of an attempt
// from the home in its copy, as a list shows it. If the copy was deleted, the events of the run
// itself describe the attempt.
func Attempts(o report.Overview, row func(history.Attempt, *journal.Home) page.Run) []page.Attempt {
	list := attemptsOf(o.Past.Events(), o.Working, func(a history.Attempt) *page.Run {
		home := recorded.Copy(a)
		if home == nil {
			return nil
		}
		defer home.Close()
		r := row(a, home)
		return &r
	})
	if len(list) == 0 {
		return nil
	}
	if applied, _, err := attempts.Applied(o.Home, o.ID, ""); err == nil { // as it is now
		for i, one := range list {
			list[i].Applied = one.Number == applied
		}
	}
	return list
}

// attemptsOf returns the attempts that events describe, with the runs that row returns; nil means
// that it knows none.
func attemptsOf(events []history.Event, working bool, row func(history.Attempt) *page.Run) (all []page.Attempt) {
	states := map[int][]history.Attempt{}
	for _, a := range history.Of[history.Attempt](events) {
		states[a.Number] = append(states[a.Number], a)
	}
	for _, number := range slices.Sorted(maps.Keys(states)) {
		a := states[number][len(states[number])-1]
		one := page.Attempt{Number: a.Number, Applied: a.Applied, Why: firstLine(a.Why)}
		if r := row(a); r != nil {
			one.Run = *r
		} else {
			one.Run = recordedRun(a, states[number], working)
		}
		one.Model = screen.ModelName(a.Model)
		all = append(all, one)
	}
	return all
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// recordedRun returns the run of an attempt from its recorded states, the last of which is a.
func recordedRun(a history.Attempt, states []history.Attempt, working bool) page.Run {
	r := page.Run{ID: journal.ShortRun(a.Run), Mark: string(rounds.Failed), Result: string(a.Result), Tokens: render.Short(a.Tokens)}
	switch {
	case a.Result == history.KindDone:
		r.Mark = string(rounds.Passed)
	case a.Result == "" && working:
		r.Mark, r.Result = string(rounds.Running), "running"
	case a.Result == "":
		r.Result = "died"
	}
	for _, s := range states {
		if s.Findings == nil || s.Rounds <= len(r.Ticks) {
			continue
		}
		mark := rounds.Failed
		if *s.Findings == 0 {
			mark = rounds.Passed
		}
		r.Ticks = append(r.Ticks, page.Tick{Mark: string(mark), Title: render.Count(*s.Findings, "finding")})
		r.Points = append(r.Points, page.Point{Round: s.Rounds, Left: *s.Findings})
	}
	return r
}

// Strip returns a tick for each round of a run, and the findings that the checked rounds left.
func Strip(events []history.Event) (ticks []page.Tick, points []page.Point) {
	for _, r := range rounds.Of(events, nil, nil) {
		if r.Outcome == rounds.Passed || r.Outcome == rounds.Failed {
			points = append(points, page.Point{Round: r.Number, Left: Blocking(r.Findings)})
		}
		if r.Number > 0 {
			ticks = append(ticks, page.Tick{Mark: string(r.Outcome), Title: r.Name() + ": " + r.Verdict})
		}
	}
	return ticks, points
}

// Blocking returns how many findings keep a run going.
func Blocking(findings []check.Finding) int {
	var blocking []check.Finding
	for _, f := range findings {
		if f.Blocks() {
			blocking = append(blocking, f)
		}
	}
	return check.Count(blocking)
}
