package hone

import (
	"cmp"
	"slices"
	"strings"

	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// Changes are what became of the kept files in a round, also by commands and
// agents, as far as it came: from the look at its beginning to the last one,
// and the edits that were made since. What others changed meanwhile is among
// them. Nil where the round has no look on record. Sorted by path.
func Changes(home *journal.Home, events []journal.Event, round int) ([]workspace.Delta, error) {
	var first, last string
	edits := map[string]workspace.Verdict{}
	now := 0 // the round that the events are of
	for _, e := range events {
		if e.Step != nil {
			now = e.Step.Round
		}
		var seen struct {
			Manifest string `json:"manifest"`
			Round    int    `json:"round"`
			history.Applied
		}
		if now != round || e.Type == history.TypeStart || e.Type == history.TypeUndo {
			continue
		}
		if err := e.Decode(&seen); err != nil {
			return nil, err
		}
		if e.Type == history.TypeApply && e.Phase == journal.Record {
			for _, v := range seen.Verdicts {
				edits[v.Path] = v
			}
		}
		if seen.Manifest != "" && (e.Type != history.TypeRound || seen.Round == round) {
			first, last = cmp.Or(first, seen.Manifest), seen.Manifest
			clear(edits)
		}
	}
	return between(home, first, last, edits)
}

// between are the differences of two manifests, with the edits that were made
// after the second.
func between(home *journal.Home, first, last string, edits map[string]workspace.Verdict) ([]workspace.Delta, error) {
	if first == "" {
		return nil, nil
	}
	before, err := manifestIn(home, first)
	if err != nil {
		return nil, err
	}
	now, err := manifestIn(home, last)
	if err != nil {
		return nil, err
	}
	for _, v := range edits {
		now = withEdit(now, v)
	}
	return before.Diff(now), nil
}

// withEdit is a manifest after an edit.
func withEdit(m workspace.Manifest, v workspace.Verdict) workspace.Manifest {
	i, found := slices.BinarySearchFunc(m, v.Path, func(e workspace.Entry, path string) int { return strings.Compare(e.Path, path) })
	was := workspace.Entry{}
	if found {
		was = m[i]
		m = slices.Delete(slices.Clone(m), i, i+1)
	}
	if is := after(was, v); is.Kind != "" {
		m = slices.Insert(slices.Clone(m), i, is)
	}
	return m
}

// manifestIn reads a manifest back.
func manifestIn(home *journal.Home, object string) (workspace.Manifest, error) {
	s, err := workspace.ReadManifest(object, home.Get)
	return s.Manifest, err
}
