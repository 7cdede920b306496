package spec

import (
	"strings"

	"hone/internal/lazyregexp"
)

// Parse reads a spec's text. It never fails: [Check] reports what it did not
// understand.
//
// A line with an arrow is a contract if it is below a heading with the word
// "contracts" or "flows", up to the next heading of that level, or if SUPERSEDES
// precedes it. In a spec without such headings it is one if it starts like a
// request, or is a list item or in a code fence. FLOW: and SUPERSEDES: count
// anywhere. Tables, quotations, comments and code in programming languages are
// context.
func Parse(phase int, path, text string) Phase {
	spec, _ := parse(phase, path, text)
	return spec
}

var (
	arrowMark = lazyregexp.New(`[→⇒⟶⟹➜➔]|(?:^|\s)(?:--?|==?)>(?:\s|$)`)
	comment   = lazyregexp.New(`(?s)<!--.*?(?:-->|$)`)
	fenceMark = lazyregexp.New("^(`{3,}|~{3,})\\s*([^`]*)$")
	textFence = lazyregexp.New(`(?i)^(?:text|txt|plain|plaintext|http|md|markdown|specs?|contracts?|flows?|abl)?$`)
	heading   = lazyregexp.New(`^(#{1,6})\s+(.*?)(?:\s+#+)?$`)
	listMark  = lazyregexp.New(`^(?:[-*+•–]|[0-9]{1,9}[.)])\s+(?:\[[ xX]\]\s+)?`)
	strong    = lazyregexp.New(`\*\*([^*/\s](?:[^*]*[^*/\s])?)\*\*`)

	sectionTitle  = lazyregexp.New(`(?i)\b(?:contracts?|flows?|supersedes|supersessions?)\b`)
	phaseTitle    = lazyregexp.New(`(?i)^phase\s*([0-9]*)\s*[:.–—-]*\s*`)
	flowLine      = lazyregexp.New(`^FLOW\s*:\s*(.*)$`)
	supersedeLine = lazyregexp.New(`^SUPERSEDES\b\s*(?:\([^)]*\))?\s*:?\s*(.*)$`)
	requestLine   = lazyregexp.New(`^(?:(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s|/\S|\$\s)`)
)

// textLine is one line of a spec without its Markdown.
type textLine struct {
	number int // counted from 1
	indent int // before the text or its list mark
	level  int // of a heading; 0 for other lines
	marked bool
	text   string // empty for a blank line
}

// scan returns the lines of a spec that can matter; others are blank.
func scan(text string) []textLine {
	text = comment.ReplaceAllStringFunc(strings.TrimPrefix(text, "\ufeff"), func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
	var lines []textLine
	fence, foreign := "", false
	for i, raw := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(raw)
		mark := fenceMark.FindStringSubmatch(trimmed)
		l := textLine{number: i + 1, indent: indentation(raw), marked: fence != ""}
		switch {
		case fence != "" && mark != nil && mark[2] == "" && strings.HasPrefix(mark[1], fence):
			fence, foreign = "", false
			continue
		case fence == "" && mark != nil:
			fence, foreign = mark[1], !textFence.MatchString(strings.TrimSpace(mark[2]))
			continue
		case foreign, fence != "" && (strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "//")), strings.HasPrefix(trimmed, "|"), strings.HasPrefix(trimmed, ">"):
		default:
			l.strip(trimmed)
		}
		lines = append(lines, l)
	}
	return lines
}

// strip sets the text of a line.
func (l *textLine) strip(text string) {
	if found := heading.FindStringSubmatch(text); found != nil && !l.marked {
		l.level, text = len(found[1]), found[2]
	} else if mark := listMark.FindString(text); mark != "" {
		l.marked, text = true, text[len(mark):]
	}
	text = strong.ReplaceAllStringFunc(strings.ReplaceAll(text, "`", ""), func(s string) string { return strings.Trim(s, "*") })
	l.text = strings.Join(strings.Fields(text), " ")
	if strings.Trim(l.text, "-=*_ ") == "" {
		l.text = ""
	}
}

