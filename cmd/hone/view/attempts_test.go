package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/cmd/hone/page"
	"hone/history"
)

// TestAttempts: an attempt whose journal is gone shows what the run of the attempts knows.
func TestAttempts(t *testing.T) {
	t.Parallel()
	var events []history.Event
	record := func(a history.Attempt) { events = append(events, history.Event{Payload: a}) }
	left := func(n int) *int { return &n }
	record(history.Attempt{Number: 1, Run: "2026-a", Model: "script/x/y", Rounds: 1, Findings: left(2), Tokens: 1500})
	record(history.Attempt{Number: 2, Run: "2026-b", Model: "m"})
	record(history.Attempt{Number: 1, Run: "2026-a", Model: "script/x/y", Rounds: 2, Findings: left(0), Tokens: 2500, Result: history.KindDone, Why: "why\nmore", Applied: true})
	none := func(history.Attempt) *page.Run { return nil }
	got := attemptsOf(events, true, none)
	want := []page.Attempt{
		{Number: 1, Applied: true, Why: "why", Run: page.Run{ID: "a", Mark: "✓", Result: "done", Model: "script/y", Tokens: "2.5k",
			Ticks: []page.Tick{{Mark: "✗", Title: "2 findings"}, {Mark: "✓", Title: "0 findings"}}, Points: []page.Point{{Round: 1, Left: 2}, {Round: 2, Left: 0}}}},
		{Number: 2, Run: page.Run{ID: "b", Mark: "▸", Result: "running", Model: "m", Tokens: "0"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := attemptsOf(events, false, none)[1]; got.Result != "died" {
		t.Error(got.Result)
	}
	row := page.Run{ID: "a", Cost: "$1", Link: "/run/x"}
	if got := attemptsOf(events, true, func(history.Attempt) *page.Run { return &row })[0]; got.Cost != "$1" || got.Link != "/run/x" || !got.Applied {
		t.Error(got)
	}
}
