package block

import (
	"cmp"
	"fmt"
	"slices"
)

// Blocks that overlap are broken.
func (p *parser) checkMarkers() {
	p.last = nothingOpen()
	for i := range p.marks {
		switch p.marks[i].role {
		case opening:
			p.checkOpening(i)
		case closing:
			p.checkClosing(&p.marks[i])
		case slip:
			p.checkSlip(&p.marks[i])
		}
	}
}

func (p *parser) checkOpening(i int) {
	m := &p.marks[i]
	p.attempted[m.kind] = true
	outer := p.breakEnclosing(m.kind)
	if m.under != none && p.marks[m.under].matched {
		outer = m.under
		p.marks[outer].broken = true
	}
	if outer != none {
		m.broken = true
		m.reported = true
		p.addInside(m, outer)
	} else {
		p.hasBlock[m.kind] = true
		p.checkClosed(m)
	}
	if m.matched {
		p.last[m.kind] = i
	}
}

// They are the block still open when m opened, and m itself unless another one covers it.
func (p *parser) checkClosed(m *marker) {
	if m.under != none && !p.marks[m.under].reported {
		outer := &p.marks[m.under]
		outer.reported = true
		p.add(m, func() string {
			return fmt.Sprintf("opens a block before the block of line %d (%s) is closed%s; write %s alone on a line before this one",
				outer.line, p.display(outer), slipAfter(outer), m.kind.closing())
		})
	}
	if !m.matched && !m.covered {
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
	p.attempted[m.kind] = true
	if m.matched && p.marks[m.mate].role == opening {
		p.last[m.kind] = p.matchedUnder(m.mate)
		return
	}
	if outer := p.breakEnclosing(m.kind); outer != none {
		p.addInside(m, outer)
		return
	}
	if m.matched && p.marks[m.mate].reported {
		return
	}
	p.add(m, func() string {
		return "closes a block that was not opened; " + m.kind.opening() + " must be alone on a line before the text"
	})
}

// Openings below an unmatched one are unmatched too.
func (p *parser) matchedUnder(i int) int {
	if under := p.marks[i].under; under != none && p.marks[under].matched {
		return under
	}
	return none
}

func (p *parser) checkSlip(m *marker) {
	if p.enclosing(m.kind) != none {
		return
	}
	p.attempted[m.kind] = true
	// The second slip of a pair, such as two fences, is reported with the
	// first.
	if m.matched && p.marks[m.mate].line < m.line && p.marks[m.mate].reported {
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

func (p *parser) enclosing(k kind) int {
	inner := none
	for other, i := range p.last {
		if kind(other) != k {
			inner = max(inner, i)
		}
	}
	return inner
}

// breakEnclosing is enclosing, and marks all open matched blocks of other kinds
// as broken.
func (p *parser) breakEnclosing(k kind) int {
	for other, i := range p.last {
		if kind(other) != k && i != none {
			p.marks[i].broken = true
		}
	}
	return p.enclosing(k)
}

func (p *parser) addInside(m *marker, outer int) {
	o := &p.marks[outer]
	p.add(m, func() string {
		return fmt.Sprintf("is inside the block of lines %d to %d (%s); blocks must not nest or overlap, and their text must not contain marker lines: close that block first, or change the start of this line",
			o.line, p.marks[o.mate].line, p.display(o))
	})
}

// lines maps each cleaned path to its line.
func (p *parser) checkRepeat(m *marker, name string, lines map[string]int) {
	cleaned := clean(name)
	if first, found := lines[cleaned]; found {
		p.add(m, func() string {
			return fmt.Sprintf("is the same file as in line %d; write each file once and complete", first)
		})
		return
	}
	lines[cleaned] = m.line
}

func (p *parser) addDeletesText(m *marker) {
	p.add(m, func() string {
		return "deletes a file, but there is text before it; write ^^^ and the path and then ^^^delete, each alone on its line, or ^^^end to write the text to the file"
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
