package story_test

import (
	"fmt"
	"strings"
	"testing"

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
