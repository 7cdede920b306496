package history_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/check"
	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
	"hone/model"
)

// pastOf returns the past of a run with these events.
func pastOf(t *testing.T, entries ...journal.Entry) *history.Past {
	t.Helper()
	home := crashtest.Must(journal.OpenHome(t.TempDir()))
	t.Cleanup(func() { home.Close() })
	j := crashtest.Must(home.Create(home.NewRun()))
	t.Cleanup(func() { j.Close() })
	for _, e := range entries {
		crashtest.Must(j.Append(e))
	}
	return history.Follow(j)
}

// stepEntry returns the record of a step.
func stepEntry(what journal.Type, name string, round int, payload any) journal.Entry {
	return journal.Entry{Type: what, Phase: journal.Record, Step: &journal.Identity{Round: round, Name: name}, Payload: payload}
}

func TestLastRound(t *testing.T) {
	if got := pastOf(t).Facts().LastRound; got != 0 {
		t.Errorf("without events: round %d", got)
	}
	past := pastOf(t, journal.Entry{Type: history.TypeStart, Payload: history.Start{}},
		stepEntry(history.TypeStep, "work", 1, nil),
		journal.Entry{Type: history.TypeRound, Payload: history.State{Round: 1}},
		stepEntry(history.TypeStep, "work", 2, nil),
		journal.Entry{Type: history.TypeUndo, Payload: history.Undone{Round: 0}})
	if past.Facts().LastRound != 2 || past.Facts().State.Round != 1 {
		t.Errorf("round %d is the last, and round %d the last that was decided; want 2 and 1", past.Facts().LastRound, past.Facts().State.Round)
	}
	if first, last := past.First(), past.Last(); first.Type != history.TypeStart || last.Type != history.TypeUndo || last.Seq != 5 {
		t.Errorf("the first event is %s, the last %d: %s", first.Type, last.Seq, last.Type)
	}
}

func TestCharged(t *testing.T) {
	cost := 0.25
	reserve := func(role string) journal.Entry {
		return journal.Entry{Type: history.TypeReserve, Payload: history.Reserve{Role: role, Tokens: 1000}}
	}
	commit := func(reserve int64, c history.Commit) journal.Entry {
		c.Reserve = reserve
		return journal.Entry{Type: history.TypeCommit, Payload: c}
	}
	past := pastOf(t, reserve("a"), reserve("b"), reserve("a"), reserve("a"), reserve("a"),
		commit(1, history.Commit{Usage: &model.Usage{Input: 7, Output: 3}, Tokens: 10, Cost: &cost}),
		commit(2, history.Commit{Usage: &model.Usage{Input: 100}, Tokens: 100}),
		commit(3, history.Commit{Usage: &model.Usage{Input: 20}, Tokens: 25, Assumed: 5, Cost: &cost}),
		commit(4, history.Commit{Tokens: 1000})) // assumed in full; the fifth is open
	want := history.Ledger{Tokens: 35, Assumed: 5, Cost: 0.5, Known: model.Usage{Input: 27, Output: 3}}
	if diff := cmp.Diff(want, past.Charged("a")); diff != "" {
		t.Errorf("charged to a (-want +got):\n%s", diff)
	}
	if got := past.Charged("c"); got != (history.Ledger{}) {
		t.Errorf("a role without calls is charged %+v", got)
	}
}

func TestLastCheck(t *testing.T) {
	if pastOf(t).Facts().LastCheck != nil {
		t.Error("a run without events has a check")
	}
	now := pastOf(t, stepEntry(history.TypeCheck, "check", 0, history.Checked{Tree: "before"}),
		stepEntry(history.TypeCheck, "check", 1, history.Checked{Tree: "after"}),
		stepEntry(history.TypeStep, "work", 2, nil)).Facts()
	if now.FirstCheck.Tree != "before" || now.LastCheck.Tree != "after" {
		t.Errorf("the first check left %q, and the last %q", now.FirstCheck.Tree, now.LastCheck.Tree)
	}
}

