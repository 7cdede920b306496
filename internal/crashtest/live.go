package crashtest

import (
	"testing"
	"time"

	"hone"
	"hone/journal"
	"hone/workspace"
)

// Live is [Process.End] of a process that starts the workspace's only run or
// resumes it.
func Live(t testing.TB, dir string, list workspace.Lister, o journal.Observer, setup func(*hone.Run) hone.Round) hone.End {
	t.Helper()
	return Process{Setup: setup, List: list, Observer: o}.End(t, dir)
}

// lockHome locks the workspace. A child process that another test is just
// starting briefly inherits all open files, so a lock that was released can
// still appear held.
func lockHome(home *journal.Home) *journal.Lock {
	for range 500 {
		if lock, err := home.Lock(); err == nil {
			return lock
		}
		time.Sleep(10 * time.Millisecond)
	}
	return Must(home.Lock())
}

// openJournal opens the journal of the last run, or that of a new one.
func openJournal(home *journal.Home, isNew bool) *journal.Journal {
	runs := Must(home.Runs())
	if len(runs) == 0 || isNew {
		return Must(home.Create(home.NewRun()))
	}
	return Must(home.Open(runs[len(runs)-1]))
}
