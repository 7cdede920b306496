// Package check says what is wrong with a tree. The engine asks it when
// nothing else stands in the way, and its answer is the last word.
package check

import (
	"context"
	"slices"
)

// SourceReply is where the findings come from of a reply that could not be
// used: nothing was judged.
const SourceReply = "reply"

// Finding is one thing that is wrong, worded for the model's next round.
type Finding struct {
	// Source says who found it: "checker", "check", "reply", "apply" …
	Source string `json:"source"`
	// File is relative to the tree's root; empty when it concerns the whole.
	File string `json:"file,omitempty"`
	Text string `json:"text"`
	// Advisory findings are told to the model and to the person, and never
	// keep a loop going.
	Advisory bool `json:"advisory,omitempty"`
	// Broken says that the check itself could not run, so that nothing is
	// known of the tree. It always blocks.
	Broken bool `json:"broken,omitempty"`
	// Blocker says that only a person can take it out of the way (ruling S5).
	// It always blocks.
	Blocker bool `json:"blocker,omitempty"`
}

// Func looks at the tree and says what is wrong with it; no finding means
// that it is right. A check that fails to run is a finding too, with Broken
// set (ruling B9). Its error means that the question was not asked, as when
// the context was cancelled.
type Func func(ctx context.Context) ([]Finding, error)

// Blocks reports whether the finding keeps a loop going.
func (f Finding) Blocks() bool { return !f.Advisory || f.Broken || f.Blocker }

// Blocking reports whether any of the findings keeps a loop going.
func Blocking(findings []Finding) bool { return slices.ContainsFunc(findings, Finding.Blocks) }
