package task

import (
	"context"
	"slices"

	"hone"
	"hone/check"
	"hone/history"
	"hone/workspace"
)

// agentsOwn replaces the list of calls in the session of an agent.
const agentsOwn = "an agent with tools of its own: its calls are not known"

// maxListed limits how many of an agent's changed files are listed by name.
const maxListed = 300

// changedFiles are those that differ from the round's start.
func changedFiles(ctx context.Context, r *hone.Run) ([]workspace.Delta, error) {
	before, err := history.ReadManifest(r.Past().Round(r.Round()).Manifest, r.Journal.Home().Get)
	if err != nil {
		return nil, err
	}
	now, err := r.Manifest(ctx)
	return changes(r, before, now), err
}

func changes(r *hone.Run, before, after workspace.Manifest) []workspace.Delta {
	return slices.DeleteFunc(before.Diff(after), func(d workspace.Delta) bool { return r.Own != nil && r.Own(d.Path) })
}

// The engine keeps the findings of a check that ran on an older tree while pending items keep the check from running, but the
// executor may have fixed them since.
func currentFindings(r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
	s := r.Past().State()
	checked, ok := r.Past().LastCheck()
	if !ok || len(s.Checked) == 0 || checked.Manifest == s.Manifest {
		return prior, nil
	}
	then, err := history.ReadManifest(checked.Manifest, r.Journal.Home().Get)
	if err != nil {
		return nil, err
	}
	now, err := history.ReadManifest(s.Manifest, r.Journal.Home().Get)
	if err != nil || len(changes(r, then, now)) == 0 {
		return prior, err
	}
	return slices.Concat(s.RoundFindings(), prior[len(s.Findings):]), nil
}

func (s *LoopSummary) addFile(d workspace.Delta) {
	if len(s.Written)+len(s.Edited)+len(s.Deleted) >= maxListed {
		s.Unlisted++
		return
	}
	into := &s.Edited
	switch d.Op() {
	case workspace.Added:
		into = &s.Written
	case workspace.Removed:
		into = &s.Deleted
	}
	*into = append(*into, line(d.Path, 1000))
}
