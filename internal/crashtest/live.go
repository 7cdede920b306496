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

// Live is one life of a process on a workspace: it opens everything afresh,
// settles, goes on with the one run there is or starts it, and closes
// everything. set completes the run, which has its tree, its journal and a
// short retry, and returns its round.
func Live(t testing.TB, dir string, list workspace.Lister, o journal.Observer, set func(*hone.Run) hone.Round) hone.End {
	t.Helper()
	ctx := context.Background()
	home := must(journal.OpenHome(dir))
	defer home.Close()
	lock := locked(home)
	defer lock.Unlock()
	tree := must(workspace.Open(dir, workspace.Options{List: list}))
	defer tree.Close()
	must(0, hone.Settle(ctx, home, tree, lock.Last))
	j := journalOf(home)
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

// locked takes the workspace's lock. A program that another test of this process
// is just starting holds everything that was open for a moment, so that a lock
// which was let go can seem to be held.
func locked(home *journal.Home) *journal.Lock {
	for range 500 {
		if lock, err := home.Lock(); err == nil {
			return lock
		}
		time.Sleep(10 * time.Millisecond)
	}
	return must(home.Lock())
}

// journalOf is the run that is there, or a new one.
func journalOf(home *journal.Home) *journal.Journal {
	runs := must(home.Runs())
	if len(runs) == 0 {
		return must(home.Create(home.NewRun()))
	}
	return must(home.Open(runs[0]))
}

// must is for what can only fail where the test itself is wrong. It panics
// rather than fail the test, so that a killed process's own panic passes.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
