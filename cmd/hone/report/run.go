package report

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"mvdan.cc/sh/v3/syntax"

	"hone"
	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness/runs"
	"hone/history"
	"hone/journal"
)

// Run is a recorded run as it was when it was read.
type Run struct {
	Home    *journal.Home
	ID      string
	Past    *history.Past
	Start   hone.Start
	Working bool // a process works on it
	events  []journal.Event
}

// Find opens the home of a directory's runs, and finds one of them: by its id, by a unique
// prefix of it, or "last". If the run is an attempt of one of them, it opens the home in the
// attempt's copy. The caller must close the home.
func Find(dir, ref string) (home *journal.Home, id string, err error) {
	if home, err = runs.Open(dir); err != nil {
		return nil, "", err
	}
	if id, err = home.FindRun(ref); err == nil {
		return home, id, nil
	}
	defer home.Close()
	if found, none := attempts.Find(home, ref); none == nil {
		return Find(found.Dir, found.Run)
	}
	return nil, "", &hone.UsageError{Why: err.Error(), Err: err, Next: hone.Next{Verb: hone.Runs}}
}

// Open finds a run as [Find] does, and reads it. The caller must close it.
func Open(dir, ref string) (*Run, error) {
	home, id, err := Find(dir, ref)
	if err != nil {
		return nil, err
	}
	r, err := Read(home, id)
	if err != nil {
		home.Close()
	}
	return r, err
}

// Copy opens the home of an attempt; nil if the home no longer has the attempt's run. The caller
// must close it.
func Copy(a history.Attempt) *journal.Home {
	home, err := runs.Open(a.Dir)
	if err != nil {
		return nil
	}
	if found, err := home.FindRun(a.Run); err != nil || found != a.Run {
		home.Close()
		return nil
	}
	return home
}

// Read reads a run.
func Read(home *journal.Home, id string) (*Run, error) {
	working := Working(home, id) // before reading, so that nothing it still writes is missed
	events, err := home.Read(id)
	if err != nil {
		hint := "hone runs" + failure.Elsewhere(home.Workspace())
		if file, unquotable := syntax.Quote(filepath.Join(home.Dir(), "runs", id+".jsonl"), syntax.LangPOSIX); unquotable == nil && errors.As(err, new(*journal.DamageError)) {
			hint = fmt.Sprintf("another program changed the journal; restore the file from a backup, or move it away: mv %[1]s %[1]s.damaged", file)
		}
		return nil, failure.Of(err, cmp.Or(runs.OtherVersion(err), hint))
	}
	start, err := runs.Started(id, events)
	if err != nil {
		return nil, err
	}
	return &Run{Home: home, ID: id, Past: history.Read(events), Start: start, Working: working, events: events}, nil
}

// Close closes the home of the run.
func (r *Run) Close() error { return r.Home.Close() }

// Own returns a function that reports which files the run's loop writes for the user; nil if
// there are none.
func (r *Run) Own() func(path string) bool { return kinds.Own(r.Start, r.Past) }

// Foreign reports whether the user neither recorded all of the run here nor accepted it.
func (r *Run) Foreign() bool { return runs.Foreign(r.Home)(r.ID, r.events) != 0 }

// Incomplete tells the user that the process of the run died while it changed files; empty if
// it did not. Commands that change files complete or roll back such a change first; commands
// that only read leave it.
func (r *Run) Incomplete() string {
	if len(r.Past.Unapplied()) == 0 {
		return ""
	}
	run, at := journal.ShortRun(r.ID), failure.Elsewhere(r.Home.Workspace())
	return "run " + run + " died while it changed files; some may still be old, and .hone~ files may be left; " +
		"to complete the change: hone resume " + run + at + "; to undo it: hone undo " + run + at
}

// Resume returns what the user does to resume the run: the command, or what to know if this
// program does not have the loop.
func (r *Run) Resume() string {
	if _, err := kinds.Of(r.Start); err != nil {
		return fmt.Sprintf("resume it with the program that has the loop %q", r.Start.Loop)
	}
	return "hone resume " + journal.ShortRun(r.ID) + failure.Elsewhere(r.Home.Workspace())
}

// Working reports whether a process works on a run.
func Working(home *journal.Home, id string) bool {
	holder, ok := home.LockedRun()
	return ok && holder == id
}
