package hone

import (
	"context"
	"fmt"
	"strings"

	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/treepath"
)

// A run changes only files that Trust.Only names, and no more lines than Limits.Lines. An edit
// beyond that is denied, and what a model's command does beyond it is undone (see protect.go).
// What the check itself writes is not limited: it is the user's program.

func (t Trust) mayChange(path string) bool {
	return len(t.Only) == 0 || treepath.CompileValid(t.Only, false).Match(path)
}

func (t Trust) outsideReason() string {
	return "it is outside the paths that may be changed: " + strings.Join(t.Only, ", ")
}

// Of several edits the first ones use up the lines.
func (r *Run) denyBeyond(ctx context.Context, ch workspace.Change, vs []workspace.Verdict) error {
	for i, v := range vs {
		if v.Ruling != workspace.Deny && v.Ruling != workspace.Drop && !r.Trust.mayChange(v.Path) {
			vs[i] = workspace.Verdict{Path: v.Path, Ruling: workspace.Deny, Reason: r.Trust.outsideReason()}
		}
	}
	if r.Limits.Lines == 0 {
		return nil
	}
	now, err := r.Manifest(ctx)
	if err != nil {
		return err
	}
	used, each, err := r.changedLines(now)
	if err != nil {
		return err
	}
	for i, v := range vs {
		if v.Ruling != workspace.Allow && v.Ruling != workspace.Ask {
			continue
		}
		was, _ := r.found.Entry(v.Path)
		old, _, err := r.contentsOf(was)
		if err != nil {
			return err
		}
		more := lineCount(old, ch.Edits[i].Content) - each[v.Path]
		if left := max(0, r.Limits.Lines-used); more > left {
			vs[i] = workspace.Verdict{Path: v.Path, Ruling: workspace.Deny,
				Reason: fmt.Sprintf("the run may change at most %s, added and removed ones together, and has %d left; this changes %d more", plural(r.Limits.Lines, "line", "lines"), left, more)}
			continue
		}
		used += more
	}
	return nil
}

func lineCount(before, after []byte) int {
	added, removed := render.Stat(before, after)
	return added + removed
}

// changedLines returns how many lines a tree has that the run did not find, or lacks, in all and by file.
func (r *Run) changedLines(m workspace.Manifest) (all int, each map[string]int, err error) {
	each = map[string]int{}
	for _, d := range r.changes(r.found, m) {
		was, _, err := r.contentsOf(d.Before)
		if err != nil {
			return 0, nil, err
		}
		is, _, err := r.contentsOf(d.After)
		if err != nil {
			return 0, nil, err
		}
		each[d.Path] = lineCount(was, is)
		all += each[d.Path]
	}
	return all, each, nil
}

// undoes returns which files are put back that a model's command has changed since a manifest, beside those that Trust keeps.
// The newest manifest must be up to date.
func (r *Run) undoes(before workspace.Manifest) (func(path string) bool, error) {
	over := false
	if r.Limits.Lines > 0 && before != nil {
		was, _, err := r.changedLines(before)
		if err != nil {
			return nil, err
		}
		now, _, err := r.changedLines(r.last)
		if err != nil {
			return nil, err
		}
		over = now > max(was, r.Limits.Lines)
	}
	return func(path string) bool {
		return over || !r.Trust.mayChange(path) || r.Trust.Tools && r.Tree.ToolReason(path) != ""
	}, nil
}
