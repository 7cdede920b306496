package main

import (
	"hone/cmd/hone/recorded"
	"hone/journal"
)

// sayIncomplete tells the user if the process of a run died while it changed files.
// Commands that change files complete or roll back such a change first; commands that only
// read leave it.
func (a *app) sayIncomplete(r *recorded.Run) {
	if len(r.Past.Unapplied()) > 0 {
		run := journal.ShortRun(r.ID)
		a.sayNotes([]string{"run " + run + " died while it changed files; some may still be old, and .hone~ files may be left; " +
			"to complete the change: hone resume " + run + r.At() + "; to undo it: hone undo " + run + r.At()})
	}
}

// sayLastIncomplete is sayIncomplete for the last run of a directory, if it has one.
func (a *app) sayLastIncomplete(dir string) {
	r, err := recorded.Open(dir, "last")
	if err != nil {
		return
	}
	defer r.Close()
	if !r.Working {
		a.sayIncomplete(r)
	}
}
