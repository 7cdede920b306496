package block

import (
	"path"
	"strings"

	"hone/workspace"
)

// Parse reads a reply. It returns every block that is well formed by itself,
// also where another part of the reply is wrong (rulings C7 and C8), and all
// that is wrong, in the order of lines, the reply as a whole first. A reply
// without problems is fit to be applied; one with problems is not.
//
// A problem that only follows from another one is not told. After the first
// 50 problems one more says how many there are besides.
func Parse(text string) (Reply, []Problem) {
	p := &parser{text: strings.TrimPrefix(text, "\ufeff"), last: nothingOpen()}
	p.scan()
	p.judge()
	r := p.collect()
	p.judgeWhole()
	return r, p.problems()
}

// none is the index of no marker.
const none = -1

// marker is a line that is not text.
type marker struct {
	kind kind
	role role
	// matched: the opening has its closing, or the other way round.
	matched bool
	// covered: another opening of the kind stands between this opening and
	// its closing, or the end of the reply.
	covered bool
	// reported: a problem was told that explains what else is wrong with it.
	reported bool
	// broken: the block that it opens overlaps another one.
	broken bool

	line  int // from 1
	start int // where the line begins in the text
	mate  int // the marker that it is matched with
	under int // an opening's next open block of the same kind
	slip  int // the line number of the first slip after an opening; 0 is none
}

// parser reads one reply.
type parser struct {
	text  string
	marks []marker

	// last is the marker opened last of each kind: while scanning of all that
	// are open, while judging of those that are matched.
	last [kinds]int
	// tried tells the kinds of which there is any marker, opened those of
	// which there is a block that does not stand in another one.
	tried, opened [kinds]bool

	whole           []Problem // about the reply as a whole, at most one
	overlap, repeat report
}

// nothingOpen returns the value of parser.last where nothing is open.
func nothingOpen() [kinds]int { return [kinds]int{none, none, none, none} }

// scan finds all markers and matches those of each kind, the others left
// aside.
func (p *parser) scan() {
	p.marks = make([]marker, 0, p.bound())
	start := 0
	for number := 1; start < len(p.text); number++ {
		line := p.lineAt(start)
		if k, r := classify(line); r != text {
			p.match(marker{kind: k, role: r, line: number, start: start, mate: none, under: none})
		}
		start += len(line)
	}
}

// bound returns a number that the markers do not exceed: growing a slice of
// millions costs more than counting signs, of which most replies have few.
func (p *parser) bound() int {
	count := 0
	for k := range kinds {
		count += strings.Count(p.text, k.sign())
	}
	return min(count, strings.Count(p.text, "\n")+1)
}

// lineAt returns the line that begins at start, with its line break.
func (p *parser) lineAt(start int) string {
	rest := p.text[start:]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		return rest[:i+1]
	}
	return rest
}

// shown returns the marker as it may stand in a message.
func (p *parser) shown(m *marker) string { return shown(p.lineAt(m.start)) }

// match adds a marker and matches it with what is open of its kind.
func (p *parser) match(m marker) {
	top := p.last[m.kind]
	i := len(p.marks)
	switch {
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

// push makes m, which gets the index i, the last open marker of its kind. A
// slip never opened anything that could be open below it.
func (p *parser) push(m *marker, i int) {
	if top := p.last[m.kind]; top != none && p.marks[top].role == opening {
		m.under = top
		p.marks[top].covered = true
	}
	p.last[m.kind] = i
}

// collect returns the blocks that are well formed by themselves.
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
			f := File{Path: pathOf(line)}
			if content != "" {
				f.Content = []byte(content)
			}
			r.Files = append(r.Files, f)
			p.judgeRepeat(m, f.Path, lines)
		}
	}
	return r
}

// withoutBreak returns a text without its last line break.
func withoutBreak(s string) string {
	return strings.TrimRight(strings.TrimSuffix(s, "\n"), "\r")
}

// clean returns one spelling for all paths that name the same file.
func clean(name string) string {
	if cleaned, err := workspace.Clean(name); err == nil {
		return cleaned
	}
	return path.Clean(name)
}
