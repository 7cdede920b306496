package spec

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Check says what a person should look at before a run: blocks that do not
// parse, contracts with an empty side, stated twice, or changed without
// SUPERSEDES, superseded contracts that nobody stated, missing phases, phases
// without contracts, and files that are passed over. Contracts are compared
// without regard to white space and to how the arrow is written. Nil means
// that there is nothing to say; the order is that of phases and lines, and of
// one spec's warnings there are about fifty at most.
func Check(specs []Phase) []Warning {
	specs = ordered(specs)
	h := readHistory(specs)
	byPath := map[string][]Warning{}
	for _, w := range h.warnings {
		byPath[w.Path] = append(byPath[w.Path], w)
	}
	var all []Warning
	before := 0
	for i, s := range specs {
		if i == 0 && s.Number == 0 {
			before = -1
		}
		_, own := parse(s.Number, s.Path, s.Text)
		own = append(append(whole(s, before), own...), byPath[s.Path]...)
		slices.SortStableFunc(own, func(a, b Warning) int { return cmp.Compare(a.Line, b.Line) })
		all = append(all, few(own)...)
		before = s.Number
	}
	return all
}

// few are the first warnings of a spec, and how many more there are.
func few(own []Warning) []Warning {
	const most = 50
	if len(own) <= most {
		return own
	}
	more := Warning{own[most].Path, own[most].Line, fmt.Sprintf("and %d more warnings from here on", len(own)-most)}
	return append(own[:most:most], more)
}

// whole are the warnings that concern a spec as one among others; before is
// the number of the one before it.
func whole(s Phase, before int) []Warning {
	var all []Warning
	switch missing := s.Number - before - 1; {
	case missing == 1:
		all = append(all, Warning{s.Path, 0, fmt.Sprintf("there is no phase %d before it", s.Number-1)})
	case missing > 1:
		all = append(all, Warning{s.Path, 0, fmt.Sprintf("there are no phases %d to %d before it", before+1, s.Number-1)})
	}
	steps := func(f Flow) bool { return len(f.Steps) > 0 }
	if len(s.Contracts) == 0 && !slices.ContainsFunc(s.Flows, steps) {
		all = append(all, Warning{s.Path, 0, "it states no contract that could be recognised; write one a line, as ACTION → EXPECTED"})
	}
	for _, stray := range s.Strays {
		all = append(all, Warning{stray, 0, "it is not read; a spec is called specs/phaseN.md"})
	}
	return all
}

// until are the specs of the phases to upTo, in order: nobody sees a later one
// (ruling A1).
func until(specs []Phase, upTo int) []Phase {
	return slices.DeleteFunc(ordered(specs), func(s Phase) bool { return s.Number > upTo })
}

type claimKind int

const (
	loneClaim claimKind = iota // a contract by itself
	stepClaim                  // a step of a flow
	flowClaim                  // a flow as a whole; its name is the action
)

// claim is something that a spec states, and what became of it.
type claim struct {
	kind     claimKind
	path     string
	contract Contract
	key      side   // of the action
	result   side   // of the expected result
	flow     *claim // the flow that a step belongs to
	by       *claim // what superseded it; nil while it holds
}

func (c *claim) at() string { return fmt.Sprintf("%s:%d", c.path, c.contract.Line) }

// side is one side of a contract in the forms in which it is compared.
type side struct {
	exact string // without needless white space
	plain string // and without what stands in brackets
}

var (
	aroundMarks = regexp.MustCompile(`\s*([{}()\[\],:;])\s*`)
	arrowSpaced = regexp.MustCompile(`\s*→\s*`)
)

// sideOf normalises one side. An arrow within it gets one spelling too.
func sideOf(text string) side {
	text = arrowSpaced.ReplaceAllString(arrowMark.ReplaceAllString(text, "→"), "→")
	return side{tight(text), tight(unbracketed(text))}
}

func tight(text string) string {
	return aroundMarks.ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1")
}

// unbracketed is a text without its brackets and what stands in them. Where
// nothing would be left it is the text.
func unbracketed(text string) string {
	var kept strings.Builder
	var open openings
	for _, r := range text {
		before := open.brackets
		open.read(string(r))
		if before == 0 && open.brackets == 0 && !strings.ContainsRune("})]", r) {
			kept.WriteRune(r)
		}
	}
	if strings.TrimSpace(kept.String()) == "" {
		return text
	}
	return kept.String()
}

// statements is what all specs state, in the order in which they state it.
type statements struct {
	claims   []*claim
	byAction map[string][]*claim // by both forms of the action
	byFlow   map[string][]*claim
	warnings []Warning
}

// readHistory reads specs that are in the order of their phases.
func readHistory(specs []Phase) *statements {
	h := &statements{byAction: map[string][]*claim{}, byFlow: map[string][]*claim{}}
	for _, s := range specs {
		for _, c := range claimsOf(s) {
			for _, text := range c.contract.Supersedes {
				h.supersede(c, text)
			}
			if c.kind == loneClaim {
				h.compare(c)
			}
			h.add(c)
		}
	}
	return h
}

