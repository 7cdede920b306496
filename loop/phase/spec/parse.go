package spec

import (
	"strings"

	"hone/internal/lazyregexp"
)

// Parse reads a spec's text. It never fails: the Phase's warnings say what it did not
// understand.
//
// A line with an arrow is a contract if it is below a heading with the word
// "contracts" or "flows", up to the next heading of that level, or if SUPERSEDES
// precedes it. In a spec without such headings it is one if it starts like a
// request, or is a list item or in a code fence. FLOW: and SUPERSEDES: count
// anywhere. There a heading with an action is a contract, too, if lines "Input:" and
// "Success:", "Fail (WHY):" or "Expected:" follow, as in later versions of ABL. Tables, quotations, comments and code in programming languages are
// context.
func Parse(phase int, path, text string) Phase {
	lines, sections := scan(strings.TrimPrefix(text, "\ufeff"))
	p := parser{spec: Phase{Number: phase, Path: path, Text: text}, sections: sections}
	for _, l := range lines {
		p.line(l)
	}
	p.endFlow()
	p.dropTargets()
	return p.spec
}

var (
	requestLine = lazyregexp.New(`^(?:(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s|/\S|\$\s)`)
	arrowMark   = lazyregexp.New(`[→⇒⟶⟹➜➔]|(?:^|\s)(?:--?|==?)>(?:\s|$)`)
	labelled    = lazyregexp.New(`(?i)^(?:(input|action|query)|(success|expected|fail(?:ure)?))\s*(\([^()]*\))?\s*:\s*(.+)$`)
	enclosed    = lazyregexp.New(`\{[^{}]*\}|\([^()]*\)|\[[^\[\]]*\]|"[^"]*"`)
)

// parser adds the items of a spec line by line.
type parser struct {
	spec     Phase
	sections bool // the spec has headings for contracts

	flow        *Item    // the open flow, which is not in the spec yet; nil outside flows
	start       line     // of that flow
	indented    bool     // its steps are deeper than the start
	targets     []string // of SUPERSEDES lines, for the item that follows
	targetsLine int      // the line of the last of them

	head   string   // the last heading below one for contracts
	inputs []string // what labelled lines below it say is sent
}

func (p *parser) line(l line) {
	if p.flow != nil && !p.inFlow(l) {
		p.endFlow()
	}
	if l.level > 0 {
		p.head, p.inputs = "", nil
		if l.inside {
			p.head = l.text
		}
	}
	arrow := arrowMark.MatchString(l.text)
	switch {
	case p.head != "" && p.flow == nil && l.level == 0 && labelled.MatchString(l.text):
		p.label(l.number, labelled.FindStringSubmatch(l.text))
	case l.key == "FLOW":
		p.flow = &Item{Path: p.spec.Path, Line: l.number, Flow: l.text, Supersedes: p.takeTargets()}
		p.start, p.indented = l, false
	case l.key == "SUPERSEDES" && l.text == "":
		p.spec.warn(l.number, "SUPERSEDES names no contract; write SUPERSEDES: ACTION → EXPECTED, and the new contract below it")
	case l.key == "SUPERSEDES":
		p.targets, p.targetsLine = append(p.targets, l.text), l.number
	case p.flow != nil && arrow:
		p.flow.Steps = append(p.flow.Steps, p.contract(l))
		p.flow.Supersedes = append(p.flow.Supersedes, p.takeTargets()...)
		p.indented = l.indent > p.start.indent
	case p.flow != nil && p.start.level == 0 && !l.gap:
		p.spec.warn(l.number, "the step has no arrow; write ACTION → EXPECTED")
	case p.flow != nil: // prose
	case l.level > 0 || !arrow:
		p.dropTargets()
	case l.inside || p.targets != nil || !p.sections && requestOrItem(l):
		p.spec.Items = append(p.spec.Items, Item{Path: p.spec.Path, Line: l.number, Steps: []Contract{p.contract(l)}, Supersedes: p.takeTargets()})
	}
}

// A result is a contract of the heading's action; that of a failure is told by its reason, and not by the input.
func (p *parser) label(number int, found []string) {
	input, result, why, text := found[1], found[2], found[3], found[4]
	if input != "" {
		p.inputs = append(p.inputs, text)
		return
	}
	action := append([]string{p.head}, p.inputs...)
	if strings.HasPrefix(strings.ToLower(result), "fail") {
		action = []string{p.head, why}
	}
	c := Contract{Line: number, Action: strings.TrimSpace(strings.Join(action, " ")), Expected: text}
	p.spec.Items = append(p.spec.Items, Item{Path: p.spec.Path, Line: number, Steps: []Contract{c}, Supersedes: p.takeTargets()})
}

