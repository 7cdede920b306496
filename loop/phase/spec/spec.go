// Package spec reads the specifications of a project's phases, the files
// specs/phaseN.md: what each states as a contract, what replaces what, and what
// a user should look at before a run.
//
// [All] and [UpTo] read the files; [Parse] reads one text and never fails, as a
// spec is prose with contracts in it. [Check] returns warnings about what was not
// understood, and [List] shows what was.
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
	// Path is where the spec stands, with slashes: "specs/phase2.md".
	Path string `json:"path"`
	// Text is the file as it was read, without a byte order mark.
	Text string `json:"text"`
	// Title is the first heading without its "Phase 2:"; empty where there is
	// none.
	Title string `json:"title,omitempty"`
	// Contracts are those outside of flows, in the order in which they stand.
	Contracts []Contract `json:"contracts,omitempty"`
	// Flows are the sequences whose order matters.
	Flows []Flow `json:"flows,omitempty"`
	// Strays are files whose names look as if they were meant as a spec and
	// which nobody reads, such as "specs/Phase2.md". Each stands with the spec
	// whose number comes next below its own.
	Strays []string `json:"strays,omitempty"`
}

// Contract is one action and the one result that is expected of it.
type Contract struct {
	// Phase is the number of the spec that states it.
	Phase int `json:"phase"`
	// Line is counted from 1.
	Line int `json:"line"`
	// Action and Expected stand left and right of the arrow, white space
	// collapsed. One of them is empty where the spec says only the other.
	Action   string `json:"action"`
	Expected string `json:"expected"`
	// Supersedes are the contracts of earlier lines that this one replaces, as
	// its SUPERSEDES lines name them.
	Supersedes []string `json:"supersedes,omitempty"`
	// Flow is the flow that this is a step of; empty for a contract by itself.
	Flow string `json:"flow,omitempty"`
}

// String is the contract with the arrow that the specs' format has.
func (c Contract) String() string { return strings.TrimSpace(c.Action + " → " + c.Expected) }

// Flow is a sequence of contracts; state carries from each step to the next.
type Flow struct {
	Line  int        `json:"line"`
	Name  string     `json:"name"`
	Steps []Contract `json:"steps,omitempty"`
	// Supersedes are what this flow replaces, as its SUPERSEDES lines name it:
	// contracts, or an earlier flow as "FLOW: its name".
	Supersedes []string `json:"supersedes,omitempty"`
}

// Warning is something in a spec that a person should look at. It never stops
// a run (ruling A5).
type Warning struct {
	Path string
	Line int // counted from 1; 0 where it concerns the whole file
	Text string
}

// String is one line that is safe to print: "specs/phase2.md:14: …".
func (w Warning) String() string {
	at := w.Path
	if w.Line > 0 {
		at = fmt.Sprintf("%s:%d", w.Path, w.Line)
	}
	return render.Line(at + ": " + w.Text)
}
