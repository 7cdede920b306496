package history

import (
	"context"
	"fmt"
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
