package block

import (
	"cmp"
	"fmt"
	"slices"
)

// Blocks that overlap are broken.
func (p *parser) checkMarkers() {
	p.last = [kinds]*marker{}
	for _, m := range p.marks {
		switch m.role {
		case opening:
			p.attempted[m.kind] = true
			p.checkOpening(m)
		case closing:
			p.attempted[m.kind] = true
			p.checkClosing(m)
		case slip:
			p.checkSlip(m)
		}
	}
}

func (p *parser) checkOpening(m *marker) {
	outer := p.breakEnclosing(m.kind)
	if m.under != nil && m.under.mate != nil {
		outer = m.under
		outer.broken = true
	}
	if m.mate != nil {
		p.last[m.kind] = m
	}
	if outer != nil {
		m.broken, m.reported = true, true
		p.addInside(m, outer)
		return
	}
	p.hasBlock[m.kind] = true
	// The block that is still open when m opens is reported there, and m itself unless another one covers it.
	if before := m.under; before != nil && !before.reported {
		before.reported = true
		p.add(m, func() string {
			return fmt.Sprintf("opens a block before the block of line %d (%s) is closed%s; write %s alone on a line before this one",
				before.line, p.display(before), slipAfter(before), m.kind.closing())
		})
	}
	if m.mate == nil && !m.covered {
		p.add(m, func() string {
			return fmt.Sprintf("is not closed%s; write %s alone on a line after its text", slipAfter(m), m.kind.closing())
		})
	}
}

// The slip may have been meant to close the block.
func slipAfter(m *marker) string {
	if m.slip == 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d does not close it)", m.slip)
}

func (p *parser) checkClosing(m *marker) {
	if m.mate != nil && m.mate.role == opening {
		// Openings below an unmatched one are unmatched too.
		p.last[m.kind] = m.mate.under
		if under := m.mate.under; under != nil && under.mate == nil {
			p.last[m.kind] = nil
		}
		return
	}
	if outer := p.breakEnclosing(m.kind); outer != nil {
		p.addInside(m, outer)
		return
	}
	if m.mate != nil && m.mate.reported {
		return
	}
	p.add(m, func() string {
		return "closes a block that was not opened; " + m.kind.opening() + " must be alone on a line before the text"
	})
}

func (p *parser) checkSlip(m *marker) {
	if p.enclosing(m.kind) != nil {
		return
	}
	p.attempted[m.kind] = true
	// The second slip of a pair, such as two fences, is reported with the
	// first.
	if m.mate != nil && m.mate.line < m.line && m.mate.reported {
		return
	}
	m.reported = true
	p.add(m, func() string {
		if m.kind == file {
			return "names no file; write ^^^ and the file's path to open a block, or ^^^end to close it"
		}
		return fmt.Sprintf("is not a marker; write %s to open a block, or %s to close it", m.kind.opening(), m.kind.closing())
	})
}

// enclosing is the innermost open block of another kind; nil if there is none.
func (p *parser) enclosing(k kind) (inner *marker) {
	for other, m := range p.last {
		if m != nil && kind(other) != k && (inner == nil || m.line > inner.line) {
			inner = m
		}
	}
	return inner
}

// breakEnclosing is enclosing, and marks all open matched blocks of other kinds
// as broken.
func (p *parser) breakEnclosing(k kind) *marker {
	for other, m := range p.last {
		if m != nil && kind(other) != k {
			m.broken = true
		}
	}
	return p.enclosing(k)
}

func (p *parser) addInside(m, outer *marker) {
	p.add(m, func() string {
		return fmt.Sprintf("is inside the block of lines %d to %d (%s); blocks must not nest or overlap, and their text must not contain marker lines: close that block first, or change the start of this line",
			outer.line, outer.mate.line, p.display(outer))
	})
}

// It is for a reply that does not say what to do (ruling C6); none if the reply tried to, because that problem is
// reported already.
func (p *parser) wholeProblem() []Problem {
	switch {
	case !p.attempted[file] && !p.attempted[done]:
		return []Problem{{Text: "the reply has neither a file nor a $$$ block: write each file to change, complete, between ^^^ with its path and ^^^end, or explain between $$$start and $$$end why no file needs to change; each marker must be alone on its line"}}
	case p.hasBlock[file] && p.hasBlock[done]:
		return []Problem{{Marker: done.sign(), Text: "the reply has a $$$ block, which says that no file needs to change, but also files: remove one or the other"}}
	}
	return nil
}

// maxProblems is how many problems of a reply are reported individually.
const maxProblems = 50

// fault is a problem whose words are made only if it is reported, so that a reply with an error in every line costs no more
// than reading it.
type fault struct {
	at   *marker
	text func() string
}

func (p *parser) add(at *marker, text func() string) { p.faults = append(p.faults, fault{at, text}) }

// Those of the complete reply are first, then all others in line order.
func (p *parser) problems() []Problem {
	slices.SortStableFunc(p.faults, func(a, b fault) int { return cmp.Compare(a.at.line, b.at.line) })
	all := p.wholeProblem()
	for i, f := range p.faults {
		if len(all) == maxProblems {
			return append(all, Problem{Line: f.at.line, Text: fmt.Sprintf("and %d more problems from this line on", len(p.faults)-i)})
		}
		all = append(all, Problem{Line: f.at.line, Marker: p.display(f.at), Text: f.text()})
	}
	return all
}
