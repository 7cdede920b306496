// Package spec reads the specifications of a project's phases, the files
// specs/phaseN.md: what each states as a contract or a flow, and what a later phase
// supersedes (ruling A5).
//
// [All] and [UpTo] read the files; [Parse] reads one text and never fails, because a
// spec is prose with contracts in it. [Due] returns what needs a test, [Check]
// returns warnings for the user, and [List] shows what was read.
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
	// Title is the first heading without "Phase 2:"; empty if there is none.
	Title string `json:"title,omitempty"`
	// Items are the contracts and flows in the order of their lines.
	Items []Item `json:"items,omitempty"`
	// Strays are files that are not read although their names resemble a spec's,
	// such as "specs/Phase2.md". The first spec has those of the whole project.
	Strays []string `json:"strays,omitempty"`
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
	if i.flow() {
		return "FLOW: " + i.Flow
	}
	return i.Steps[0].String()
}

func (i Item) flow() bool { return i.Flow != "" || len(i.Steps) != 1 }

func (i Item) at() string { return fmt.Sprintf("%s:%d", i.Path, i.Line) }

// Warning is something in a spec that the user should look at. It never stops a
// run (ruling A5).
type Warning struct {
	Path string
	Line int // counted from 1; 0 for the whole file
	Text string
}

// String returns one line that is safe to print: "specs/phase2.md:14: …".
func (w Warning) String() string {
	at := w.Path
	if w.Line > 0 {
		at = fmt.Sprintf("%s:%d", w.Path, w.Line)
	}
	return render.Line(at + ": " + w.Text)
}
