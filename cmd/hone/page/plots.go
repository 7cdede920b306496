package page

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"hone/check"
	"hone/history"
	"hone/internal/render"
	"hone/story"
)

// mostRows is how many findings a table of them has.
const mostRows = 60

// Marks of the table of findings.
var (
	born  = Tick{string(story.Failed), "new"}
	stays = Tick{"▪", "as before"}
	back  = Tick{string(story.Held), "came back"}
	gone  = Tick{string(story.Passed), "gone"}
)

// Heat returns a table of the findings that the checked rounds left: when each came, went and
// came back. Those that are left come first. It is nil if fewer than two rounds were checked.
func (p Page) Heat() *Grid {
	var rounds []Round
	for _, r := range p.All {
		if r.Checked() {
			rounds = append(rounds, r)
		}
	}
	g := &Grid{ID: "heat", Title: "findings by round", Corner: "finding / round", Legend: []Tick{born, stays, back, gone}}
	if cut := len(rounds) - mostRounds; cut > 0 {
		rounds, g.Note = rounds[cut:], fmt.Sprintf("%s not shown", render.Count(cut, "earlier round"))
	}
	rows := map[string]*Row{}
	var order, left []string
	for i, r := range rounds {
		g.Columns = append(g.Columns, Column{Name: strings.TrimPrefix(r.Name(), "round "), Link: fmt.Sprintf("#r%d", r.Number)})
		left = nil
		for _, f := range r.Findings {
			if key := check.Key(f); f.Blocks() && !slices.Contains(left, key) {
				if left = append(left, key); rows[key] == nil {
					rows[key] = &Row{Name: render.Cut(render.Line(story.FindingLine(f)), 100), Cells: make([]Cell, len(rounds))}
					order = append(order, key)
				}
			}
		}
		for _, key := range order {
			cells := rows[key].Cells
			was := i > 0 && len(cells[i-1].Marks) > 0 && cells[i-1].Marks[0] != gone
			seen := slices.ContainsFunc(cells[:i], func(c Cell) bool { return len(c.Marks) > 0 })
			switch is := slices.Contains(left, key); {
			case is && was:
				cells[i].Marks = []Tick{stays}
			case is && seen:
				cells[i].Marks = []Tick{back}
			case is:
				cells[i].Marks = []Tick{born}
			case was:
				cells[i].Marks = []Tick{gone}
			}
		}
	}
	if len(rounds) < 2 || len(order) == 0 {
		return nil
	}
	rank := func(key string) int { return slices.Index([]bool{true, false}, slices.Contains(left, key)) }
	slices.SortStableFunc(order, func(a, b string) int { return rank(a) - rank(b) })
	for _, key := range order[:min(len(order), mostRows)] {
		g.Rows = append(g.Rows, *rows[key])
	}
	if more := len(order) - mostRows; more > 0 {
		g.Note = strings.TrimPrefix(g.Note+"; "+render.Count(more, "more finding")+" not shown", "; ")
	}
	return g
}

type plot struct {
	Name, Last string // what it shows, and the last value
	SVG        template.HTML
}

const (
	plotWidth, plotHeight = 480.0, 120.0
	plotLeft, plotBottom  = 44.0, 16.0 // room for the labels of the axes
	maxPoints             = 240
)

// What is reserved is above what is confirmed. There are none before the second call of a model, and of attempts, which have
// their own.
func plots(p Page) (all []plot) {
	if first := p.Past.Facts().Before; first != nil && first.Score != nil {
		all = append(all, scores(append([]history.State{*first}, p.Past.Facts().States...)))
	}
	if len(p.Uses) < 2 || p.Attempts != nil {
		return all
	}
	limits := p.Past.Facts().Limits
	all = append(all, plot{"tokens over time", p.Numbers.TokensText(), area(p, float64(limits.Tokens), func(v float64) string { return render.Short(int64(v)) },
		func(s story.Spending) (float64, float64) {
			confirmed, reserved := s.Tokens()
			return float64(confirmed), float64(confirmed + reserved)
		})})
	if p.Numbers.Cost == nil || *p.Numbers.Cost == 0 {
		return all
	}
	return append(all, plot{"cost over time", p.Numbers.CostText(), area(p, limits.Cost, func(v float64) string { return render.Cost(&v, false) },
		func(s story.Spending) (float64, float64) {
			if s.Use.Cost == nil {
				return 0, 0
			}
			return 0, *s.Use.Cost
		})})
}

