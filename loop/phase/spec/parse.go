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
