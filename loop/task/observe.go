package task

import (
	"errors"

	"hone"
	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// agentsOwn says what is known of an agent's calls.
const agentsOwn = "an agent with tools of its own: its calls are not known"

// mostFiles is how many files an agent's session is told to have changed, one
// by one.
const mostFiles = 300

// observe computes the facts of an agent's session from the tree before and
// after it; what the agent says of them is not believed.
func observe(r *hone.Run, talk hone.Conversation) (LoopSummary, error) {
	s := LoopSummary{Loop: r.Round(), Agent: true, Ended: talk.Ended}
	if !talk.Reply.Finish.Normal() {
		s.Ended, s.Detail = endedUnread, line(talk.Reply.Detail, 1000)
	}
	before, after, err := around(r)
	if err != nil {
		return s, err
	}
	for _, d := range before.Diff(after) {
		if r.Own == nil || !r.Own(d.Path) {
			s.saw(d)
		}
	}
	return s, nil
}

// saw takes in one difference.
func (s *LoopSummary) saw(d workspace.Delta) {
	if len(s.Written)+len(s.Edited)+len(s.Deleted) >= mostFiles {
		s.Unlisted++
		return
	}
	into := &s.Edited
	switch d.Op {
	case workspace.Added:
		into = &s.Written
	case workspace.Removed:
		into = &s.Deleted
	}
	*into = append(*into, line(d.Path, 1000))
}

// around is the tree as it was when the round's agent began its session, for
// the first time where it was cut off, and as it was after it.
func around(r *hone.Run) (before, after workspace.Manifest, err error) {
	at, begun, err := begunSession(r)
	if err != nil {
		return nil, nil, err
	}
	if before, err = manifest(r, begun); err != nil {
		return nil, nil, err
	}
	at.Name, at.Index = "afterwards", 0
	_, record := r.Journal.Lookup(at)
	if record == nil {
		return nil, nil, errors.New("the tree after the agent's session is not on record")
	}
	var o history.Opened
	if err := record.Decode(&o); err != nil {
		return nil, nil, err
	}
	after, err = manifest(r, o.Manifest)
	return before, after, err
}

// begunSession is where the round's agent was asked, and the object with the
// tree's manifest at that time.
func begunSession(r *hone.Run) (at journal.Identity, object string, err error) {
	for _, e := range r.Journal.Events() {
		var a history.Asked
		if e.Type != history.TypeAsk || e.Phase != journal.Begin || e.Step.Round != r.Round() {
			continue
		}
		if err := e.Decode(&a); err != nil {
			return at, "", err
		}
		if a.Command {
			return *e.Step, a.Manifest, nil
		}
	}
	return at, "", errors.New("the agent's session is not on record")
}

// manifest reads a manifest from its object.
func manifest(r *hone.Run, object string) (workspace.Manifest, error) {
	s, err := workspace.ReadManifest(object, r.Journal.Home().Get)
	return s.Manifest, err
}