// scores draws the number that judges the rounds: the samples as dots, or as crosses if the
// change was taken back, and the best as a line.
func scores(states []history.State) plot {
	last := states[len(states)-1].Score
	low, high := last.First, last.First
	for _, s := range states {
		for _, v := range append(slices.Clone(s.Score.New), s.Score.Best) {
			low, high = min(low, v), max(high, v)
		}
	}
	x := func(i int) float64 {
		return plotLeft + 8 + float64(i)*(plotWidth-plotLeft-16)/float64(max(1, len(states)-1))
	}
	y := func(v float64) float64 {
		return plotHeight - plotBottom - 4 - (v-low)*(plotHeight-plotBottom-12)/max(high-low, 1e-300)
	}
	var b, line strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, plotWidth, plotHeight, template.HTMLEscapeString(last.Change()))
	for i, s := range states {
		for _, v := range s.Score.New {
			if s.Score.Kept || s.Round == 0 {
				fmt.Fprintf(&b, `<circle class="sample" cx="%.1f" cy="%.1f" r="2"/>`, x(i), y(v))
			} else {
				fmt.Fprintf(&b, `<path class="back" d="M%.1f %.1fl4 4m0 -4l-4 4"/>`, x(i)-2, y(v)-2)
			}
		}
		fmt.Fprintf(&line, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[i == 0], x(i), y(s.Score.Best))
	}
	fmt.Fprintf(&b, `<path class="best" d="%s"/>`, line.String())
	for _, v := range []float64{low, high} {
		fmt.Fprintf(&b, `<text x="%g" y="%.1f" text-anchor="end">%s</text>`, plotLeft-4, y(v)+3, history.Figure(v))
	}
	fmt.Fprintf(&b, `<text x="%g" y="%g">start</text><text x="%g" y="%g" text-anchor="end">round %d</text></svg>`, plotLeft, plotHeight-3, plotWidth, plotHeight-3, states[len(states)-1].Round)
	return plot{last.Name + " by round", history.Figure(last.Best), template.HTML(b.String())}
}

// A line is at the limit where that is near; 0 is no limit.
func area(p Page, limit float64, words func(float64) string, values func(story.Spending) (confirmed, all float64)) template.HTML {
	uses := p.Uses
	each := (len(uses) + maxPoints - 1) / maxPoints
	var points []story.Spending
	for some := range slices.Chunk(uses, each) {
		points = append(points, slices.MaxFunc(some, func(a, b story.Spending) int {
			_, x := values(a)
			_, y := values(b)
			return cmp.Compare(x, y)
		}))
	}
	end := uses[len(uses)-1]
	end.Active = max(end.Active, p.Numbers.Active)
	points = append(points, uses[len(uses)-1], end)
	most, last := 0.0, points[len(points)-1].Active
	for _, one := range points {
		_, all := values(one)
		most = max(most, all)
	}
	if limit > 0 && limit < 2*most {
		most = max(most, limit)
	}
	x := func(at time.Duration) float64 {
		return plotLeft + float64(at)*(plotWidth-plotLeft-4)/float64(max(last, 1))
	}
	y := func(v float64) float64 { return plotHeight - plotBottom - v*(plotHeight-plotBottom-14)/max(most, 1e-9) }
	var b, low, high strings.Builder
	before := [2]float64{}
	for _, one := range points {
		confirmed, all := values(one)
		fmt.Fprintf(&low, "L%.1f %.1fL%.1f %.1f", x(one.Active), y(before[0]), x(one.Active), y(confirmed))
		fmt.Fprintf(&high, "L%.1f %.1fL%.1f %.1f", x(one.Active), y(before[1]), x(one.Active), y(all))
		before = [2]float64{confirmed, all}
	}
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="from %s at %s to %s">`, plotWidth, plotHeight, words(0), render.Duration(points[0].Active), words(before[1]))
	start, closed := fmt.Sprintf("M%.1f %.1f", x(0), y(0)), fmt.Sprintf("L%.1f %.1fZ", x(last), y(0))
	fmt.Fprintf(&b, `<path class="held" d="%s%s%s"/><path class="use" d="%s%s%s"/>`, start, high.String(), closed, start, low.String(), closed)
	if limit > 0 && limit <= most {
		fmt.Fprintf(&b, `<path class="limit" d="M%g %.1fH%g"/><text x="%g" y="%.1f" text-anchor="end">limit %s</text>`, plotLeft, y(limit), plotWidth, plotWidth, y(limit)-3, words(limit))
	}
	for _, v := range []float64{0, most} {
		fmt.Fprintf(&b, `<path class="axis" d="M%g %.1fH%g"/><text x="%g" y="%.1f" text-anchor="end">%s</text>`, plotLeft, y(v), plotWidth, plotLeft-4, y(v)+3, words(v))
	}
	fmt.Fprintf(&b, `<text x="%g" y="%g">0s</text><text x="%g" y="%g" text-anchor="end">%s</text></svg>`, plotLeft, plotHeight-3, plotWidth, plotHeight-3, render.Duration(last))
	return template.HTML(b.String())
}

type lane struct {
	Kind string
	Took time.Duration
	SVG  template.HTML
}

func (r *Renderer) lanes(one Round) (all []lane) {
	whole := one.Took
	for _, s := range one.Spans {
		whole = max(whole, s.To)
	}
	for _, kind := range []string{"model", "tool", "command", "check", "wait"} {
		l := lane{Kind: kind}
		var b strings.Builder
		b.WriteString(`<svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">`)
		for _, s := range one.Spans {
			if s.Kind != kind {
				continue
			}
			l.Took += s.To - s.From
			at, to := 1000*float64(s.From)/float64(max(whole, 1)), 1000*float64(s.To)/float64(max(whole, 1))
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="0" width="%.1f" height="10"><title>%s: %s</title></rect>`, kind, min(at, 997), max(3, to-at), template.HTMLEscapeString(r.text(s.Name)), render.Duration(s.To-s.From))
		}
		b.WriteString("</svg>")
		if l.SVG = template.HTML(b.String()); strings.Contains(string(l.SVG), "<rect") {
			all = append(all, l)
		}
	}
	return all
}