// The check that counts is the one that passed with the tree that the run was done with, whatever was restored since.
func TestPassed(t *testing.T) {
	checked := func(round int, c history.Checked) journal.Entry {
		return stepEntry(history.TypeCheck, "check", round, c)
	}
	decided := func(s history.State) journal.Entry { return journal.Entry{Type: history.TypeRound, Payload: s} }
	red := []check.Finding{{Text: "wrong"}}
	for name, c := range map[string]struct {
		entries []journal.Entry
		want    int64 // the number of the record; 0 if none counts
	}{
		"no check":           {nil, 0},
		"at once":            {[]journal.Entry{checked(0, history.Checked{Tree: "a"}), decided(history.State{Decision: history.Done, Tree: "a"})}, 1},
		"from a file":        {[]journal.Entry{checked(0, history.Checked{Tree: "a", From: "x.log"}), decided(history.State{Decision: history.Done, Tree: "a"})}, 0},
		"still red":          {[]journal.Entry{checked(1, history.Checked{Tree: "a", Findings: red}), decided(history.State{Round: 1, Decision: history.StopNow, Tree: "a"})}, 0},
		"not decided":        {[]journal.Entry{checked(1, history.Checked{Tree: "a"})}, 0},
		"undone":             {[]journal.Entry{checked(1, history.Checked{Tree: "a"}), decided(history.State{Round: 1, Decision: history.Done, Tree: "a"}), {Type: history.TypeUndo, Payload: history.Undone{Tree: "b"}}}, 1},
		"a worse candidate":  {[]journal.Entry{checked(1, history.Checked{Tree: "a"}), checked(2, history.Checked{Tree: "b"}), decided(history.State{Round: 2, Decision: history.Done, Tree: "a"})}, 1},
		"allowed by a user":  {[]journal.Entry{checked(1, history.Checked{Tree: "a"}), checked(2, history.Checked{Tree: "a", Findings: red}), decided(history.State{Round: 1, Decision: history.Done, Tree: "a"})}, 1},
		"another tree since": {[]journal.Entry{checked(1, history.Checked{Tree: "a"}), decided(history.State{Round: 1, Decision: history.Done, Tree: "b"})}, 0},
	} {
		if got, ok := pastOf(t, c.entries...).Passed(); got.Seq != c.want || ok != (c.want > 0) {
			t.Errorf("%s: the record %d, %v", name, got.Seq, ok)
		}
	}
}

func TestModelChanges(t *testing.T) {
	over := history.FailedOver{Round: 1, From: "p/a", To: "p/b", Error: "gone"}
	up := history.Escalated{Round: 3, From: "p/b", To: "p/c", After: 2}
	past := pastOf(t, journal.Entry{Type: history.TypeFailover, Payload: over}, journal.Entry{Type: history.TypeEscalate, Payload: up})
	if diff := cmp.Diff([]string{over.String(), up.String()}, past.Facts().ModelChanges); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// The records of several steps are in the order of the journal.
func TestRecords(t *testing.T) {
	past := pastOf(t, stepEntry(history.TypeStep, "b", 1, nil), stepEntry(history.TypeStep, "a", 1, nil),
		stepEntry(history.TypeStep, "c", 1, nil), stepEntry(history.TypeStep, "b", 2, nil))
	var got []int64
	for _, e := range past.Records("a", "b") {
		got = append(got, e.Seq)
	}
	if diff := cmp.Diff([]int64{1, 2, 4}, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestOf(t *testing.T) {
	past := pastOf(t, stepEntry(history.TypeCheck, "check", 1, history.Checked{Tree: "a"}), stepEntry(history.TypeStep, "work", 1, nil),
		stepEntry(history.TypeCheck, "check", 2, history.Checked{Tree: "b"}), stepEntry(history.TypeCheck, "check", 3, history.Checked{Tree: "c"}))
	var got []string
	for e, c := range history.Of[history.Checked](past.Events()) {
		if got = append(got, fmt.Sprintf("%d%s", e.Seq, c.Tree)); len(got) == 2 {
			break
		}
	}
	if diff := cmp.Diff([]string{"1a", "3b"}, got); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
}
