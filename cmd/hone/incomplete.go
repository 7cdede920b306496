package main

import (
	"hone/cmd/hone/failure"
	"hone/history"
	"hone/journal"
)

// sayIncomplete tells the user if the process of a run died while it changed files.
// Commands that change files complete or roll back such a change first; commands that only
// read leave it. at is empty, or the flag -C with the directory.
func (a *app) sayIncomplete(run, at string, past *history.Past) {
	if len(past.Unapplied()) > 0 {
		run = journal.ShortRun(run)
		a.sayNotes([]string{"run " + run + " died while it changed files; some may still be old, and .hone~ files may be left; " +
			"to complete the change: hone resume " + run + at + "; to undo it: hone undo " + run + at})
	}
}

// sayLastIncomplete is sayIncomplete for the last run of a directory, if it has one.
func (a *app) sayLastIncomplete(dir string) {
	home, run, err := openRun(dir, "last")
	if err != nil {
		return
	}
	defer home.Close()
	if works(home, run) {
		return
	}
	if past, _, err := readRun(home, run); err == nil {
		a.sayIncomplete(run, failure.Elsewhere(home.Workspace()), past)
	}
}
