package story_test

import (
	"testing"
	"time"

	"hone/history"
	"hone/journal"
	"hone/story"
)

// Outages of a minute or more are one line, also if the run ended, died or was resumed
// during one.
func TestOutagesText(t *testing.T) {
	start := time.Date(2026, 3, 1, 23, 50, 0, 0, time.Local)
	at := func(minute int, payload any) history.Event {
		return history.Event{Event: journal.Event{Time: start.Add(time.Duration(minute) * time.Minute)}, Payload: payload}
	}
	failed, replied := history.Retried{Error: "cut: EOF"}, history.Replied{}
	waits := func(minutes int64) history.Retried { return history.Retried{Error: "cut: EOF", Wait: minutes * 60_000} }
	for _, tt := range []struct {
		name   string
		events []history.Event
		want   string
	}{
		{"none", []history.Event{at(0, replied), at(9, replied)}, ""},
		{"a short one", []history.Event{at(0, failed), at(0, failed), at(0, replied)}, ""},
		{"one", []history.Event{at(0, failed), at(1, waits(19)), at(25, replied)}, "outage from 23:50 to 00:10 (20m00s, 2 attempts): cut: EOF"},
		{"a short one before a slow reply", []history.Event{at(0, failed), at(20, replied)}, ""},
		{"one that lasts", []history.Event{at(0, failed)}, "outage since 23:50 (30m00s, 1 attempt): cut: EOF"},
		{"until the end", []history.Event{at(0, failed), at(2, history.End{})}, "outage from 23:50 to 23:52 (2m00s, 1 attempt): cut: EOF"},
		{"until the run died", []history.Event{at(0, failed), at(3, waits(4)), at(29, history.Resumed{}), at(29, replied)}, "outage from 23:50 to 23:53 (3m00s, 2 attempts): cut: EOF"},
		{"two", []history.Event{at(0, waits(2)), at(2, replied), at(4, waits(5)), at(9, replied)},
			"2 outages; longest outage from 23:54 to 23:59 (5m00s, 1 attempt): cut: EOF"},
	} {
		if got := story.OutagesText(tt.events, start.Add(30*time.Minute)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