// claimsOf is what one spec states, in the order of its lines.
func claimsOf(s Phase) []*claim {
	var all []*claim
	add := func(kind claimKind, flow *claim, c Contract) *claim {
		all = append(all, &claim{kind: kind, path: s.Path, contract: c, key: sideOf(c.Action), result: sideOf(c.Expected), flow: flow})
		return all[len(all)-1]
	}
	for _, c := range s.Contracts {
		add(loneClaim, nil, c)
	}
	for _, f := range s.Flows {
		flow := add(flowClaim, nil, Contract{Phase: s.Number, Line: f.Line, Action: f.Name, Supersedes: f.Supersedes})
		for _, c := range f.Steps {
			add(stepClaim, flow, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *claim) int { return cmp.Compare(a.contract.Line, b.contract.Line) })
	return all
}

// sameAction is how many statements of one action are compared with each
// other: more are no contracts that somebody wrote, and the time that they
// take grows with their square.
const sameAction = 200

func (h *statements) add(c *claim) {
	h.claims = append(h.claims, c)
	if c.kind == flowClaim {
		keep(h.byFlow, c.key.exact, c)
		return
	}
	keep(h.byAction, c.key.exact, c)
	if c.key.plain != c.key.exact {
		keep(h.byAction, c.key.plain, c)
	}
}

func keep(claims map[string][]*claim, key string, c *claim) {
	if len(claims[key]) < sameAction {
		claims[key] = append(claims[key], c)
	}
}

func (h *statements) warn(c *claim, format string, args ...any) {
	h.warnings = append(h.warnings, Warning{c.path, c.contract.Line, fmt.Sprintf(format, args...)})
}

// supersede marks what a SUPERSEDES line names, and says what is odd about it.
func (h *statements) supersede(by *claim, text string) {
	found := h.named(text)
	live := slices.DeleteFunc(slices.Clone(found), func(c *claim) bool { return c.by != nil })
	lone := slices.DeleteFunc(slices.Clone(live), func(c *claim) bool { return c.kind == stepClaim })
	switch {
	case len(found) == 0:
		h.warn(by, "it supersedes “%s”, which nothing before it states", short(text))
	case len(live) == 0:
		last := found[len(found)-1]
		h.warn(by, "it supersedes “%s” of %s, which %s superseded already", short(text), last.at(), last.by.at())
	case len(lone) > 1:
		h.warn(by, "it supersedes “%s”, which could be any of %s; write out the one that is meant", short(text), places(lone))
	}
	for _, c := range live {
		c.by = by
	}
}

// named are the claims that the text of a SUPERSEDES line may mean: those that
// it repeats word for word; else the contracts, else the steps, that it repeats
// without what stands in brackets. A text without an arrow means an action,
// whatever its result.
func (h *statements) named(text string) []*claim {
	if name := flowWord.FindStringSubmatch(text); name != nil {
		return h.byFlow[sideOf(name[1]).exact]
	}
	action, expected, hasResult := cutArrow(text)
	if !hasResult {
		action = text
	}
	key, result := sideOf(action).exact, sideOf(expected).exact
	var exact, lone, steps []*claim
	for _, c := range h.byAction[key] {
		switch {
		case c.key.exact == key && (!hasResult || c.result.exact == result):
			exact = append(exact, c)
		case hasResult && c.result.exact != result && c.result.plain != result:
		case c.kind == stepClaim:
			steps = append(steps, c)
		default:
			lone = append(lone, c)
		}
	}
	switch {
	case exact != nil:
		return exact
	case lone != nil:
		return lone
	}
	return steps
}

// compare says of a contract that it stands there already, or that an earlier
// phase expects something else and was not superseded.
func (h *statements) compare(c *claim) {
	if c.contract.Action == "" || c.contract.Expected == "" {
		return
	}
	var other *claim
	for _, earlier := range h.byAction[c.key.exact] {
		switch {
		case earlier.kind != loneClaim || earlier.by != nil || earlier.key.exact != c.key.exact || earlier.contract.Expected == "":
		case earlier.result.exact == c.result.exact:
			h.warn(c, "the same contract stands in %s", earlier.at())
			return
		case earlier.contract.Phase < c.contract.Phase:
			other = earlier
		}
	}
	if other != nil {
		h.warn(c, "%s expects “%s” of the same action; put SUPERSEDES: %s above it if that is to change",
			other.at(), short(other.contract.Expected), short(other.contract.String()))
	}
}

// places are where claims stand, the first few of them.
func places(claims []*claim) string {
	const most = 5
	var at []string
	for i, c := range claims {
		if i == most {
			at = append(at, fmt.Sprintf("%d more", len(claims)-most))
			break
		}
		at = append(at, c.at())
	}
	return strings.Join(at, ", ")
}

// short cuts a quotation to what fits a line.
func short(text string) string {
	const most = 120 // characters
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
