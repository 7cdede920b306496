package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// Check returns what the user should look at before a run: blocks that do not
// parse; contracts with an empty side, stated twice, or changed without SUPERSEDES;
// superseded contracts that no spec states; missing phases, phases without
// contracts, and files that are ignored. It ignores white space and the spelling of
// the arrow when it compares contracts. The result is in the order of phases and
// lines, with at most about fifty warnings for each spec; nil if there are none.
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
		own = append(append(fileWarnings(s, before), own...), byPath[s.Path]...)
		slices.SortStableFunc(own, func(a, b Warning) int { return cmp.Compare(a.Line, b.Line) })
		all = append(all, limited(own)...)
		before = s.Number
	}
	return all
}

// limited returns the first warnings of a spec, and how many more there are.
func limited(own []Warning) []Warning {
	const most = 50
	if len(own) <= most {
		return own
	}
	more := Warning{own[most].Path, own[most].Line, fmt.Sprintf("and %d more warnings from this line on", len(own)-most)}
	return append(own[:most:most], more)
}

// fileWarnings returns the warnings about a spec as a whole; before is the number of
// the previous spec.
func fileWarnings(s Phase, before int) []Warning {
	var all []Warning
	switch missing := s.Number - before - 1; {
	case missing == 1:
		all = append(all, Warning{s.Path, 0, fmt.Sprintf("there is no phase %d before it", s.Number-1)})
	case missing > 1:
		all = append(all, Warning{s.Path, 0, fmt.Sprintf("there are no phases %d to %d before it", before+1, s.Number-1)})
	}
	steps := func(f Flow) bool { return len(f.Steps) > 0 }
	if len(s.Contracts) == 0 && !slices.ContainsFunc(s.Flows, steps) {
		all = append(all, Warning{s.Path, 0, "it states no contract that hone recognizes; write one per line, as ACTION → EXPECTED"})
	}
	for _, stray := range s.Strays {
		all = append(all, Warning{stray, 0, "it is ignored; the name of a spec is specs/phaseN.md"})
	}
	return all
}

// upToPhase returns the specs of the phases up to upTo, in order. No role sees a
// later one (ruling A1).
func upToPhase(specs []Phase, upTo int) []Phase {
	return slices.DeleteFunc(ordered(specs), func(s Phase) bool { return s.Number > upTo })
}

type claimKind int

const (
	loneClaim claimKind = iota // a contract outside flows
	stepClaim                  // a step of a flow
	flowClaim                  // a flow; its name is the action
)

// claim is something that a spec states, and what superseded it.
type claim struct {
	kind     claimKind
	path     string
	contract Contract
	key      side   // of the action
	result   side   // of the expected result
	flow     *claim // the flow that contains the step
	by       *claim // the claim that supersedes it; nil if it holds
}

func (c *claim) at() string { return fmt.Sprintf("%s:%d", c.path, c.contract.Line) }

// side is one side of a contract, in the two forms that are compared.
type side struct {
	exact string // without redundant white space
	plain string // also without brackets and their contents
}

var (
	aroundMarks = lazyregexp.New(`\s*([{}()\[\],:;])\s*`)
	arrowSpaced = lazyregexp.New(`\s*→\s*`)
)

// sideOf normalizes one side, including the spelling of an arrow within it.
func sideOf(text string) side {
	text = arrowSpaced.ReplaceAllString(arrowMark.ReplaceAllString(text, "→"), "→")
	return side{tight(text), tight(unbracketed(text))}
}

func tight(text string) string {
	return aroundMarks.ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1")
}

// unbracketed returns a text without brackets and their contents, or the text itself
// if nothing would be left.
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

// statements are the claims of all specs, in their order.
type statements struct {
	claims   []*claim
	byAction map[string][]*claim // by both forms of the action
	byFlow   map[string][]*claim
	warnings []Warning
}

// readHistory reads specs, which must be in the order of their phases.
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

// claimsOf returns the claims of one spec, in the order of its lines.
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

// sameAction is how many claims with one action are compared with each other. More of
// them are not written by hand, and the time grows with their square.
const sameAction = 200

func (h *statements) add(c *claim) {
	h.claims = append(h.claims, c)
	if c.kind == flowClaim {
		addClaim(h.byFlow, c.key.exact, c)
		return
	}
	addClaim(h.byAction, c.key.exact, c)
	if c.key.plain != c.key.exact {
		addClaim(h.byAction, c.key.plain, c)
	}
}

func addClaim(claims map[string][]*claim, key string, c *claim) {
	if len(claims[key]) < sameAction {
		claims[key] = append(claims[key], c)
	}
}

func (h *statements) warn(c *claim, format string, args ...any) {
	h.warnings = append(h.warnings, Warning{c.path, c.contract.Line, fmt.Sprintf(format, args...)})
}

// supersede marks the claims that a SUPERSEDES line names, and warns if it is
// ambiguous or has no effect.
func (h *statements) supersede(by *claim, text string) {
	found := h.matching(text)
	live := slices.DeleteFunc(slices.Clone(found), func(c *claim) bool { return c.by != nil })
	lone := slices.DeleteFunc(slices.Clone(live), func(c *claim) bool { return c.kind == stepClaim })
	switch {
	case len(found) == 0:
		h.warn(by, "it supersedes “%s”, which no earlier line states", short(text))
	case len(live) == 0:
		last := found[len(found)-1]
		h.warn(by, "it supersedes “%s” of %s, which %s already superseded", short(text), last.at(), last.by.at())
	case len(lone) > 1:
		h.warn(by, "it supersedes “%s”, which could be any of %s; write the one that you mean in full", short(text), places(lone))
	}
	for _, c := range live {
		c.by = by
	}
}

// matching returns the claims that the text of a SUPERSEDES line can mean: those
// that equal it, or else the contracts, or else the steps, that equal it without
// brackets and their contents. A text without an arrow means an action with any
// result.
func (h *statements) matching(text string) []*claim {
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

// compare warns if a contract is stated twice, or if an earlier phase expects
// another result and is not superseded.
func (h *statements) compare(c *claim) {
	if c.contract.Action == "" || c.contract.Expected == "" {
		return
	}
	var other *claim
	for _, earlier := range h.byAction[c.key.exact] {
		switch {
		case earlier.kind != loneClaim || earlier.by != nil || earlier.key.exact != c.key.exact || earlier.contract.Expected == "":
		case earlier.result.exact == c.result.exact:
			h.warn(c, "%s states the same contract", earlier.at())
			return
		case earlier.contract.Phase < c.contract.Phase:
			other = earlier
		}
	}
	if other != nil {
		h.warn(c, "%s expects “%s” of the same action; to change that, write SUPERSEDES: %s above it",
			other.at(), short(other.contract.Expected), short(other.contract.String()))
	}
}

// places returns the places of the first few claims.
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

// short truncates a quotation to fit on a line.
func short(text string) string {
	const most = 120 // characters
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
