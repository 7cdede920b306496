package crashtest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"hone"
	"hone/journal"
	"hone/workspace"
)

// Live acts as one process on a workspace: it opens everything, settles the
// previous run, starts or resumes the only run, and closes everything. set
// completes the run, which has its tree, its journal and a short retry, and
// returns its round.
func Live(t testing.TB, dir string, list workspace.Lister, o journal.Observer, set func(*hone.Run) hone.Round) hone.End {
	t.Helper()
	ctx := context.Background()
	home := must(journal.OpenHome(dir))
	defer home.Close()
	lock := lockHome(home)
	defer lock.Unlock()
	tree := must(workspace.Open(dir, workspace.Options{List: list}))
	defer tree.Close()
	must(0, hone.Settle(ctx, home, tree, lock.Last))
	j := openJournal(home)
	defer j.Close()
	must(0, lock.Say(j.Run()))
	r := &hone.Run{Tree: tree, Journal: j, Retry: hone.Retry{First: time.Millisecond}}
	round := set(r)
	j.Observe(o)
	if len(j.Events()) == 0 {
		must(0, r.Start(hone.Start{Loop: "test", Settings: json.RawMessage("{}")}))
	}
	end, err := r.Do(ctx, round)
	if err != nil {
		t.Fatal(err)
	}
	return end
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
	return must(home.Lock())
}

// openJournal opens the existing run, or creates a new one.
func openJournal(home *journal.Home) *journal.Journal {
	runs := must(home.Runs())
	if len(runs) == 0 {
		return must(home.Create(home.NewRun()))
	}
	return must(home.Open(runs[0]))
}

// must panics if an error occurs that only a wrong test can cause. It does not
// fail the test, so that the panic of a killed process passes through.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
