package block

import (
	"cmp"
	"fmt"
	"slices"
)

// maxProblems is how many problems of a reply are reported individually.
const maxProblems = 50

// problemList collects problems in line order and keeps the first ones.
type problemList struct {
	kept         []Problem
	count        int // including those not kept
	firstOmitted int // line of the first one not kept
}

// text is called only if the problem is kept, so that a reply with an error in every line costs no more than reading it.
func (p *parser) add(r *problemList, m *marker, text func() string) {
	r.count++
	if len(r.kept) < maxProblems {
		r.kept = append(r.kept, Problem{Line: m.line, Marker: p.display(m), Text: text()})
	} else if r.firstOmitted == 0 {
		r.firstOmitted = m.line
	}
}

func (p *parser) problems() []Problem {
	all := slices.Concat(p.general, p.overlap.kept, p.repeat.kept)
	slices.SortStableFunc(all, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	count := len(p.general) + p.overlap.count + p.repeat.count
	if count <= maxProblems {
		return all
	}
	return append(all[:maxProblems], p.omittedProblem(all[maxProblems:], count-maxProblems))
}

// kept are the known ones of those omitted.
func (p *parser) omittedProblem(kept []Problem, count int) Problem {
	lines := []int{p.overlap.firstOmitted, p.repeat.firstOmitted}
	if len(kept) > 0 {
		lines = append(lines, kept[0].Line)
	}
	lines = slices.DeleteFunc(lines, func(line int) bool { return line == 0 })
	return Problem{Line: slices.Min(lines), Text: fmt.Sprintf("and %d more problems from this line on", count)}
}
