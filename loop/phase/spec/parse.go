package spec

import (
	"fmt"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// Parse reads a spec's text. It never fails: [Check] reports what it did not
// understand.
//
// If the spec has a heading with the word "contracts", the lines with an arrow below
// that heading and below a heading "Flows" are contracts, up to the next heading of
// the same level. In a spec without such a heading the shape of a line decides: a
// line that starts like a request, and a list item, a line of code or a
// one-line paragraph with one arrow. FLOW: and SUPERSEDES: count anywhere. Tables, quotations,
// comments and code in programming languages are context.
func Parse(phase int, path, text string) Phase {
	spec, _ := parse(phase, path, text)
	return spec
}

// parse is Parse, with warnings about what it did not understand.
func parse(phase int, path, text string) (Phase, []Warning) {
	p := parser{
		spec:  Phase{Number: phase, Path: path, Text: text},
		lines: joinLines(scan(text)),
	}
	p.sectioned = slices.ContainsFunc(p.lines, func(l textLine) bool {
		return l.kind == headingLine && sectionOf(l.text) == contractSection
	})
	for i, line := range p.lines {
		p.read(i, line)
	}
	p.endFlow()
	p.dropTargets()
	return p.spec, p.problems
}

// sectionKind is the meaning of the lines below a heading.
type sectionKind int

const (
	contextSection sectionKind = iota
	contractSection
	flowSection
)

var (
	contractHeading = lazyregexp.New(`(?i)\b(?:contracts|supersedes|superseded|supersessions?)\b|^contract$`)
	flowHeading     = lazyregexp.New(`(?i)^[0-9.)\s]*(?:flow|(?:[\w-]+ )?flows\b.*|(?:[\w-]+ )?flow blocks?\b.*)$`)
	phaseHeading    = lazyregexp.New(`(?i)^phase\b\s*([0-9]+)?\s*[:.,–—-]*\s*`)
)

// sectionOf returns the meaning of the lines below a heading.
func sectionOf(heading string) sectionKind {
	switch {
	case phaseHeading.MatchString(heading):
		return contextSection
	case contractHeading.MatchString(heading):
		return contractSection
	case flowHeading.MatchString(heading):
		return flowSection
	}
	return contextSection
}

// replacedText is a SUPERSEDES line before the contract that replaces its target.
type replacedText struct {
	line int
	text string
}

// openFlow is the flow that the parser is in.
type openFlow struct {
	at       textLine
	heading  bool // a heading names it, so that it extends to the next one
	explicit bool // it is marked as a flow, so that it needs steps
	indented bool // its steps stand deeper than its name
}

type parser struct {
	spec      Phase
	lines     []textLine
	problems  []Warning
	sectioned bool // the spec has a heading for its contracts
	headed    bool // a heading was read
	section   sectionKind
	level     int // of the section's heading
	flow      *openFlow
	gap       bool // a blank line precedes
	targets   []replacedText
}

func (p *parser) warn(line int, format string, args ...any) {
	p.problems = append(p.problems, Warning{p.spec.Path, line, fmt.Sprintf(format, args...)})
}

var (
	flowWord      = lazyregexp.New(`^(?i:flow)\s*:\s*(.*)$`)
	supersedeWord = lazyregexp.New(`^(?i:supersedes)\s*(?:\([^)]*\)\s*)?:\s*(.*)$`)
	// supersedeBare lacks the colon.
	supersedeBare = lazyregexp.New(`^SUPERSEDES\s+(.*)$`)
)

// supersedeTarget returns what a line supersedes; ok is false if it is not a
// SUPERSEDES line.
func supersedeTarget(text string) (target string, ok bool) {
	if found := supersedeWord.FindStringSubmatch(text); found != nil {
		return found[1], true
	}
	found := supersedeBare.FindStringSubmatch(text)
	if found == nil || !hasArrow(found[1]) {
		return "", text == "SUPERSEDES"
	}
	return found[1], true
}

// keyword reports whether a line is a FLOW or SUPERSEDES line, and so not a contract
// even if it has an arrow.
func keyword(text string) bool {
	_, supersedes := supersedeTarget(text)
	return supersedes || strings.HasPrefix(text, "FLOW") && flowWord.MatchString(text)
}

func (p *parser) read(i int, line textLine) {
	switch line.kind {
	case blankLine:
		p.gap = true
	case headingLine:
		p.heading(line)
	case plainLine:
		p.plain(i, line)
		p.gap = false
	}
}

// heading ends the flow above it, and starts a section or a flow.
func (p *parser) heading(line textLine) {
	first := !p.headed
	p.headed, p.gap = true, true
	p.endFlow()
	if target, ok := supersedeTarget(line.text); ok {
		p.supersedes(line, target)
		return
	}
	if name := flowWord.FindStringSubmatch(line.text); name != nil {
		p.startFlow(openFlow{at: line, heading: true, explicit: keyword(line.text)}, name[1])
		return
	}
	p.dropTargets()
	found := sectionOf(line.text)
	if first && found == contextSection {
		p.title(line)
	}
	switch {
	case found != contextSection || line.level <= p.level:
		p.section, p.level = found, line.level
	case p.section == flowSection:
		p.startFlow(openFlow{at: line, heading: true}, line.text)
	}
}

// title takes the spec's title from its first heading.
func (p *parser) title(line textLine) {
	p.spec.Title = line.text
	found := phaseHeading.FindStringSubmatch(line.text)
	if found == nil {
		return
	}
	p.spec.Title = line.text[len(found[0]):]
	if n := strings.TrimLeft(found[1], "0"); n != "" && n != fmt.Sprint(p.spec.Number) {
		p.warn(line.number, "the heading says phase %s, and the file's name phase %d", n, p.spec.Number)
	}
}

func (p *parser) plain(i int, line textLine) {
	if target, ok := supersedeTarget(line.text); ok {
		p.supersedes(line, target)
		return
	}
	if found := flowWord.FindStringSubmatch(line.text); found != nil && (keyword(line.text) || p.section == flowSection) {
		p.endFlow()
		p.startFlow(openFlow{at: line, explicit: true}, found[1])
		return
	}
	if p.belongs(line) {
		p.step(line)
		return
	}
	arrow := hasArrow(line.text)
	if !arrow {
		p.dropTargets()
	}
	if p.flow != nil && p.flow.heading {
		return
	}
	p.endFlow()
	if arrow && (p.targets != nil || p.section != contextSection || !p.sectioned && p.shaped(i)) {
		p.spec.Contracts = append(p.spec.Contracts, p.contract(line))
	}
}

// supersedes keeps the target of a SUPERSEDES line for the contract that follows.
func (p *parser) supersedes(line textLine, text string) {
	if p.flow != nil && !p.flow.heading && line.indent <= p.flow.at.indent {
		p.endFlow()
	}
	if text == "" {
		p.warn(line.number, "SUPERSEDES names no contract; write SUPERSEDES: ACTION → EXPECTED, and the new contract below it")
		return
	}
	p.targets = append(p.targets, replacedText{line.number, text})
}

// takeTargets returns and clears the targets for the next contract, step or flow.
func (p *parser) takeTargets() []string {
	var texts []string
	for _, t := range p.targets {
		texts = append(texts, t.text)
	}
	p.targets = nil
	return texts
}

// dropTargets warns that no contract replaces the remaining targets.
func (p *parser) dropTargets() {
	for _, t := range p.targets {
		p.warn(t.line, "SUPERSEDES is not followed by the contract that replaces it; a contract is superseded, never removed")
	}
	p.targets = nil
}

// contract returns the contract of a line that has an arrow.
func (p *parser) contract(line textLine) Contract {
	action, expected, _ := cutArrow(line.text)
	switch {
	case action == "":
		p.warn(line.number, "the contract has no action left of its arrow")
	case expected == "":
		p.warn(line.number, "the contract has no expected result right of its arrow")
	}
	return Contract{Phase: p.spec.Number, Line: line.number, Action: action, Expected: expected, Supersedes: p.takeTargets()}
}

func (p *parser) startFlow(flow openFlow, name string) {
	if name == "" {
		p.warn(flow.at.number, "FLOW has no name; write FLOW: NAME")
	}
	p.flow = &flow
	p.spec.Flows = append(p.spec.Flows, Flow{Line: flow.at.number, Name: name, Supersedes: p.takeTargets()})
}

// endFlow ends the open flow, if there is one. A heading without contracts below it
// is not a flow unless it is marked as one.
func (p *parser) endFlow() {
	if p.flow == nil {
		return
	}
	last := len(p.spec.Flows) - 1
	switch {
	case len(p.spec.Flows[last].Steps) > 0:
	case p.flow.explicit || p.spec.Flows[last].Supersedes != nil:
		p.warn(p.flow.at.number, "FLOW has no steps; write them below it, one a line, as ACTION → EXPECTED")
	default:
		p.spec.Flows = p.spec.Flows[:last]
	}
	p.flow = nil
}

// belongs reports whether a line is a step of the open flow, or was meant to be
// one.
func (p *parser) belongs(line textLine) bool {
	f := p.flow
	if f == nil {
		return false
	}
	arrow := hasArrow(line.text)
	started := len(p.spec.Flows[len(p.spec.Flows)-1].Steps) > 0
	switch {
	case f.heading:
		return arrow
	case line.indent > f.at.indent:
		return arrow || !p.gap
	case f.at.item || started && f.indented:
		return false
	case line.item || !started:
		return arrow || !p.gap
	}
	return !p.gap
}

func (p *parser) step(line textLine) {
	if !hasArrow(line.text) {
		p.warn(line.number, "the step has no arrow; write ACTION → EXPECTED")
		return
	}
	flow := &p.spec.Flows[len(p.spec.Flows)-1]
	step := p.contract(line)
	step.Flow = flow.Name
	p.flow.indented = line.indent > p.flow.at.indent
	flow.Steps = append(flow.Steps, step)
}

// requestShape matches the start of a request, a path or a command line.
var requestShape = lazyregexp.New(`^(?:(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s|/\S|\$\s)`)

// shaped reports whether a line with an arrow looks like a contract in a spec
// without headings, rather than like prose or a drawing.
func (p *parser) shaped(i int) bool {
	line := p.lines[i]
	action, expected, _ := cutArrow(line.text)
	switch {
	case action == "" || expected == "":
		return false
	case requestShape.MatchString(line.text):
		return true
	case hasArrow(expected) || strings.HasSuffix(expected, "."):
		return false
	}
	return line.item || line.fenced || p.alone(i-1) && p.alone(i+1)
}

// alone reports whether the line at i, if there is one, is not prose that the
// adjacent line could be part of.
func (p *parser) alone(i int) bool {
	if i < 0 || i >= len(p.lines) {
		return true
	}
	line := p.lines[i]
	return line.kind != plainLine || hasArrow(line.text) || keyword(line.text)
}
