// Package spec reads the specifications of a project's phases, the files
// specs/phaseN.md: what each states as a contract or a flow, and what a later phase
// supersedes (ruling A5).
//
// [Read] reads the files. [Parse] reads one text and never fails, because a spec is
// prose with contracts in it, and [Resolve] compares the phases. [DueItems] returns what
// needs a test, and [List] shows what was read.
package spec

import (
	"fmt"
	"strings"

	"hone/internal/render"
)

// Phase is one phase's specification: context in natural language, and
// contracts that a test can be derived from.
type Phase struct {
	// Number is the number in the file's name.
	Number int `json:"phase"`
	// Path is the file, relative to the project's root: "specs/phase2.md".
	Path string `json:"path"`
	// Text is the file as it was read, without a byte order mark.
	Text string `json:"text"`
	// Items are the contracts and flows in the order of their lines.
	Items []Item `json:"items,omitempty"`
	// Warnings are what the user should look at: lines that start with the file's name
	// and are safe to print. They never stop a run (ruling A5).
	Warnings []string `json:"warnings,omitempty"`
}

// Item is what one test tests: a contract, or a flow.
type Item struct {
	Path string `json:"path"`
	Line int    `json:"line"` // counted from 1
	// Flow is the name of a flow; empty for a contract, which has one step.
	Flow string `json:"flow,omitempty"`
	// Steps are the contracts of a flow in their order: state carries from each to
	// the next.
	Steps []Contract `json:"steps,omitempty"`
	// Supersedes are the contracts or, as "FLOW: NAME", the flows that this item
	// replaces.
	Supersedes []string `json:"supersedes,omitempty"`
	// By is the place of the item that supersedes this one; empty if it holds.
	By string `json:"by,omitempty"`
}

// Contract is one action and its one expected result, with white space collapsed.
// One of the two is empty if the spec states only the other.
type Contract struct {
	Line     int    `json:"line"`
	Action   string `json:"action"`
	Expected string `json:"expected"`
	By       string `json:"by,omitempty"` // the place of what supersedes this step of a flow
}

// String returns the contract as a line of a spec, with an arrow.
func (c Contract) String() string { return strings.TrimSpace(c.Action + " → " + c.Expected) }

// String returns the item as a line of a spec: a contract, or the name of a flow.
func (i Item) String() string {
	if i.isFlow() {
		return "FLOW: " + i.Flow
	}
	return i.Steps[0].String()
}

func (i Item) isFlow() bool { return i.Flow != "" || len(i.Steps) != 1 }

// Place returns the file and the line of the item.
func (i Item) Place() string { return fmt.Sprintf("%s:%d", i.Path, i.Line) }

func (p *Phase) warn(line int, format string, args ...any) {
	p.Warnings = append(p.Warnings, render.Line(fmt.Sprintf("%s:%d: ", p.Path, line)+fmt.Sprintf(format, args...)))
}

// DueItems returns what needs a test: the contracts and flows of resolved specs that none
// of these supersedes, in their order. What is stated twice is returned once.
func DueItems(specs []Phase) []Item {
	var due []Item
	stated := map[string]bool{}
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

// List returns resolved specs as plain text for a terminal: the contracts and flows of
// each phase with their lines, what is superseded and where, and the warnings. Control
// characters are escaped.
func List(specs []Phase) string {
	var b strings.Builder
	row := func(line int, text, by string) {
		if by != "" {
			text += "  [superseded by " + by + "]"
		}
		fmt.Fprintf(&b, "  %4d  %s\n", line, render.Line(text))
	}
	warnings := ""
	for _, s := range specs {
		fmt.Fprintf(&b, "Phase %d (%s)\n", s.Number, s.Path)
		for _, i := range s.Items {
			lead := ""
			if i.isFlow() {
				row(i.Line, i.String(), i.By)
				lead = "  "
			}
			for _, c := range i.Steps {
				row(c.Line, lead+c.String(), c.By)
			}
		}
		b.WriteByte('\n')
		for _, w := range s.Warnings {
			warnings += "  " + w + "\n"
		}
	}
	if warnings == "" {
		return strings.TrimSuffix(b.String(), "\n")
	}
	return b.String() + "Warnings\n" + warnings
}
