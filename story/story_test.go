package story_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hone/history"
	"hone/journal"
	"hone/story"
	"hone/workspace"
)

// What a command changed costs the manifests before and after it, and nothing if these are one.
func TestDeltasReadTwoManifests(t *testing.T) {
	var m workspace.Manifest
	for i := range 100 {
		m = append(m, workspace.Entry{Path: fmt.Sprintf("f%02d", i), Kind: workspace.Regular, Mode: 0o644, Digest: strings.Repeat("0", 64)})
	}
	objects := map[string][]byte{}
	put := func(text []byte) (string, error) {
		name := workspace.Digest(text)
		objects[name] = text
		return name, nil
	}
	one, err := workspace.Stored{}.StoreNext(m, put)
	if err != nil {
		t.Fatal(err)
	}
	two, err := one.StoreNext(m[:99], put)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	f := story.New(story.Options{Get: func(object string) ([]byte, error) { read += len(objects[object]); return objects[object], nil }})
	for _, c := range []struct{ before, after, changed string }{{one.Name, one.Name, ""}, {one.Name, two.Name, "f99"}} {
		read = 0
		f.Add(inRound(1, 1, history.ToolCall{Command: true, Before: history.Before{Manifest: c.before}}))
		said := f.Add(inRound(1, 2, history.Snapshot{Manifest: c.after}))
		var changed string
		for _, line := range said {
			changed += strings.TrimPrefix(line.Text, "    deleted ")
		}
		want := 0
		if c.changed != "" {
			want = len(objects[one.Name]) + len(objects[two.Name])
		}
		if changed != c.changed || read != want {
			t.Errorf("changed %q, want %q; read %d bytes, want %d", changed, c.changed, read, want)
		}
	}
}

// inRound returns an event of a round, at so many milliseconds of active time.
func inRound(round int, active int64, payload any) history.Event {
	return history.Event{Event: journal.Event{Step: &journal.Identity{Round: round, Name: "x"}, Active: active}, Payload: payload}
}

// What a round had changed when its tree was restored is not a change of the round, which begins again.
func TestRoundWhoseTreeWasRestored(t *testing.T) {
	changed := func(after string) history.Changed {
		return history.Changed{Verdict: workspace.Verdict{Path: "a", Ruling: workspace.Allow, Before: workspace.Image{Digest: "0"}, After: workspace.Image{Digest: after}}}
	}
	for _, ended := range []bool{false, true} {
		f := story.New(story.Options{Silent: true})
		f.Add(inRound(1, 1, changed("1")))
		if ended {
			f.Add(history.Event{Payload: history.End{Kind: history.KindBudget}})
		}
		f.Add(history.Event{Payload: history.Undone{}})
		f.Add(history.Event{Payload: history.Resumed{}})
		f.Add(inRound(1, 2, history.Opened{}))
		if rounds := f.Rounds(true); len(rounds) != 1 || len(rounds[0].Changes()) != 0 {
			t.Errorf("ended %v: %+v", ended, rounds)
		}
	}
}

// TestAttemptWithoutRun: an attempt that was stopped before its run began names no run.
func TestAttemptWithoutRun(t *testing.T) {
	for want, a := range map[string]history.Attempt{
		"attempt 1: not started":   {Number: 1, Model: "m"},
		"attempt 2: run a with m":  {Number: 2, Model: "m", Run: "2026-a"},
		"attempt 3: ✗ failed: why": {Number: 3, Result: history.KindFailed, Why: "why"},
	} {
		if got := story.AttemptText(a, false); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

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
