package hone

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hone/check"
	"hone/history"
	"hone/internal/render"
	"hone/workspace"
	"hone/workspace/treepath"
)

// An edit of a file that Trust keeps (see judge.go) needs approval, and a command's changes
// to such files are undone.
//
// The same holds for files that the user's own tools run or believe, if Trust.Tools is set. An
// edit never changes what Trust.Only does not name, or more lines than Limits.Lines. There only
// the changes of a model's commands are undone: the check is the user's own program, and may be
// meant to write such files.

// before is the manifest before a model's command; nil if there was none. Of what that changed undo accepts what is undone
// although Trust does not keep it. The newest manifest must be up to date.
func (r *Run) protectedChanges(before workspace.Manifest, undo func(path string) bool) ([]workspace.Delta, error) {
	var list []workspace.Delta
	if r.Trust.keepsAny() {
		changes, err := r.changedJudges(r.last, r.keeps)
		if err == nil {
			list, err = r.targets(changes)
		}
		if err != nil {
			return nil, err
		}
	}
	if before == nil {
		return list, nil
	}
	for _, d := range r.changes(before, r.last) {
		if !r.keeps(d.Path) && undo(d.Path) {
			list = append(list, d.Back())
		}
	}
	return list, nil
}

// ignoredTools returns the files of the user's own tools that the newest manifest does not have.
func (r *Run) ignoredTools() []string {
	if !r.Trust.Tools {
		return nil
	}
	files, _ := r.Tree.ToolFiles() // without a list, nothing is restored
	return slices.DeleteFunc(files, func(path string) bool { _, listed := r.last.Entry(path); return listed })
}

// The newest manifest must be up to date; if files are restored, another one is taken.
func (r *Run) restoreProtected(ctx context.Context, list []workspace.Delta) ([]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	done, err := r.Tree.Apply(context.WithoutCancel(ctx), list, r.Journal.Home().OpenObject)
	if err != nil {
		return nil, &Stop{Kind: KindBlocked, Why: "a command changed a protected file, which cannot be restored", Err: err,
			Next: history.ResumeAfter("restore it by hand, such as by git checkout HEAD -- " + treepath.Display(list[0].Path))}
	}
	return done, r.snapshot(ctx)
}

// putBackText says what was put back after a command, and why, for the user and for the model;
// empty if nothing was.
func putBackText(list []history.Restored) string {
	paths := map[string][]string{} // by reason
	for _, one := range list {
		paths[one.Why] = append(paths[one.Why], treepath.Display(one.Path))
	}
	var texts []string
	for _, why := range slices.Sorted(maps.Keys(paths)) {
		texts = append(texts, fmt.Sprintf("%s (%s)", listed(paths[why]), why))
	}
	if len(texts) == 0 {
		return ""
	}
	return "what a command changed was put back: " + strings.Join(texts, "; ")
}

// putBackFindings tell the next round, whoever works in it.
func (r *Run) putBackFindings(round int) []check.Finding {
	var findings []check.Finding
	for _, one := range r.Past().Round(round).Restored {
		f := check.Finding{Source: "protect", File: one.Path, Advisory: true, Text: "A command changed this file, and the change was put back: " + one.Why + "."}
		if !slices.ContainsFunc(findings, func(other check.Finding) bool { return other.File == f.File }) {
			findings = append(findings, f)
		}
	}
	slices.SortFunc(findings, func(a, b check.Finding) int { return strings.Compare(a.File, b.File) })
	return findings
}

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
