package hone

import "hone/history"

// What the user can do after a run has ended; see [history.Next].
type (
	Next = history.Next
	Verb = history.Verb
	Flag = history.Flag

	Notice = history.Notice // see [Run.Advise]
	Stop   = history.Stop   // an error with which a run ends before it is done
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

const fixProgram = "install or fix what the check runs"

// The command itself cannot change in a resumed run.
func fixCheck(flags []Flag) Next {
	return Next{First: fixProgram, Verb: Resume, Flags: flags,
		Or: &Next{First: "choose another check", Verb: NewRun, Flags: []Flag{{Name: "check", Value: "COMMAND"}}}}
}
