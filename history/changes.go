package history

import (
	"maps"
	"slices"

	"hone/workspace"
)

// Changes returns how a round changed the files, including by commands and
// agents, sorted by path. It compares the tree when the round opened with the
// newest one of the round, including the edits since. Files that only the user
// changed are left out. The result is nil if the round did not open. get reads an
// object.
func (p *Past) Changes(round int, get Get) ([]workspace.Delta, error) {
	return p.ofRound(round, get, false)
}

// ChangesSince is [Past.Changes] without what the user has seen: of a file that was changed
// outside the run during the round it returns what changed since (ruling G16).
func (p *Past) ChangesSince(round int, get Get) ([]workspace.Delta, error) {
	return p.ofRound(round, get, true)
}

func (p *Past) ofRound(round int, get Get, usersFirst bool) ([]workspace.Delta, error) {
	var events []Event
	current := 0 // round of the event
	for _, e := range p.Events() {
		if e.Step != nil {
			current = e.Step.Round
		}
		if current != round {
			continue
		}
		switch v := e.Payload.(type) {
		case Unreadable:
			return nil, v.Err
		case Undone:
			continue
		case State:
			if v.Round != round {
				continue
			}
		}
		events = append(events, e)
	}
	return changes(events, get, usersFirst)
}

// AllChanges returns how the files differ from those that the run found, as far as
// events tell, sorted by path. Files that only the user changed are left out. The
// result is nil before the first round. What a command or a check changed that did not
// end is not known. get reads an object.
func (p *Past) AllChanges(get Get) ([]workspace.Delta, error) {
	events := p.Events()
	first := slices.IndexFunc(events, func(e Event) bool { _, ok := e.Payload.(Opened); return ok })
	if first < 0 {
		return nil, nil
	}
	return changes(events[first:], get, false)
}

func changes(events []Event, get Get, usersFirst bool) ([]workspace.Delta, error) {
	t := newTracker(get, ofEnd)
	for _, e := range events {
		if err := t.add(e); err != nil {
			return nil, err
		}
	}
	var deltas []workspace.Delta
	for _, p := range slices.Sorted(maps.Keys(t.traces)) {
		one, from := t.traces[p], 0
		if usersFirst {
			from = one.users
		}
		if one.ours {
			deltas = append(deltas, manifestOf(one.states[from]).Diff(manifestOf(t.state(p)))...)
		}
	}
	return deltas, nil
}

func manifestOf(e workspace.Entry) workspace.Manifest {
	if e.Kind == "" {
		return nil
	}
	return workspace.Manifest{e}
}
