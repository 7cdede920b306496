package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// Due returns what needs a test in a phase: the contracts and flows of the phases up
// to it that none of these supersedes, in their order. What is stated twice is
// returned once.
func Due(specs []Phase, phase int) []Item {
	var due []Item
	stated := map[string]bool{}
	specs, _ = resolve(upTo(specs, phase))
	for _, s := range specs {
		for _, i := range s.Items {
			if key := Plain(i.String()); i.By == "" && !stated[key] {
				stated[key] = true
				due = append(due, i)
			}
		}
	}
	return due
}

// Check returns what the user should look at before a run: blocks that do not
// parse, contracts without a side, superseded contracts that no spec states,
// contracts that a later phase changes without SUPERSEDES, missing phases, phases
// without contracts, and files that are ignored. Each spec has at most 20 warnings,
// in the order of lines; nil if there are none.
func Check(specs []Phase) []Warning {
	var all []Warning
	_, found := resolve(specs)
	before := 0
	for _, s := range specs {
		_, own := parse(s.Number, s.Path, s.Text)
		for _, w := range found {
			if w.Path == s.Path {
				own = append(own, w)
			}
		}
		if s.Number > before+1 {
			own = append(own, Warning{s.Path, 0, fmt.Sprintf("there is no phase %d before it", s.Number-1)})
		}
		if len(s.Items) == 0 {
			own = append(own, Warning{s.Path, 0, "it states no contract that hone recognizes; write one per line, as ACTION → EXPECTED"})
		}
		for _, stray := range s.Strays {
			own = append(own, Warning{stray, 0, "hone ignores this file; name it specs/phaseN.md"})
		}
		slices.SortStableFunc(own, func(a, b Warning) int { return cmp.Compare(a.Line, b.Line) })
		all = append(all, own[:min(len(own), 20)]...)
		before = s.Number
	}
	return all
}

// resolve returns copies of specs, which must be in the order of their phases, in
// which superseded contracts, steps and flows say by what.
func resolve(specs []Phase) ([]Phase, []Warning) {
	var warnings []Warning
	specs = slices.Clone(specs)
	var earlier []*Item
	stated := map[string]*Item{} // contracts by their action
	for n := range specs {
		s := &specs[n]
		s.Items = slices.Clone(s.Items)
		for i := range s.Items {
			item := &s.Items[i]
			item.Steps = slices.Clone(item.Steps)
			for _, target := range item.Supersedes {
				if problem := supersede(earlier, target, item.at()); problem != "" {
					warnings = append(warnings, Warning{item.Path, item.Line, fmt.Sprintf("it supersedes “%s”, which %s", short(target), problem)})
				}
			}
			if other := contradicted(stated, item); other != nil {
				warnings = append(warnings, Warning{item.Path, item.Line, fmt.Sprintf("%s expects “%s” of the same action; to change that, write SUPERSEDES: %s above it",
					other.at(), short(other.Steps[0].Expected), short(other.String()))})
			}
			earlier = append(earlier, item)
		}
	}
	return specs, warnings
}

// supersede marks the items and steps that the text of a SUPERSEDES line means:
// those that equal it, or else those that equal it without brackets and their
// contents. A text without an arrow means an action with any result. It returns what
// is wrong with the text; empty if it means one item.
func supersede(items []*Item, target, by string) (problem string) {
	action, expected := cutArrow(target)
	action, expected = Plain(action), Plain(expected)
	for _, form := range []func(string) string{Plain, unbracketed} {
		steps, places := 0, []string(nil)
		same := func(text, wanted string) bool { return Plain(text) == wanted || form(text) == wanted }
		for _, i := range items {
			if i.flow() && Plain(i.String()) == Plain(target) {
				i.By, steps = by, steps+1
			}
			for n := range i.Steps {
				c := &i.Steps[n]
				if !same(c.Action, action) || expected != "" && !same(c.Expected, expected) {
					continue
				}
				c.By, steps = by, steps+1
				if !i.flow() {
					i.By, places = by, append(places, i.at())
				}
			}
		}
		switch {
		case len(places) > 1:
			return "could be any of " + short(strings.Join(places, ", ")) + "; write the one that you mean in full"
		case steps > 0:
			return ""
		}
	}
	return "no earlier line states"
}

// contradicted returns the contract of an earlier phase with the same action and
// another result, and remembers this one; nil if there is none.
func contradicted(stated map[string]*Item, item *Item) *Item {
	if item.flow() {
		return nil
	}
	action := Plain(item.Steps[0].Action)
	other := stated[action]
	stated[action] = item
	if other == nil || other.By != "" || other.Path == item.Path || Plain(other.String()) == Plain(item.String()) {
		return nil
	}
	return other
}

var aroundMarks = lazyregexp.New(`\s*[{}()\[\],:;]\s*`)

// Plain returns a text in the form in which contracts are compared: without
// backquotes and redundant white space, and with one spelling of the arrow.
func Plain(text string) string {
	text = arrowMark.ReplaceAllString(strings.ReplaceAll(text, "`", ""), " → ")
	text = strings.Join(strings.Fields(text), " ")
	return aroundMarks.ReplaceAllStringFunc(text, strings.TrimSpace)
}

// unbracketed returns a text without brackets and their contents, or the text itself
// if nothing would be left.
func unbracketed(text string) string {
	var left strings.Builder
	open := 0
	for _, r := range text {
		switch {
		case strings.ContainsRune("{([", r):
			open++
		case strings.ContainsRune("})]", r):
			open--
		case open <= 0:
			left.WriteRune(r)
		}
	}
	if strings.TrimSpace(left.String()) == "" {
		return Plain(text)
	}
	return Plain(left.String())
}

// short truncates a quotation to fit on a line.
func short(text string) string {
	const most = 120 // characters
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
