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
	// Path is the file, relative to the project's root: "specs/phase2.md".
	Path string `json:"path"`
	// Text is the file as it was read, without a byte order mark.
	Text string `json:"text"`
	// Title is the first heading without "Phase 2:"; empty if there is none.
	Title string `json:"title,omitempty"`
	// Contracts are the contracts outside flows, in the order of their lines.
	Contracts []Contract `json:"contracts,omitempty"`
	// Flows are the sequences of contracts whose order matters.
	Flows []Flow `json:"flows,omitempty"`
	// Strays are files that are not read although their names resemble a spec's,
	// such as "specs/Phase2.md". Each belongs to the spec with the next lower
	// number.
	Strays []string `json:"strays,omitempty"`
}

// Contract is one action and its one expected result.
type Contract struct {
	// Phase is the number of the spec that states it.
	Phase int `json:"phase"`
	// Line is counted from 1.
	Line int `json:"line"`
	// Action and Expected are the texts left and right of the arrow, with white
	// space collapsed. One of them is empty if the spec states only the other.
	Action   string `json:"action"`
	Expected string `json:"expected"`
	// Supersedes are the earlier contracts that this one replaces, as its
	// SUPERSEDES lines name them.
	Supersedes []string `json:"supersedes,omitempty"`
	// Flow is the name of the flow that contains this step; empty for a contract
	// outside flows.
	Flow string `json:"flow,omitempty"`
}

// String returns the contract as a line of a spec, with an arrow.
func (c Contract) String() string { return strings.TrimSpace(c.Action + " → " + c.Expected) }

// Flow is a sequence of contracts; state carries from each step to the next.
type Flow struct {
	Line  int        `json:"line"`
	Name  string     `json:"name"`
	Steps []Contract `json:"steps,omitempty"`
	// Supersedes are the contracts that this flow replaces, as its SUPERSEDES
	// lines name them, or earlier flows as "FLOW: NAME".
	Supersedes []string `json:"supersedes,omitempty"`
}

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
