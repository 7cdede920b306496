package history_test

import (
	"testing"

	"hone/history"
	"hone/internal/crashtest"
	"hone/journal"
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
	if got := pastOf(t).LastRound(); got != 0 {
		t.Errorf("without events: round %d", got)
	}
	past := pastOf(t, journal.Entry{Type: history.TypeStart, Payload: history.Start{}},
		stepEntry(history.TypeStep, "work", 1, nil),
		journal.Entry{Type: history.TypeRound, Payload: history.State{Round: 1}},
		stepEntry(history.TypeStep, "work", 2, nil),
		journal.Entry{Type: history.TypeUndo, Payload: history.Undone{Round: 0}})
	if past.LastRound() != 2 || past.State().Round != 1 {
		t.Errorf("round %d is the last, and round %d the last that was decided; want 2 and 1", past.LastRound(), past.State().Round)
	}
	if first, last := past.First(), past.Last(); first.Type != history.TypeStart || last.Type != history.TypeUndo || last.Seq != 5 {
		t.Errorf("the first event is %s, the last %d: %s", first.Type, last.Seq, last.Type)
	}
}
