package page

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"hone/internal/render"
)

// chart is a row of bars, one for each round.
type chart struct {
	Name, Last string // what it shows, and the value of the last round
	SVG        template.HTML
}

const (
	chartWidth, chartHeight = 240.0, 48.0
	maxBars                 = 120 // of a chart; the rounds of a longer run share them
)

// charts returns the charts of findings, tokens and time a round; none if there are
// fewer than two rounds.
func (r *Renderer) charts(p Page) (charts []chart) {
	var rounds []Round
	for _, one := range p.All {
		if one.Number > 0 || one.Checked() {
			rounds = append(rounds, one)
		}
	}
	if len(rounds) < 2 {
		return nil
	}
	last := rounds[len(rounds)-1]
	add := func(name, text string, value func(Round) float64, words func(Round) string) {
		charts = append(charts, chart{name, text, r.bars(name, rounds, value, words)})
	}
	left := ""
	if last.Checked() {
		left = fmt.Sprint(last.Left())
	}
	add("findings", left, func(r Round) float64 { return float64(r.Left()) }, func(r Round) string {
		if !r.Checked() {
			return "not checked"
		}
		return fmt.Sprint(r.Left())
	})
	add("tokens", last.Numbers().TokensText(), func(r Round) float64 { return float64(r.Tokens + r.Unconfirmed) }, func(r Round) string { return r.Numbers().TokensText() })
	add("time", render.Duration(last.Took), func(r Round) float64 { return r.Took.Seconds() }, func(r Round) string { return render.Duration(r.Took) })
	return charts
}

// bars draws a bar for each round, or for the highest of some rounds if there are many.
func (r *Renderer) bars(name string, rounds []Round, value func(Round) float64, words func(Round) string) template.HTML {
	high := func(a, b Round) int { return cmp.Compare(value(a), value(b)) }
	most := value(slices.MaxFunc(rounds, high))
	each := (len(rounds) + maxBars - 1) / maxBars
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" preserveAspectRatio="none" role="img" aria-label="%s of %d rounds">`, chartWidth, chartHeight, name, len(rounds))
	step := chartWidth / float64(max((len(rounds)+each-1)/each, 12))
	i := 0
	for some := range slices.Chunk(rounds, each) {
		one := slices.MaxFunc(some, high)
		title := one.Name()
		if each > 1 {
			title = fmt.Sprintf("%s to %s, at most", some[0].Name(), some[len(some)-1].Name())
		}
		// A bar without a height still shows that there was a round.
		height := 1.0
		if most > 0 {
			height = max(height, value(one)/most*(chartHeight-2))
		}
		fmt.Fprintf(&b, `<rect class="%s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"><title>%s: %s</title></rect>`,
			class(string(some[len(some)-1].Outcome)), float64(i)*step, chartHeight-height, step*0.8, height, template.HTMLEscapeString(r.text(title)), template.HTMLEscapeString(r.text(words(one))))
		i++
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}
