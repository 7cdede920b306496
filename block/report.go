package block

import (
	"cmp"
	"fmt"
	"slices"
)

// maxProblems is how many problems of a reply are told one by one.
const maxProblems = 50

// report collects problems that come in the order of lines and keeps the
// first ones.
type report struct {
	kept  []Problem
	count int // kept or not
	left  int // the line of the first one not kept
}

// tell adds a problem with m. Its text is made only if it is kept, so that a
// reply that is wrong in every line costs no more than reading it.
func (p *parser) tell(r *report, m *marker, text func() string) {
	r.count++
	if len(r.kept) < maxProblems {
		r.kept = append(r.kept, Problem{Line: m.line, Marker: p.shown(m), Text: text()})
	} else if r.left == 0 {
		r.left = m.line
	}
}

// problems returns what was told, in the order of lines.
func (p *parser) problems() []Problem {
	all := slices.Concat(p.whole, p.overlap.kept, p.repeat.kept)
	slices.SortStableFunc(all, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	count := len(p.whole) + p.overlap.count + p.repeat.count
	if count <= maxProblems {
		return all
	}
	return append(all[:maxProblems], p.rest(all[maxProblems:], count-maxProblems))
}

// rest returns the one problem that stands for those that are not told, of
// which some may have been kept.
func (p *parser) rest(kept []Problem, count int) Problem {
	lines := []int{p.overlap.left, p.repeat.left}
	if len(kept) > 0 {
		lines = append(lines, kept[0].Line)
	}
	lines = slices.DeleteFunc(lines, func(line int) bool { return line == 0 })
	return Problem{Line: slices.Min(lines), Text: fmt.Sprintf("and %d more problems from here on", count)}
}
