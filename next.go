package hone

import (
	"fmt"

	"hone/history"
)

// What the user can do after a run has ended; see [history.Next].
type (
	Next = history.Next
	Verb = history.Verb
	Flag = history.Flag
)

// The verbs.
const (
	Resume = history.Resume
	Show   = history.Show
	Undo   = history.Undo
	NewRun = history.NewRun
	Doctor = history.Doctor
)

// resumeWith returns the advice to resume the run with another limit.
func resumeWith(flag string, value any) Next {
	return Next{Verb: Resume, Flags: []Flag{{Name: flag, Value: fmt.Sprint(value)}}}
}

// resumeAfter returns the advice to do something and then resume the run.
func resumeAfter(first string) Next { return Next{First: first, Verb: Resume} }
