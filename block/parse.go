package block

import (
	"fmt"
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
	p := &parser{text: strings.TrimPrefix(text, "\ufeff")}
	p.scan()
	p.checkMarkers()
	r := p.collect()
	return r, p.problems()
}

// marker is a line that is not text.
type marker struct {
	kind  kind
	role  role
	line  int     // starts at 1
	start int     // offset of the line in the text
	mate  *marker // the closing of an opening or the opening of a closing; nil if there is none
	under *marker // of an opening: the enclosing open block of the same kind; nil if there is none
	slip  int     // of an opening: line of the first slip after it; 0 if there is none
	// covered says that another opening of the kind lies between this opening
	// and its closing, or the end of the reply.
	covered bool
	// reported says that a reported problem explains whatever else is wrong
	// with the marker.
	reported bool
	// broken says that the block it opens overlaps another one.
	broken bool
}

type parser struct {
	text  string
	marks []*marker

	// last is the last marker of each kind that is open. While scanning it
	// includes unmatched ones, while checking only matched ones.
	last [kinds]*marker
	// attempted has the kinds with any marker, hasBlock those with a block that
	// is not inside another one.
	attempted, hasBlock [kinds]bool

	faults []fault
}

// Each kind is matched separately.
func (p *parser) scan() {
	start := 0
	for number := 1; start < len(p.text); number++ {
		line := p.lineAt(start)
		if k, r := classify(line); r != text {
			p.match(&marker{kind: k, role: r, line: number, start: start})
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

func (p *parser) match(m *marker) {
	top := p.last[m.kind]
	inBlock := top != nil && top.role == opening
	switch {
	case p.endsDeletion(m):
		return
	case m.role == slip && inBlock:
		if top.slip == 0 {
			top.slip = m.line
		}
		return
	case m.role == opening, m.role == slip && top == nil:
		if inBlock { // an open slip is replaced: it cannot contain a block
			m.under, top.covered = top, true
		}
		p.last[m.kind] = m
	case top != nil:
		m.mate, top.mate = top, m
		p.last[m.kind] = top.under
	}
	p.marks = append(p.marks, m)
}

// After a deletion, ^^^end is ignored.
func (p *parser) endsDeletion(m *marker) bool {
	if len(p.marks) == 0 || m.kind != file || m.role != closing || p.last[file] != nil {
		return false
	}
	before := p.marks[len(p.marks)-1]
	line := p.lineAt(before.start)
	return before.kind == file && before.mate != nil && deletes(line) && !deletes(p.lineAt(m.start)) &&
		strings.TrimSpace(p.text[before.start+len(line):m.start]) == ""
}

// The blocks that are well formed.
func (p *parser) collect() Reply {
	var r Reply
	lines := make(map[string]int) // of each path
	for _, m := range p.marks {
		if m.role != opening || m.mate == nil || m.broken {
			continue
		}
		line := p.lineAt(m.start)
		content := p.text[m.start+len(line) : m.mate.start]
		said := strings.TrimRight(strings.TrimSuffix(content, "\n"), "\r")
		switch m.kind {
		case thought:
			r.Thoughts = append(r.Thoughts, said)
		case debug:
			r.Debug = append(r.Debug, said)
		case done:
			r.Done = append(r.Done, said)
		case file:
			f := File{Path: pathOf(line), Delete: deletes(p.lineAt(m.mate.start))}
			if f.Delete && strings.TrimSpace(content) != "" {
				p.add(m.mate, func() string {
					return "deletes a file, but there is text before it; write ^^^ and the path and then ^^^delete, each alone on its line, or ^^^end to write the text to the file"
				})
				continue
			}
			if content != "" && !f.Delete {
				f.Content = []byte(content)
			}
			r.Files = append(r.Files, f)
			cleaned := clean(f.Path)
			if first, found := lines[cleaned]; found {
				p.add(m, func() string {
					return fmt.Sprintf("is the same file as in line %d; write each file once and complete", first)
				})
			} else {
				lines[cleaned] = m.line
			}
		}
	}
	return r
}

// All paths that name the same file get the same spelling.
func clean(name string) string {
	if cleaned, err := treepath.Clean(name); err == nil {
		return cleaned
	}
	return path.Clean(name)
}

// Spans returns the parts of a text between the opening and the closing marker of
// a block, if no other marker is between them, as offsets in order.
func Spans(text string) [][2]int {
	p := &parser{text: text}
	p.scan()
	var spans [][2]int
	var before *marker
	for _, m := range p.marks {
		if m.role == closing && before != nil && m.mate == before && before.role == opening {
			spans = append(spans, [2]int{before.start + len(p.lineAt(before.start)), m.start})
		}
		if m.role != slip {
			before = m
		}
	}
	return spans
}
