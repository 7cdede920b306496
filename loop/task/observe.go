package task

import (
	"errors"

	"hone"
	"hone/history"
	"hone/workspace"
)

// agentsOwn says what is known of an agent's calls.
const agentsOwn = "an agent with tools of its own: its calls are not known"

// mostFiles is how many of the files that an agent changed are listed by name.
const mostFiles = 300

// observe computes the facts of an agent's session from the trees before and
// after it, not from what the agent reports.
func observe(r *hone.Run, talk hone.Conversation) (LoopSummary, error) {
	s := LoopSummary{Loop: r.Round(), Agent: true, Ended: talk.Ended}
	if !talk.Reply.Finish.Normal() {
		s.Ended, s.Detail = endedUnread, line(talk.Reply.Detail, 1000)
	}
	before, after, err := treesAround(r)
	if err != nil {
		return s, err
	}
	for _, d := range before.Diff(after) {
		if r.Own == nil || !r.Own(d.Path) {
			s.addFile(d)
		}
	}
	return s, nil
}

// addFile adds a file that the agent changed.
func (s *LoopSummary) addFile(d workspace.Delta) {
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

// treesAround is the tree before the session of the round's agent and after it. If
// the session was interrupted and begun again, before is the first time.
func treesAround(r *hone.Run) (before, after workspace.Manifest, err error) {
	begin := r.Past().Round(r.Round()).Agent
	if begin == nil {
		return nil, nil, errors.New("the agent's session is not recorded")
	}
	at := *begin.Step
	at.Name, at.Index = history.StepAfterwards, 0
	_, record := r.Journal.Lookup(at)
	if record == nil {
		return nil, nil, errors.New("the tree after the agent's session is not recorded")
	}
	if before, err = history.ReadManifest(begin.Manifest(), r.Journal.Home().Get); err != nil {
		return nil, nil, err
	}
	after, err = history.ReadManifest(history.Decode(*record).Manifest(), r.Journal.Home().Get)
	return before, after, err
}
