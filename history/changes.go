package history

import (
	"cmp"
	"slices"
	"strings"

	"hone/workspace"
)

// Changes returns how a round changed the files, including by commands and
// agents, sorted by path. It compares the tree when the round opened with the
// newest one of the round, including the edits since. Files that only the user
// changed are left out. The result is nil if the round did not open. get reads an
// object.
func (p *Past) Changes(round int, get Get) ([]workspace.Delta, error) {
	var first, last string
	edits := map[string]workspace.Verdict{}
	var events []Event
	current := 0 // round of the event
	for _, e := range p.Events() {
		if e.Step != nil {
			current = e.Step.Round
		}
		if current != round {
			continue
		}
		events = append(events, e)
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
	deltas, err := manifestDeltas(first, last, edits, get)
	if err != nil {
		return nil, err
	}
	return withoutUsers(deltas, events, get)
}

// AllChanges returns how the files differ from those that the run found, as far as
// events tell, sorted by path. Files that only the user changed are left out. The
// result is nil before the first round. get reads an object.
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
	deltas, err := manifestDeltas(opened.Manifest, last, edits, get)
	if err != nil {
		return nil, err
	}
	return withoutUsers(deltas, p.Events(), get)
}

// withoutUsers returns the deltas without those of files that, according to the
// events, only the user changed.
func withoutUsers(deltas []workspace.Delta, events []Event, get Get) ([]workspace.Delta, error) {
	users := map[string]bool{}
	for _, e := range events {
		if o, ok := e.Payload.(Outside); ok {
			addAll(users, o.Paths)
		}
	}
	if len(users) == 0 {
		return deltas, nil
	}
	tree := workspace.Series{Get: get}
	for _, e := range events {
		if applied, ok := e.Payload.(Applied); ok {
			for _, v := range applied.Verdicts {
				delete(users, v.Path)
			}
		}
		if err := removeOthers(users, &tree, e); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(deltas, func(d workspace.Delta) bool { return users[d.Path] }), nil
}

// removeOthers moves a tree to the manifest of an event, and removes from users the paths
// that not only the user has changed since the manifest before.
func removeOthers(users map[string]bool, tree *workspace.Series, e Event) error {
	first, object := tree.Name() == "", e.Manifest()
	if object == "" || object == tree.Name() {
		return nil
	}
	deltas, err := tree.MoveTo(object)
	if err != nil || first {
		return err
	}
	outside := map[string]bool{}
	if o, ok := e.Payload.(Outside); ok {
		addAll(outside, o.Paths)
	}
	for _, d := range deltas {
		if !outside[d.Path] {
			delete(users, d.Path)
		}
	}
	return nil
}

func addAll(set map[string]bool, paths []string) {
	for _, p := range paths {
		set[p] = true
	}
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
	tree := workspace.Series{Get: get}
	if _, err := tree.MoveTo(first); err != nil {
		return nil, err
	}
	before := tree.Manifest()
	if _, err := tree.MoveTo(last); err != nil {
		return nil, err
	}
	now := tree.Manifest()
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
