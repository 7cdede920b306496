package page

import (
	"fmt"
	"html/template"
	"strings"
)

// chart is a row of bars, one for each round.
type chart struct {
	Name, Last string // what it shows, and the value of the last round
	SVG        template.HTML
}

const (
	chartWidth, chartHeight = 240.0, 48.0
)

// charts returns the charts of findings, tokens and time a round; none if there are
// fewer than two rounds.
func (r *Renderer) charts(p Page) (charts []chart) {
	var rounds []Round
	for _, one := range p.Rounds {
		if one.Number > 0 || one.Checked {
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
	if last.Checked {
		left = fmt.Sprint(last.Count)
	}
	add("findings", left, func(r Round) float64 { return float64(r.Count) }, func(r Round) string {
		if !r.Checked {
			return "not checked"
		}
		return fmt.Sprint(r.Count)
	})
	add("tokens", last.Tokens, func(r Round) float64 { return float64(r.Used) }, func(r Round) string { return r.Tokens })
	add("time", last.Took, func(r Round) float64 { return r.Seconds }, func(r Round) string { return r.Took })
	return charts
}

// bars draws a bar for each round.
func (r *Renderer) bars(name string, rounds []Round, value func(Round) float64, words func(Round) string) template.HTML {
	most := 0.0
	for _, one := range rounds {
		most = max(most, value(one))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" preserveAspectRatio="none" role="img" aria-label="%s of %d rounds">`, chartWidth, chartHeight, name, len(rounds))
	step := chartWidth / float64(max(len(rounds), 12))
	for i, one := range rounds {
		height := 0.0
		if most > 0 {
			height = value(one) / most * (chartHeight - 2)
		}
		// A bar without a height still shows that there was a round.
		height = max(height, 1)
		fmt.Fprintf(&b, `<rect class="%s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"><title>%s: %s</title></rect>`,
			class(one.Mark), float64(i)*step, chartHeight-height, step*0.8, height, template.HTMLEscapeString(r.text(one.Name)), template.HTMLEscapeString(r.text(words(one))))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}
