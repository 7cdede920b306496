// Package failure says how a command of hone fails: what happened, what to type next, and
// the exit status. An error is explained by what caused it: a [hone.Stop], a
// [hone.UsageError] or an [Error], however deep it is wrapped. What the engine returns as
// data, such as a [hone.Next], becomes a command line here.
package failure

import (
	"cmp"
	"errors"
	"fmt"

	"hone"
	"hone/internal/git"
	"hone/internal/transient"
)

// Usage returns an error about a command line or a configuration, with what to type
// next.
func Usage(why, hint string) error { return &hone.UsageError{Why: why, Next: hone.Next{First: hint}} }

// UsageOf is Usage for an error that says what is wrong with what the user typed or wrote, unless
// it may pass.
func UsageOf(err error, hint string) error {
	return &hone.UsageError{Why: err.Error(), Next: hone.Next{First: hint}, Err: err}
}

// Error says why a command failed, and what to type next.
type Error struct {
	Kind hone.Kind
	Why  string
	Hint string // may be empty
	Err  error  // the cause; may be nil
	// Each says what is wrong with each of several things, such as files; it is said first.
	Each []string
}

func (f *Error) Error() string {
	if f.Err == nil {
		return f.Why
	}
	return fmt.Sprintf("%s: %v", f.Why, f.Err)
}

func (f *Error) Unwrap() error { return f.Err }

// Of returns err as a failure of the environment, such as a full disk. hint may be empty.
func Of(err error, hint string) error {
	return &Error{Kind: hone.KindFailed, Why: err.Error(), Hint: hint}
}

// Explain returns err with what to type next. ok means that err itself determines how the
// program ends; if it does not, err is a failure of the environment. at is empty, or the flag
// -C for the commands in the hint.
func Explain(err error, at string) (f *Error, ok bool) {
	var stop *hone.Stop
	var usage *hone.UsageError
	var foreign *git.ForeignError
	var own *Error
	var hinter interface{ Hint() string }
	switch {
	case errors.As(err, &stop):
		return &Error{Kind: stop.Kind, Why: stop.Error(), Hint: NextLine(stop.Next, "last"+at)}, true
	case transient.Is(err):
		return &Error{Kind: hone.KindFailed, Why: err.Error(), Hint: cmp.Or(transient.Remedy(err), "fix this") + ", then try again"}, true
	case errors.As(err, &usage):
		return &Error{Kind: hone.KindUsage, Why: usage.Why, Hint: NextLine(usage.Next, "last"+at)}, true
	case errors.As(err, &foreign):
		return &Error{Kind: hone.KindUsage, Why: foreign.Error(), Hint: foreign.Advice}, true
	case errors.As(err, &own):
		f := *own
		return &f, true
	case errors.As(err, &hinter):
		return &Error{Kind: hone.KindFailed, Why: err.Error(), Hint: hinter.Hint()}, false
	}
	return &Error{Kind: hone.KindFailed, Why: err.Error()}, false
}

// ExitStatus returns the exit status for the way that a run ended. Users'
// scripts depend on these numbers.
func ExitStatus(kind hone.Kind) int {
	switch kind {
	case hone.KindDone:
		return 0
	case hone.KindRounds, hone.KindStuck, hone.KindUnreadable, Differs:
		return 1
	case hone.KindUsage, hone.KindPrompt:
		return 2
	case hone.KindBudget, hone.KindContext:
		return 3
	case hone.KindBlocked:
		return 4
	case hone.KindInterrupted:
		return 130
	}
	return 5 // hone.KindFailed
}

// Differs is the end of a replay that differs from the recorded run.
const Differs hone.Kind = "differs"
