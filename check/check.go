// Package check finds out what is wrong with a tree.
//
// A [Func] is one check: [Command] runs a command that must exit 0, [Build] a
// build script, [Bork] a correctness checker; [All] joins several. Each returns
// [Finding]s, written for a model. A run is done only if its check returns no
// blocking finding. [SplitFlaky] separates flaky findings from the others.
//
// A Func runs its program with the [sandbox.Runner] that the caller provides,
// which decides what the program may do.
package check

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SourceReply is the source of findings about a reply that could not be used.
// Nothing in the tree was judged.
const SourceReply = "reply"

// Finding is one problem, worded for the model's next round.
type Finding struct {
	// Source is where the finding comes from: "checker", "check", "reply",
	// "apply" …
	Source string `json:"source"`
	// File is relative to the tree's root; empty if the finding concerns the
	// complete tree.
	File string `json:"file,omitempty"`
	// Line is the line in File, counted from 1; 0 if it is not known.
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
	// ID is what the finding is recognized by in a later run of the same check: it
	// does not change with times, addresses, line numbers or the order of findings.
	// If it is empty, findings are compared by their text ([Key]).
	ID string `json:"id,omitempty"`
	// Partial says that the check did not get to its end because of this problem, such
	// as a test program that does not compile: how many more there are is not known.
	Partial bool `json:"partial,omitempty"`
	// Advisory findings are sent to the model and shown to the user, but never
	// keep a loop going.
	Advisory bool `json:"advisory,omitempty"`
	// Broken says that the check itself could not run, so that the state of the
	// tree is unknown. It always blocks.
	Broken bool `json:"broken,omitempty"`
	// Blocker says that only the user can solve the problem (ruling S5). It blocks unless
	// it is Advisory: then it stands, and the check decides all the same.
	Blocker bool `json:"blocker,omitempty"`
	// More is how many findings this one stands for, which were omitted ([Bound]); 0
	// for any other. Digest is the same for the same omitted findings, in any order.
	More   int    `json:"more,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// Reader finds findings in the output of a program, such as a test runner or a
// linter. The exit status decides whether the check passed; a Reader only words why
// it did not.
//
// It returns nil if the output has no findings or is of another format. The output may be cut
// off at any place. exit is the program's exit status, -1 if it was stopped by a signal or by
// its time limit. A nil Reader finds nothing.
type Reader func(out string, exit int) []Finding

func (r Reader) read(out string, exit int) []Finding {
	if r == nil {
		return nil
	}
	return r(out, exit)
}

// Unusable returns blocking findings about a reply of which nothing was applied, one
// for each cause. Their source is [SourceReply], so that the limit of unusable
// replies in a row counts the round that returns them.
func Unusable(causes ...string) []Finding {
	var found []Finding
	for _, cause := range causes {
		found = append(found, Finding{Source: SourceReply, Text: "Your last reply could not be used, and no part of it was applied: " + cause})
	}
	return found
}

// Func checks the tree and returns what is wrong with it. No findings mean that
// the tree is right. A check that fails to run returns a finding with Broken
// set (ruling B9). An error means that the check has no result, for example
// because the context was canceled.
type Func func(ctx context.Context) ([]Finding, error)

// Place returns the finding's file and line, as in main.go:7; empty if it has no file.
func (f Finding) Place() string {
	if f.File == "" || f.Line == 0 {
		return f.File
	}
	return f.File + ":" + strconv.Itoa(f.Line)
}

// Blocks reports whether the finding keeps a loop going.
func (f Finding) Blocks() bool { return !f.Advisory || f.Broken }

// Blocking reports whether any of the findings keeps a loop going.
func Blocking(findings []Finding) bool { return slices.ContainsFunc(findings, Finding.Blocks) }

// BlockingOf returns the findings that keep a loop going, in a list of their own.
func BlockingOf(findings []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return !f.Blocks() })
}

// notUTF8 replaces a text of a checker's that is not UTF-8 (ruling B11).
const notUTF8 = "<non-UTF8 output>"

// MaxText is the length in bytes above which the middle of an output that no [Reader]
// understands is omitted from a finding: that of a command which a model runs is cut there, too.
const MaxText = 16 << 10

// tailText is how many bytes of standard error are shown of a check that could
// not run.
const tailText = 8 << 10

func section(title, text string) string {
	if strings.TrimSpace(text) == "" {
		return fmt.Sprintf("\n%s: (empty)\n", title)
	}
	return fmt.Sprintf("\n%s:\n\n%s\n", title, strings.Trim(text, "\n"))
}

func applyRedact(redact func(string) string, text string) string {
	if redact == nil {
		return text
	}
	return redact(text)
}
