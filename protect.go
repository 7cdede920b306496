package hone

import (
	"context"
	"fmt"
	"io"
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

func (r *Run) protectingRules(rules workspace.Rules) workspace.Rules {
	rules.Tools = rules.Tools || r.Trust.Tools
	if r.Trust.keepsAny() {
		rules.Protected = r.Trust.keeps
	}
	return rules
}

// before is the manifest before a model's command; nil if there was none. Of what that changed undo accepts what is undone
// although Trust does not keep it. The newest manifest must be up to date.
func (r *Run) protectedChanges(before workspace.Manifest, undo func(path string) bool) ([]workspace.Delta, error) {
	var list []workspace.Delta
	if r.Trust.keepsAny() {
		changes, err := r.changedJudges(r.last, r.Trust.keeps)
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
	for _, d := range before.Diff(r.last) {
		if r.isOwn(d.Path) || r.Trust.keeps(d.Path) || !undo(d.Path) {
			continue
		}
		was, _ := before.Entry(d.Path)
		now, _ := r.last.Entry(d.Path)
		list = append(list, workspace.Delta{Path: d.Path, Before: now, After: was})
	}
	return list, nil
}

func (r *Run) noteTools() {
	r.tools = map[string]bool{}
	if !r.Trust.Tools {
		return
	}
	files, _ := r.Tree.ToolFiles() // without a list, nothing is restored
	for _, path := range files {
		r.tools[path] = true
	}
}

// git may ignore them, also by a rule that the command has written.
func (r *Run) keepNewTools() {
	if !r.Trust.Tools {
		return
	}
	files, _ := r.Tree.ToolFiles()
	for _, path := range files {
		if !r.tools[path] {
			r.Tree.Keep(path)
		}
	}
}

// The newest manifest must be up to date; if files are restored, another one is taken.
func (r *Run) restoreProtected(ctx context.Context, list []workspace.Delta) ([]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	done, err := r.Tree.Apply(context.WithoutCancel(ctx), list, r.openContents)
	if err != nil {
		return nil, &Stop{Kind: KindBlocked, Why: "a command changed a protected file, which cannot be restored", Err: err,
			Next: history.ResumeAfter("restore it by hand (git diff shows the change)")}
	}
	return done, r.snapshot(ctx)
}

func (r *Run) openContents(digest string) (io.ReadCloser, error) {
	return r.Journal.Home().OpenObject(digest)
}

// undoReason says why a command's change of a file is undone, and whether the user's tools are the reason. It is empty if the
// file judges the work instead. A replay, which has no tree, returns the same.
func (r *Run) undoReason(path string) (why string, tools bool) {
	tool := treepath.ToolReason(path)
	switch {
	case r.Trust.keeps(path):
		return "", false
	case !r.Trust.mayChange(path):
		return r.Trust.outsideReason(), false
	case r.Trust.Tools && tool != "":
		return tool, true
	case r.Limits.Lines > 0:
		return fmt.Sprintf("with it the run would have changed more than %s", plural(r.Limits.Lines, "line", "lines")), false
	case r.Trust.Tools:
		return "one of the user's tools finds it by a link", true
	}
	return "", false
}

func (r *Run) restoredNotes(paths []string) (judges, beyond, tools string) {
	var judging, reasons []string
	others := map[string][]string{} // by reason
	for _, path := range paths {
		switch why, tool := r.undoReason(path); {
		case why == "":
			judging = append(judging, path)
		case tool:
			reasons = append(reasons, fmt.Sprintf("%s (%s)", treepath.Display(path), why))
		default:
			others[why] = append(others[why], treepath.Display(path))
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
	paths := slices.Clone(r.Past().Round(round).Restored)
	slices.Sort(paths)
	var findings []check.Finding
	for _, path := range slices.Compact(paths) {
		text := "A command changed this file, which is protected because it is part of the check; it was restored. Change the code, not the check."
		if why, tools := r.undoReason(path); why != "" {
			text = "A command changed this file, and the change was undone, because " + why + "."
			if tools {
				text += " If you need the change, edit the file; hone asks the user to approve it."
			}
		}
		findings = append(findings, check.Finding{Source: "protect", File: path, Advisory: true, Text: text})
	}
	return findings
}
