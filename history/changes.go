package history

import (
	"cmp"
	"slices"
	"strings"

	"hone/workspace"
)

// Changes returns how a round changed the files, including by commands and
// agents, sorted by path. It compares the tree when the round opened with the
// newest one of the round, including the edits since. The result also has what
// was changed outside the run in that time. It is nil if the round did not
// open. get reads an object.
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
	return manifestDeltas(first, last, edits, get)
}

// AllChanges returns how the files differ from those that the run found, as far as
// events tell, sorted by path. The result also has what was changed outside the run in
// that time. It is nil before the first round. get reads an object.
func (p *Past) AllChanges(get Get) ([]workspace.Delta, error) {
	opened, ok := p.Opened()
	if !ok {
		return nil, nil
	}
	last, written := p.Expected()
	if last == "" { // a command or the check did not end: what it changed is not known
		last = newestManifest(p.Events())
	}
	edits := map[string]workspace.Verdict{}
	for _, v := range p.Edits() {
		if _, ok := written[v.Path]; ok {
			edits[v.Path] = v
		}
	}
	return manifestDeltas(opened.Manifest, last, edits, get)
}

// newestManifest returns the object of the last manifest that an event names.
func newestManifest(events []Event) string {
	for _, e := range slices.Backward(events) {
		if m := e.Manifest(); m != "" {
			return m
		}
	}
	return ""
}

// manifestDeltas returns how the last manifest, with later edits, differs from
// the first.
func manifestDeltas(first, last string, edits map[string]workspace.Verdict, get Get) ([]workspace.Delta, error) {
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
		now = afterEdit(now, edit)
	}
	return before.Diff(now), nil
}

// afterEdit returns a manifest after an edit.
func afterEdit(m workspace.Manifest, v workspace.Verdict) workspace.Manifest {
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
