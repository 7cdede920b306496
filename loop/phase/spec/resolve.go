package spec

import (
	"strings"

	"hone/internal/lazyregexp"
)

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
