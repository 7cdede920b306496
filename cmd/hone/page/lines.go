package page

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
)

// Point is how many findings a round left.
type Point struct{ Round, Left int }

const (
	linesWidth, linesHeight = 360.0, 150.0
	linesLeft, linesBottom  = 22.0, 18.0 // room for the labels of the axes
	lineColours             = 6
	labelHeight             = 10.0 // so that labels of lines that end alike do not overlap
)

// Colour returns the class that gives an attempt its colour.
func (a Attempt) Colour() string { return fmt.Sprintf("l%d", (a.Number-1)%lineColours+1) }

// It is empty if no attempt has two rounds.
func lines(attempts []Attempt) template.HTML {
	last, most, drawn := 1, 1, false
	for _, a := range attempts {
		drawn = drawn || len(a.Points) > 1
		for _, p := range a.Points {
			last, most = max(last, p.Round), max(most, p.Left)
		}
	}
	if !drawn {
		return ""
	}
	var b strings.Builder
	x := func(round int) float64 {
		return linesLeft + float64(round)*(linesWidth-linesLeft-linesBottom)/float64(last)
	}
	y := func(left int) float64 {
		return linesHeight - linesBottom - float64(left)*(linesHeight-linesBottom-12)/float64(most)
	}
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="findings of each round: %s">`, linesWidth, linesHeight, lineWords(attempts))
	for _, left := range []int{0, most} {
		fmt.Fprintf(&b, `<path class="axis" d="M%g %.1fH%g"/><text x="%g" y="%.1f" text-anchor="end">%d</text>`, linesLeft, y(left), linesWidth-linesBottom, linesLeft-5, y(left)+3, left)
	}
	for _, round := range []int{0, last} {
		fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%d</text>`, x(round), linesHeight-4, round)
	}
	fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">round</text>`, linesWidth/2, linesHeight-4)
	ends := map[int][]mark{}
	for i, a := range attempts {
		// Equal lines stay visible side by side.
		beside := func(left int) float64 { return y(left) + 2.2*(float64(i)-float64(len(attempts)-1)/2) }
		a.line(&b, x, beside)
		if n := len(a.Points); n > 0 {
			end := a.Points[n-1]
			ends[end.Round] = append(ends[end.Round], mark{a, beside(end.Left)})
		}
	}
	for _, round := range slices.Sorted(maps.Keys(ends)) {
		marks := ends[round]
		slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(b.y, a.y) })
		above := linesHeight
		for _, m := range marks { // most end at the bottom, so that there is room above
			above = min(m.y, above-labelHeight)
			fmt.Fprintf(&b, `<text class="%s" x="%.1f" y="%.1f">%d</text>`, m.Colour(), x(round)+5, above+3, m.Number)
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

type mark struct {
	Attempt
	y float64
}

func (a Attempt) line(b *strings.Builder, x, y func(int) float64) {
	if len(a.Points) == 0 {
		return
	}
	var path strings.Builder
	fmt.Fprintf(b, `<g class="%s">`, a.Colour())
	for i, p := range a.Points {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], x(p.Round), y(p.Left))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.5"><title>attempt %d, round %d: %d</title></circle>`, x(p.Round), y(p.Left), a.Number, p.Round, p.Left)
	}
	fmt.Fprintf(b, `<path d="%s"/></g>`, path.String())
}

func lineWords(attempts []Attempt) string {
	var words []string
	for _, a := range attempts {
		var counts []string
		for _, p := range a.Points {
			counts = append(counts, fmt.Sprint(p.Left))
		}
		words = append(words, fmt.Sprintf("attempt %d: %s", a.Number, strings.Join(counts, ", ")))
	}
	return strings.Join(words, "; ")
}
