package block

import (
	"path"
	"strings"

	"hone/workspace/treepath"
)

// Parse reads a reply. It returns every block that is well formed, even if
// another part of the reply is wrong (rulings C7 and C8), and all problems:
// those of the complete reply first, then in line order. Apply only a reply
// without problems.
//
// A problem that only follows from another one is not reported. After the first
// 50 problems one more states how many are omitted.
func Parse(text string) (Reply, []Problem) {
	p := &parser{text: strings.TrimPrefix(text, "\ufeff"), last: nothingOpen()}
	p.scan()
	p.checkMarkers()
	r := p.collect()
	return r, p.problems()
}

// none is the index of no marker.
const none = -1

// marker is a line that is not text.
type marker struct {
	kind kind
	role role
	// matched says that the opening has its closing, or the closing its
	// opening.
	matched bool
	// covered says that another opening of the kind lies between this opening
	// and its closing, or the end of the reply.
	covered bool
	// reported says that a reported problem explains whatever else is wrong
	// with the marker.
	reported bool
	// broken says that the block it opens overlaps another one.
	broken bool

	line  int // starts at 1
	start int // offset of the line in the text
	mate  int // the matching marker
	under int // of an opening: the enclosing open block of the same kind
	slip  int // of an opening: line of the first slip after it; 0 if there is none
}

type parser struct {
	text  string
	marks []marker

	// last is the last marker of each kind that is open. While scanning it
	// includes unmatched ones, while checking only matched ones.
	last [kinds]int
	// attempted has the kinds with any marker, hasBlock those with a block that
	// is not inside another one.
	attempted, hasBlock [kinds]bool

	faults []fault
}

func nothingOpen() [kinds]int { return [kinds]int{none, none, none, none} }

// Each kind is matched separately.
func (p *parser) scan() {
	start := 0
	for number := 1; start < len(p.text); number++ {
		line := p.lineAt(start)
		if k, r := classify(line); r != text {
			p.match(marker{kind: k, role: r, line: number, start: start, mate: none, under: none})
		}
		start += len(line)
	}
}

func (p *parser) lineAt(start int) string {
	rest := p.text[start:]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		return rest[:i+1]
	}
	return rest
}

func (p *parser) display(m *marker) string { return displayLine(p.lineAt(m.start)) }

func (p *parser) match(m marker) {
	top := p.last[m.kind]
	i := len(p.marks)
	switch {
	case p.endsDeletion(m):
		return
	case m.role == slip && top != none && p.marks[top].role == opening:
		if p.marks[top].slip == 0 {
			p.marks[top].slip = m.line
		}
		return
	case m.role == opening, m.role == slip && top == none:
		p.push(&m, i)
	case top != none:
		m.mate, m.matched = top, true
		p.marks[top].mate, p.marks[top].matched = i, true
		p.last[m.kind] = p.marks[top].under
	}
	p.marks = append(p.marks, m)
}

func (p *parser) endsDeletion(m marker) bool {
	if len(p.marks) == 0 || m.kind != file || m.role != closing || p.last[file] != none {
		return false
	}
	before := p.marks[len(p.marks)-1]
	line := p.lineAt(before.start)
	return before.kind == file && before.matched && deletes(line) && !deletes(p.lineAt(m.start)) &&
		strings.TrimSpace(p.text[before.start+len(line):m.start]) == ""
}

// An open slip is replaced: it cannot contain a block.
func (p *parser) push(m *marker, i int) {
	if top := p.last[m.kind]; top != none && p.marks[top].role == opening {
		m.under = top
		p.marks[top].covered = true
	}
	p.last[m.kind] = i
}

// They are well-formed.
func (p *parser) collect() Reply {
	var r Reply
	lines := make(map[string]int)
	for i := range p.marks {
		m := &p.marks[i]
		if m.role != opening || !m.matched || m.broken {
			continue
		}
		line := p.lineAt(m.start)
		content := p.text[m.start+len(line) : p.marks[m.mate].start]
		switch m.kind {
		case thought:
			r.Thoughts = append(r.Thoughts, withoutBreak(content))
		case debug:
			r.Debug = append(r.Debug, withoutBreak(content))
		case done:
			r.Done = append(r.Done, withoutBreak(content))
		case file:
			f := File{Path: pathOf(line), Delete: deletes(p.lineAt(p.marks[m.mate].start))}
			if f.Delete && strings.TrimSpace(content) != "" {
				p.addDeletesText(&p.marks[m.mate])
				continue
			}
			if content != "" && !f.Delete {
				f.Content = []byte(content)
			}
			r.Files = append(r.Files, f)
			p.checkRepeat(m, f.Path, lines)
		}
	}
	return r
}

func withoutBreak(s string) string {
	return strings.TrimRight(strings.TrimSuffix(s, "\n"), "\r")
}

// All paths that name the same file get the same spelling.
func clean(name string) string {
	if cleaned, err := treepath.Clean(name); err == nil {
		return cleaned
	}
	return path.Clean(name)
}
