package history

import (
	"cmp"
	"slices"
	"strings"

	"hone/workspace"
)

// Changes is how a round changed the kept files, also by commands and agents: the
// difference between the tree when the round opened and the newest one, with the
// edits since. It includes what was changed outside the run meanwhile. It is nil
// if the round did not open. Sorted by path. get reads an object.
func (p *Past) Changes(round int, get Get) ([]workspace.Delta, error) {
	var first, last string
	edits := map[string]workspace.Verdict{}
	current := 0 // round of the event
	for _, e := range p.Events() {
		if e.Step != nil {
			current = e.Step.Round
		}
		if current != round {
			continue
		}
		manifest := e.Manifest()
		switch v := e.Payload.(type) {
		case Unreadable:
			return nil, v.Err
		case Undone:
			continue
		case State:
			if v.Round != round {
				continue
			}
		case Applied:
			for _, edit := range v.Verdicts {
				edits[edit.Path] = edit
			}
		}
		if manifest != "" {
			first, last = cmp.Or(first, manifest), manifest
			clear(edits)
		}
	}
	return difference(first, last, edits, get)
}

// difference is how the second manifest, with edits made after it, differs from
// the first.
func difference(first, last string, edits map[string]workspace.Verdict, get Get) ([]workspace.Delta, error) {
	if first == "" {
		return nil, nil
	}
	before, err := ReadManifest(first, get)
	if err != nil {
		return nil, err
	}
	now, err := ReadManifest(last, get)
	if err != nil {
		return nil, err
	}
	for _, edit := range edits {
		now = withEdit(now, edit)
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
	if e := EntryAfter(was, v); e.Kind != "" {
		m = slices.Insert(slices.Clone(m), i, e)
	}
	return m
}