func (p *parser) contract(l line) Contract {
	action, expected := cutArrow(l.text)
	if action == "" || expected == "" {
		p.spec.warn(l.number, "the contract lacks one side of its arrow; write ACTION → EXPECTED")
	}
	return Contract{Line: l.number, Action: action, Expected: expected}
}

// In a spec without headings for contracts, such a line looks like a contract rather than like prose or a drawing.
func requestOrItem(l line) bool {
	action, expected := cutArrow(l.text)
	return requestLine.MatchString(l.text) || l.marked && action != "" && expected != "" &&
		!arrowMark.MatchString(expected) && !strings.HasSuffix(expected, ".")
}

// inFlow reports whether a line is in the open flow: up to the next heading if the
// flow has one; else if it is deeper than the flow's first line, or if the steps are as
// deep as that and no blank line precedes.
func (p *parser) inFlow(l line) bool {
	if l.level > 0 || l.key == "FLOW" {
		return false
	}
	return p.start.level > 0 || l.indent > p.start.indent || !p.indented && !l.gap && l.key == ""
}

func (p *parser) endFlow() {
	if p.flow == nil {
		return
	}
	if p.flow.Flow == "" || p.flow.Steps == nil {
		p.spec.warn(p.flow.Line, "the flow lacks a name or steps; write FLOW: NAME, and below it one step a line, as ACTION → EXPECTED")
	}
	if p.flow.Steps != nil {
		p.spec.Items = append(p.spec.Items, *p.flow)
	}
	p.flow = nil
}

func (p *parser) takeTargets() []string {
	targets := p.targets
	p.targets = nil
	return targets
}

func (p *parser) dropTargets() {
	if p.takeTargets() != nil {
		p.spec.warn(p.targetsLine, "SUPERSEDES is not followed by the contract that replaces it; a contract is superseded, never removed")
	}
}

// The arrow is outside brackets and quotation marks.
func cutArrow(text string) (action, expected string) {
	at := arrowMark.FindStringIndex(blank(text, "x"))
	if at == nil {
		return text, ""
	}
	return strings.TrimSpace(text[:at[0]]), strings.TrimSpace(text[at[1]:])
}

// blank replaces every byte of brackets and quotations, and of what they enclose.
func blank(text, by string) string {
	for range 8 { // levels of brackets
		text = enclosed.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat(by, len(s)) })
	}
	return text
}

// line is a line of a spec without its Markdown. A wrapped contract is one line.
type line struct {
	number int    // counted from 1
	indent int    // before the text or its list mark; a tab counts as four columns
	level  int    // of a heading; 0 for other lines
	marked bool   // a list item, or in a code fence
	inside bool   // below a heading for contracts
	gap    bool   // the line above is blank or context
	key    string // "FLOW" or "SUPERSEDES" if the line starts with it, else empty
	text   string // what follows the key
}

var (
	comment   = lazyregexp.New(`(?s)<!--.*?(?:-->|$)`)
	fence     = lazyregexp.New("^(?:`{3,}|~{3,})\\s*([^`]*)$")
	textFence = lazyregexp.New(`(?i)^(?:text|txt|plain|plaintext|http|md|markdown|specs?|contracts?|flows?|abl)?$`)
	context   = lazyregexp.New(`^(?:[|>]|//)`)
	heading   = lazyregexp.New(`^(#{1,6})\s+(.*?)(?:\s+#+)?$`)
	listMark  = lazyregexp.New(`^(?:[-*+•–]|[0-9]{1,9}[.)])\s+(?:\[[ xX]\]\s+)?`)
	strong    = lazyregexp.New(`\*\*([^*/\s](?:[^*]*[^*/\s])?)\*\*`)

	keyword    = lazyregexp.New(`^(?:(FLOW)\s*:|(SUPERSEDES)\b\s*(?:\([^)]*\))?\s*:?)`)
	section    = lazyregexp.New(`(?i)\b(?:contracts?|flows?|supersedes|supersessions?)\b`)
	phaseTitle = lazyregexp.New(`(?i)^phase`)
)

