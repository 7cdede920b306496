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

	Notice = history.Notice // see [Run.Advise]
)

// The verbs.
const (
	Resume = history.Resume
	Show   = history.Show
	Undo   = history.Undo
	Take   = history.Take
	Accept = history.Accept
	Watch  = history.Watch
	NewRun = history.NewRun
	Doctor = history.Doctor
	Runs   = history.Runs
)

// resumeWith returns the advice to resume the run with another limit.
func resumeWith(flag string, value any) Next {
	return Next{Verb: Resume, Flags: []Flag{{Name: flag, Value: fmt.Sprint(value)}}}
}

// resumeAfter returns the advice to do something and then resume the run.
func resumeAfter(first string) Next { return Next{First: first, Verb: Resume} }

// fixProgram is what the user can do about a check that could not run.
const fixProgram = "install or fix what the check runs"

// fixCheck returns the advice to make the check run and then resume the run
// with flags. The command itself cannot change in a resumed run.
func fixCheck(flags []Flag) Next {
	return Next{First: fixProgram, Verb: Resume, Flags: flags,
		Or: &Next{First: "choose another check", Verb: NewRun, Flags: []Flag{{Name: "check", Value: "COMMAND"}}}}
}
