package block

import "fmt"

// judge goes through all markers in order and tells what is wrong with how
// they stand to each other. Blocks that overlap are broken.
func (p *parser) judge() {
	p.last = nothingOpen()
	for i := range p.marks {
		switch p.marks[i].role {
		case opening:
			p.judgeOpening(i)
		case closing:
			p.judgeClosing(&p.marks[i])
		case slip:
			p.judgeSlip(&p.marks[i])
		}
	}
}

func (p *parser) judgeOpening(i int) {
	m := &p.marks[i]
	p.tried[m.kind] = true
	around := p.breakAround(m.kind)
	if m.under != none && p.marks[m.under].matched {
		around = m.under
		p.marks[around].broken = true
	}
	if around != none {
		m.broken = true
		m.reported = true
		p.tellInside(m, around)
	} else {
		p.opened[m.kind] = true
		p.judgeUnclosed(m)
	}
	if m.matched {
		p.last[m.kind] = i
	}
}

// judgeUnclosed tells of blocks that are not closed: the one that was still
// open when m opened, and m itself unless another one covers it.
func (p *parser) judgeUnclosed(m *marker) {
	if m.under != none && !p.marks[m.under].reported {
		outer := &p.marks[m.under]
		outer.reported = true
		p.tell(&p.overlap, m, func() string {
			return fmt.Sprintf("opens a block while the one that line %d opens (%s) is not closed%s; write %s alone on a line before this one",
				outer.line, p.shown(outer), slipAfter(outer), m.kind.closing())
		})
	}
	if !m.matched && !m.covered {
		p.tell(&p.overlap, m, func() string {
			return fmt.Sprintf("is not closed%s; write %s alone on the line after its text", slipAfter(m), m.kind.closing())
		})
	}
}

// slipAfter returns what a message adds about a slip in a block that is not
// closed, since it may have been meant to close it.
func slipAfter(m *marker) string {
	if m.slip == 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d does not close it)", m.slip)
}

func (p *parser) judgeClosing(m *marker) {
	p.tried[m.kind] = true
	if m.matched && p.marks[m.mate].role == opening {
		p.last[m.kind] = p.matchedUnder(m.mate)
		return
	}
	if around := p.breakAround(m.kind); around != none {
		p.tellInside(m, around)
		return
	}
	if m.matched && p.marks[m.mate].reported {
		return
	}
	p.tell(&p.overlap, m, func() string {
		return "closes a block that was not opened; " + m.kind.opening() + " must stand alone on a line before the text"
	})
}

// matchedUnder returns the matched block of the same kind around the one that
// marker i opens. Below an opening that is not matched there is none that is.
func (p *parser) matchedUnder(i int) int {
	if under := p.marks[i].under; under != none && p.marks[under].matched {
		return under
	}
	return none
}

func (p *parser) judgeSlip(m *marker) {
	if p.around(m.kind) != none {
		return
	}
	p.tried[m.kind] = true
	// The second of a pair, like that of Markdown's fences, is told with the
	// first.
	if m.matched && p.marks[m.mate].line < m.line && p.marks[m.mate].reported {
		return
	}
	m.reported = true
	p.tell(&p.overlap, m, func() string {
		if m.kind == file {
			return "names no file; write ^^^ and the file's path to open a block, or ^^^end to close it"
		}
		return fmt.Sprintf("is no marker; write %s to open a block, or %s to close it", m.kind.opening(), m.kind.closing())
	})
}

// around returns, of the matched blocks of other kinds that are open, the one
// opened last.
func (p *parser) around(k kind) int {
	around := none
	for other, i := range p.last {
		if kind(other) != k {
			around = max(around, i)
		}
	}
	return around
}

// breakAround is around, and marks all those blocks as broken.
func (p *parser) breakAround(k kind) int {
	for other, i := range p.last {
		if kind(other) != k && i != none {
			p.marks[i].broken = true
		}
	}
	return p.around(k)
}

// tellInside tells that a marker stands inside the block that the outer one
// opens.
func (p *parser) tellInside(m *marker, outer int) {
	o := &p.marks[outer]
	p.tell(&p.overlap, m, func() string {
		return fmt.Sprintf("stands inside the block of lines %d to %d (%s); blocks may not nest or overlap and their text may hold no marker lines: close that block first, or change this line so that other signs come first",
			o.line, p.marks[o.mate].line, p.shown(o))
	})
}

// judgeRepeat tells of a file that was given before; lines holds the line of
// every cleaned path so far.
func (p *parser) judgeRepeat(m *marker, name string, lines map[string]int) {
	cleaned := clean(name)
	if first, found := lines[cleaned]; found {
		p.tell(&p.repeat, m, func() string {
			return fmt.Sprintf("is the same file as in line %d; give every file once, whole", first)
		})
		return
	}
	lines[cleaned] = m.line
}

// judgeWhole tells whether the reply says what is to be done (ruling C6). If
// it tried to say so and something is wrong with that, it has been told.
func (p *parser) judgeWhole() {
	switch {
	case !p.tried[file] && !p.tried[done]:
		p.whole = []Problem{{Text: "the reply has neither a file nor a $$$ block: give every file to change, whole, between ^^^ with its path and ^^^end, or say between $$$start and $$$end why no file needs to change; each marker stands alone on its line"}}
	case p.opened[file] && p.opened[done]:
		p.whole = []Problem{{Marker: done.sign(), Text: "the reply has a $$$ block, which says that no file needs to change, and files as well: leave out the one or the other"}}
	}
}