// sections reports whether the spec has headings for contracts.
func scan(text string) (lines []line, sections bool) {
	text = comment.ReplaceAllStringFunc(text, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
	fenced, foreign := false, false // in a code fence, and in one with a programming language
	gap, level := false, 0          // of the heading for contracts above; 0 if there is none
	for i, raw := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(raw)
		if mark := fence.FindStringSubmatch(trimmed); mark != nil {
			fenced, foreign = !fenced, !fenced && !textFence.MatchString(mark[1])
			continue
		}
		l := line{number: i + 1, marked: fenced, gap: gap}
		if !foreign && !context.MatchString(trimmed) && !(fenced && strings.HasPrefix(trimmed, "#")) {
			l.strip(raw, trimmed)
		}
		if gap = l.key+l.text == ""; gap {
			continue
		}
		switch {
		case l.level == 0 || l.key != "":
		case section.MatchString(l.text) && !phaseTitle.MatchString(l.text):
			level, sections = l.level, true
		case l.level <= level:
			level = 0
		}
		l.inside = level > 0
		if n := len(lines); n > 0 && l.continues(lines[n-1]) {
			lines[n-1].text += " " + l.text
		} else {
			lines = append(lines, l)
		}
	}
	return lines, sections
}

// The text stays empty if the line only separates others.
func (l *line) strip(raw, text string) {
	raw = strings.ReplaceAll(raw, "\t", "    ")
	l.indent = len(raw) - len(strings.TrimLeft(raw, " "))
	if found := heading.FindStringSubmatch(text); found != nil && !l.marked {
		l.level, text = len(found[1]), found[2]
	} else if mark := listMark.FindString(text); mark != "" {
		l.marked, text = true, text[len(mark):]
	}
	text = strong.ReplaceAllStringFunc(strings.ReplaceAll(text, "`", ""), func(s string) string { return strings.Trim(s, "*") })
	if strings.Trim(text, "-=*_ \t") == "" {
		return
	}
	text = strings.Join(strings.Fields(text), " ")
	if found := keyword.FindStringSubmatch(text); found != nil {
		l.key, text = found[1]+found[2], strings.TrimSpace(text[len(found[0]):])
	}
	l.text = text
}

// A wrapped contract goes on with its arrow, or with a deeper line that has none.
func (l line) continues(above line) bool {
	if l.gap || l.level+above.level > 0 || l.key+above.key != "" {
		return false
	}
	arrow := arrowMark.FindStringIndex(l.text)
	if arrowMark.MatchString(above.text) {
		return arrow == nil && l.indent > above.indent
	}
	return arrow != nil && arrow[0] == 0
}

// Resolve compares specs, which must be in the order of their phases. It sets what
// supersedes a contract, a step or a flow, and warns about superseded contracts that no
// earlier line states. It must be called once.
func Resolve(specs []Phase) {
	var earlier []*Item
	for n := range specs {
		s := &specs[n]
		for i := range s.Items {
			item := &s.Items[i]
			for _, target := range item.Supersedes {
				if problem := supersede(earlier, target, item.Place()); problem != "" {
					s.warn(item.Line, "it supersedes “%s”, which %s", target, problem)
				}
			}
			earlier = append(earlier, item)
		}
	}
}

// supersede marks the items and steps that the text of a SUPERSEDES line means:
// those that equal it, or else those that equal it without brackets and their
// contents. A text without an arrow means an action with any result. It returns what
// is wrong with the text; empty if it means one item.
func supersede(items []*Item, target, by string) (problem string) {
	action, expected := cutArrow(target)
	action, expected = Plain(action), Plain(expected)
	for _, form := range []func(string) string{Plain, bare} {
		same := func(text, wanted string) bool { return Plain(text) == wanted || form(text) == wanted }
		found, places := false, []string(nil)
		for _, i := range items {
			if i.isFlow() && Plain(i.String()) == Plain(target) {
				i.By, found = by, true
			}
			for n, c := range i.Steps {
				if !same(c.Action, action) || expected != "" && !same(c.Expected, expected) {
					continue
				}
				i.Steps[n].By, found = by, true
				if !i.isFlow() {
					i.By, places = by, append(places, i.Place())
				}
			}
		}
		if len(places) > 1 {
			return "could be any of " + strings.Join(places, ", ") + "; write the one that you mean in full"
		}
		if found {
			return ""
		}
	}
	return "no earlier line states"
}

var aroundMarks = lazyregexp.New(`\s*[{}()\[\],:;]\s*`)

// Plain returns a text in the form in which contracts are compared: without
// backquotes and redundant white space, and with one spelling of the arrow.
func Plain(text string) string {
	text = arrowMark.ReplaceAllString(strings.ReplaceAll(text, "`", ""), " → ")
	text = strings.Join(strings.Fields(text), " ")
	return aroundMarks.ReplaceAllStringFunc(text, strings.TrimSpace)
}

// bare returns a text like Plain, without what is in brackets or quotation marks.
func bare(text string) string { return Plain(blank(text, " ")) }