// indentation counts a tab as four columns.
func indentation(line string) int {
	line = strings.ReplaceAll(line, "\t", "    ")
	return len(line) - len(strings.TrimLeft(line, " "))
}

// parser reads a spec line by line.
type parser struct {
	spec      Phase
	warnings  []Warning
	sectioned bool // the spec has a heading for its contracts
	inside    bool // the line is below such a heading
	level     int  // of that heading
	titled    bool

	flow     *textLine // the line that starts the open flow; nil outside flows
	indented bool      // the flow's steps are deeper than that line
	gap      bool      // a blank line precedes
	above    textLine  // the line above, if it is a contract or could be its action
	targets  []string  // of SUPERSEDES lines, for the item that follows
	target   int       // the line of the last of them
}

func parse(phase int, path, text string) (Phase, []Warning) {
	p := parser{spec: Phase{Number: phase, Path: path, Text: text}}
	lines := scan(text)
	for _, l := range lines {
		p.sectioned = p.sectioned || section(l)
	}
	for _, l := range lines {
		switch {
		case l.text == "":
			p.gap, p.above = true, textLine{}
			continue
		case l.level > 0:
			p.heading(l)
		default:
			p.plain(l)
		}
		p.gap = false
	}
	p.endFlow()
	p.dropTargets()
	for _, i := range p.spec.Items {
		for _, c := range i.Steps {
			if c.Action == "" || c.Expected == "" {
				p.warn(c.Line, "the contract lacks one side of its arrow; write ACTION → EXPECTED")
			}
		}
	}
	return p.spec, p.warnings
}

// section reports whether a line is a heading for contracts, and not the spec's title.
func section(l textLine) bool {
	return l.level > 0 && sectionTitle.MatchString(l.text) && !flowLine.MatchString(l.text) && !supersedeLine.MatchString(l.text) &&
		phaseTitle.FindString(l.text) == ""
}

func (p *parser) warn(line int, text string) {
	p.warnings = append(p.warnings, Warning{p.spec.Path, line, text})
}

// heading ends the flow above it. It starts or ends a section, or starts a flow.
func (p *parser) heading(l textLine) {
	p.endFlow()
	if !p.keyword(l) {
		p.dropTargets()
		switch {
		case section(l):
			p.inside, p.level = true, l.level
		case l.level <= p.level:
			p.inside, p.level = false, 0
		}
		if !p.titled && !p.inside {
			p.spec.Title = l.text[len(phaseTitle.FindString(l.text)):]
		}
		p.titled = true
	}
	p.above = textLine{}
}

// keyword reads a FLOW or SUPERSEDES line.
func (p *parser) keyword(l textLine) bool {
	if found := flowLine.FindStringSubmatch(l.text); found != nil {
		p.endFlow()
		if found[1] == "" {
			p.warn(l.number, "FLOW has no name; write FLOW: NAME")
		}
		p.flow, p.indented = &l, false
		p.spec.Items = append(p.spec.Items, Item{Path: p.spec.Path, Line: l.number, Flow: found[1], Supersedes: p.takeTargets()})
		return true
	}
	found := supersedeLine.FindStringSubmatch(l.text)
	switch {
	case found == nil:
		return false
	case found[1] == "":
		p.warn(l.number, "SUPERSEDES names no contract; write SUPERSEDES: ACTION → EXPECTED, and the new contract below it")
	default:
		p.targets, p.target = append(p.targets, found[1]), l.number
	}
	if p.flow != nil && p.flow.level == 0 && l.indent <= p.flow.indent {
		p.endFlow()
	}
	return true
}

func (p *parser) plain(l textLine) {
	if p.keyword(l) {
		p.above = textLine{}
		return
	}
	above := p.above
	p.above = l
	at := arrowMark.FindStringIndex(l.text)
	switch {
	case at != nil && at[0] == 0 && above.text != "" && arrowMark.FindStringIndex(above.text) == nil:
		l.text, l.number, l.indent = above.text+" "+l.text, above.number, above.indent
	case at == nil && above.text != "" && l.indent > above.indent && p.extend(above, l):
		p.above = above
		return
	}
	if p.flow != nil && !p.belongs(l) {
		p.endFlow()
	}
	if p.flow == nil && at == nil {
		p.dropTargets()
	}
	switch {
	case p.flow != nil:
		p.step(l, at != nil)
	case at != nil && (p.inside || p.targets != nil || !p.sectioned && requestOrItem(l)):
		c := contractOf(l)
		p.spec.Items = append(p.spec.Items, Item{Path: p.spec.Path, Line: c.Line, Steps: []Contract{c}, Supersedes: p.takeTargets()})
	}
}

