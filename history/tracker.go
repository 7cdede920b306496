package history

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"hone/journal"
	"hone/workspace"
)

type trace struct {
	want        workspace.Entry // at the end of the round; zero if nothing was there
	states      []workspace.Entry
	users       int  // the last of the states that was made outside the run; 0 if none was
	ours        bool // the run changed it
	theirs      bool // it was changed outside the run, after the round
	made        bool // hone itself created it
	interrupted bool // an interrupted command, or something later, changed it
}

func (t *trace) had(e workspace.Entry) bool { return slices.ContainsFunc(t.states, e.SameState) }

type tracker struct {
	round  int
	traces map[string]*trace // of all paths that ever changed

	tree    workspace.Series           // at the newest manifest
	written map[string]workspace.Entry // by edits since that manifest
	running bool                       // a command started, and no manifest followed
	reached bool                       // the end of the round was passed
}

// ofEnd is the number of no round: the caller of track marks the end itself.
const ofEnd = -1

// The round counts as the end of the run.
func track(j *journal.Journal, round int) (*tracker, error) {
	t, past := newTracker(j.Home().Get, round), Follow(j)
	err := past.Facts().Fault
	for _, e := range past.Events() {
		if err == nil {
			err = t.add(e)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read what the run changed: %w", err)
	}
	return t, nil
}

func newTracker(get Get, round int) *tracker {
	return &tracker{tree: workspace.Series{Get: get}, round: round, traces: map[string]*trace{}, written: map[string]workspace.Entry{}}
}

func (t *tracker) add(e Event) error {
	outside := func(string) bool { return false }
	ends := false
	switch p := e.Payload.(type) {
	case Applied:
		t.apply(p.Verdicts)
	case Outside:
		outside = func(path string) bool { return slices.Contains(p.Paths, inJSON(path)) }
	case Undone: // the user may have changed other files since the run ended
		outside = func(path string) bool { return !slices.Contains(p.Paths, inJSON(path)) }
	case State:
		ends = t.round > 0 && p.Round == t.round
	}
	_, check := e.Payload.(CheckBegun)
	manifest := e.Manifest()
	t.running = check || e.RunsCommand() || t.running && manifest == ""
	if manifest == "" {
		return nil
	}
	first := t.tree.Name() == ""
	if err := t.advance(manifest, outside); err != nil {
		return err
	}
	if ends || first && t.round == 0 {
		t.markEnd()
	}
	return nil
}

// inJSON returns a path as an event has it: JSON has no bytes that are not UTF-8.
func inJSON(path string) string { return string([]rune(path)) }

// outside reports whether a path was changed outside the run since the previous manifest.
func (t *tracker) advance(object string, outside func(path string) bool) error {
	if object == t.tree.Name() {
		return nil
	}
	deltas, err := t.tree.MoveTo(object)
	if err != nil {
		return err
	}
	for _, d := range deltas {
		t.addDelta(d, outside(d.Path))
	}
	clear(t.written)
	return nil
}

func (t *tracker) addDelta(d workspace.Delta, outside bool) {
	before := t.stateWith(d.Path, d.Before)
	one := t.trace(d.Path, before)
	one.states = append(one.states, before, d.After)
	one.ours = one.ours || !outside
	one.theirs = one.theirs || outside && t.reached
	if outside {
		one.users = len(one.states) - 1
	}
}

func (t *tracker) apply(vs []workspace.Verdict) {
	for _, v := range vs {
		was := t.state(v.Path)
		if was.Kind == "" && v.Before.Exists() { // an ignored file; manifests have it from now on
			was = v.Before.Entry(v.Path)
		}
		one := t.trace(v.Path, was)
		one.ours, one.made = true, one.made || !v.Before.Exists()
		t.written[v.Path] = EntryAfter(was, v)
		one.states = append(one.states, t.written[v.Path])
	}
}

func (t *tracker) trace(p string, was workspace.Entry) *trace {
	one, ok := t.traces[p]
	if !ok {
		one = &trace{want: was, states: []workspace.Entry{was}}
		t.traces[p] = one
	}
	return one
}

func (t *tracker) state(p string) workspace.Entry {
	e, _ := t.tree.Entry(p)
	return t.stateWith(p, e)
}

// listed is the path's entry in the newest manifest; zero if it has none.
func (t *tracker) stateWith(p string, listed workspace.Entry) workspace.Entry {
	if e, ok := t.written[p]; ok {
		return e
	}
	return listed
}

// The paths must become what they are now.
func (t *tracker) markEnd() {
	t.reached = true
	for p, one := range t.traces {
		one.want, one.theirs = t.state(p), false
	}
}

// addInterrupted compares the last manifest with the tree, if the journal ends
// within a command and no later run has changed the tree. No record says what
// such a command changed, and a difference may also have been made since: a
// reversal reports these paths as conflicts.
func (t *tracker) addInterrupted(ctx context.Context, j *journal.Journal, tree *workspace.Tree) error {
	runs, err := j.Home().Runs()
	if err != nil || !t.running || slices.Max(append(runs, j.Run())) != j.Run() {
		return err
	}
	last := t.tree.Stored().Manifest
	now, err := tree.Manifest(ctx, last)
	if err != nil {
		return err
	}
	for _, d := range last.Diff(now) {
		one := t.trace(d.Path, t.stateWith(d.Path, d.Before))
		if !one.had(d.After) {
			one.ours, one.interrupted = true, true
		}
	}
	return nil
}

// EntryAfter returns an entry after an edit; zero if the edit deletes the file.
func EntryAfter(was workspace.Entry, v workspace.Verdict) workspace.Entry {
	e := v.After.Entry(v.Path)
	if e.Kind != "" && was.Kind != "" && !v.ChangesMode() {
		e.Mode = was.Mode // a file that exists keeps its mode
	}
	return e
}

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
