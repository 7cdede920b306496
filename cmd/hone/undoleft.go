package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness/runs"
	"hone/history"
	"hone/internal/listing"
	"hone/internal/render"
)

// restored are the paths that the undo restores; end is the time of the run's last event.
func (p *undoPlan) leftLines(ctx context.Context, restored []string, end time.Time) (lines []string, err error) {
	left, err := listing.Leftovers(ctx, p.run.Dir, slices.Concat(restored, p.Doubtful), p.run.Past.First().Time, end, listing.Refs(p.run.Start.Git))
	add := func(why string, names []string) {
		for _, name := range names {
			lines = append(lines, fmt.Sprintf("not undone (%s): %s", why, render.Line(name)))
		}
	}
	logs := slices.Clone(p.Own) // git may ignore them
	if own := kinds.Own(p.run.Start, p.run.Past); own != nil {
		left.Ignored = slices.DeleteFunc(left.Ignored, func(path string) bool {
			if own(path) {
				logs = append(logs, path)
			}
			return own(path)
		})
	}
	add("changed outside the run", p.Outside)
	for i, name := range logs { // the directory at the top stands for all that is in it
		if top, _, inside := strings.Cut(name, "/"); inside {
			logs[i] = top + "/"
		}
	}
	slices.Sort(logs)
	add("run log", slices.Compact(logs))
	add("may be older than the run", p.Doubtful)
	add("ignored by git, changed after the run started", left.Ignored)
	add("commit", left.Commits)
	lines = append(lines, p.repositoryLines()...)
	if left.More {
		lines = append(lines, "not all files that git ignores could be inspected: more of them may have changed")
	}
	return lines, err
}

// A repository may have the user's commits by now.
func (p *undoPlan) repositoryLines() (lines []string) {
	round := 0
	for _, e := range p.run.Past.Events() {
		switch event := e.Payload.(type) {
		case history.State:
			round = event.Round
		case history.Notice:
			path := filepath.Join(p.run.Dir, filepath.FromSlash(cmp.Or(event.Aside, event.Repository)))
			if _, err := os.Lstat(path); event.Repository != "" && round >= p.Round && err == nil {
				lines = append(lines, fmt.Sprintf("not undone (git repository): %s; to remove it: rm -r %s", render.Line(event.Repository), failure.Quoted(path)))
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// placeRun brings the tree into the state in which a run left its own, if it was imported
// and nothing has done so yet. It refuses to overwrite files of the user's. notes say what it
// did.
func placeRun(ctx context.Context, run *runs.Recorded) (notes []string, err error) {
	p, err := run.Placement(ctx, kinds.Own(run.Start, run.Past))
	if p == nil || err != nil {
		return nil, err
	}
	id, at := run.Journal.Run(), failure.Elsewhere(run.Dir)
	if len(p.Conflicts) > 0 {
		hint := "move your versions away"
		if base := run.Home.Imported(id).Base; base != "" {
			hint += fmt.Sprintf(", or check out %.12s, on which the run was exported", base)
		}
		f := &failure.Error{Kind: hone.KindBlocked, Hint: hint + "; then: hone resume " + id + at,
			Why: fmt.Sprintf("nothing was changed: the run was imported, and to restore its files would overwrite %s", render.Count(len(p.Conflicts), "file"))}
		for _, path := range p.Conflicts {
			f.Each = append(f.Each, render.Line(path)+": the run does not know this version")
		}
		return nil, f
	}
	if err := run.Place(ctx, p); err != nil {
		return nil, occupiedError(err, id+at, 0)
	}
	if len(p.Changes) > 0 {
		notes = append(notes, fmt.Sprintf("the run was imported: restored %s to its state: %s", render.Count(len(p.Changes), "file"), render.Names(p.Changes)))
	}
	if len(p.Missing) > 0 {
		notes = append(notes, "not restored, because the run has no contents of them: "+render.Names(p.Missing))
	}
	return notes, nil
}
