package hone

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hone/check"
	"hone/history"
	"hone/workspace"
	"hone/workspace/treepath"
)

// An edit of a file that Trust keeps (see judge.go) needs approval, and a command's changes
// to such files are undone.
//
// The same holds for files that the user's own tools run or believe, if Trust.Tools is set, and
// for what is beyond the limits of scope.go, which an edit never changes. There only the
// changes of a model's commands are undone: the check is the user's own program, and may be
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

func restoredNotes(changed []history.Restored) (judges, beyond, tools string) {
	var judging, reasons []string
	others := map[string][]string{} // by reason
	for _, one := range changed {
		switch name := treepath.Display(one.Path); {
		case one.Why == "":
			judging = append(judging, one.Path)
		case one.Tools:
			reasons = append(reasons, fmt.Sprintf("%s (%s)", name, one.Why))
		default:
			others[one.Why] = append(others[one.Why], name)
		}
	}
	if len(judging) > 0 {
		judges = "protected files that a command changed were restored: " + strings.Join(judging, ", ")
	}
	var texts []string
	for _, why := range slices.Sorted(maps.Keys(others)) {
		texts = append(texts, fmt.Sprintf("what a command changed was put back: %s (%s)", listed(others[why]), why))
	}
	if len(reasons) > 0 {
		tools = "files of the user's own tools that a command changed were put back: " + strings.Join(reasons, ", ")
	}
	return judges, strings.Join(texts, "; "), tools
}

func (r *Run) protectFindings(round int) []check.Finding {
	changed := slices.Clone(r.Past().Round(round).Restored)
	slices.SortFunc(changed, func(a, b history.Restored) int { return cmp.Compare(a.Path, b.Path) })
	var findings []check.Finding
	for _, one := range slices.CompactFunc(changed, func(a, b history.Restored) bool { return a.Path == b.Path }) {
		text := "A command changed this file, which is protected because it is part of the check; it was restored. Change the code, not the check."
		if one.Why != "" {
			text = "A command changed this file, and the change was undone, because " + one.Why + "."
			if one.Tools {
				text += " If you need the change, edit the file; hone asks the user to approve it."
			}
		}
		findings = append(findings, check.Finding{Source: "protect", File: one.Path, Advisory: true, Text: text})
	}
	return findings
}