// extend adds a deeper line to the expected result of the contract above it.
func (p *parser) extend(above, l textLine) bool {
	if len(p.spec.Items) == 0 {
		return false
	}
	steps := p.spec.Items[len(p.spec.Items)-1].Steps
	if len(steps) == 0 || steps[len(steps)-1].Line != above.number {
		return false
	}
	steps[len(steps)-1].Expected = strings.TrimSpace(steps[len(steps)-1].Expected + " " + l.text)
	return true
}

// requestOrItem reports whether a line with an arrow looks like a contract in a spec
// without headings, rather than like prose or a drawing.
func requestOrItem(l textLine) bool {
	action, expected := cutArrow(l.text)
	return requestLine.MatchString(l.text) || l.marked && action != "" && expected != "" &&
		arrowMark.FindStringIndex(expected) == nil && !strings.HasSuffix(expected, ".")
}

// belongs reports whether a line is in the open flow.
func (p *parser) belongs(l textLine) bool {
	switch {
	case p.flow.level > 0 || l.indent > p.flow.indent:
		return true
	case p.indented || p.flow.marked && l.marked && p.flow.indent == l.indent:
		return false
	}
	return !p.gap
}

// step adds a line to the open flow. Below a heading there may be prose.
func (p *parser) step(l textLine, hasArrow bool) {
	last := &p.spec.Items[len(p.spec.Items)-1]
	if !hasArrow {
		if p.flow.level == 0 && !p.gap {
			p.warn(l.number, "the step has no arrow; write ACTION → EXPECTED")
		}
		return
	}
	p.indented = l.indent > p.flow.indent
	last.Steps = append(last.Steps, contractOf(l))
	last.Supersedes = append(last.Supersedes, p.takeTargets()...)
}

// endFlow ends the open flow, if there is one.
func (p *parser) endFlow() {
	if p.flow != nil && len(p.spec.Items[len(p.spec.Items)-1].Steps) == 0 {
		p.warn(p.flow.number, "FLOW has no steps; write them below it, one a line, as ACTION → EXPECTED")
		p.spec.Items = p.spec.Items[:len(p.spec.Items)-1]
	}
	p.flow = nil
}

// contractOf returns the contract of a line that has an arrow.
func contractOf(l textLine) Contract {
	action, expected := cutArrow(l.text)
	return Contract{Line: l.number, Action: action, Expected: expected}
}

// takeTargets returns and clears what the next item supersedes.
func (p *parser) takeTargets() []string {
	targets := p.targets
	p.targets = nil
	return targets
}

// dropTargets warns if no contract follows a SUPERSEDES line.
func (p *parser) dropTargets() {
	if p.takeTargets() != nil {
		p.warn(p.target, "SUPERSEDES is not followed by the contract that replaces it; a contract is superseded, never removed")
	}
}

// cutArrow splits a contract at its first arrow outside brackets and quotation
// marks, or else at its first arrow.
func cutArrow(text string) (action, expected string) {
	found := arrowMark.FindAllStringIndex(text, -1)
	if found == nil {
		return text, ""
	}
	at := found[0]
	for _, f := range found {
		before := text[:f[0]]
		if depth(before) <= 0 && strings.Count(before, `"`)%2 == 0 {
			at = f
			break
		}
	}
	return strings.TrimSpace(text[:at[0]]), strings.TrimSpace(text[at[1]:])
}

// depth returns how many brackets are open at the end of a text.
func depth(text string) int {
	open := 0
	for _, r := range text {
		switch r {
		case '{', '(', '[':
			open++
		case '}', ')', ']':
			open--
		}
	}
	return open
}
