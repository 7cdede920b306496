package hone

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"hone/check"
	"hone/workspace"
	"hone/workspace/restore"
	"hone/workspace/treepath"
)

// An edit of a file that Trust keeps (see judge.go) needs approval, and a command's changes
// to such files are undone.
//
// The same holds for files that the user's own tools run or believe, if Trust.Tools is set.
// There only the changes of a model's commands are undone: the check is the user's own
// program, and may be meant to write such files.

func (r *Run) protectingRules(rules workspace.Rules) workspace.Rules {
	rules.Tools = rules.Tools || r.Trust.Tools
	if r.Trust.keepsAny() {
		rules.Protected = r.Trust.keeps
	}
	return rules
}

// before is the manifest before a model's command; nil if there was none. The newest manifest must be up to date.
func (r *Run) protectedChanges(before workspace.Manifest) ([]restore.Target, error) {
	var list []restore.Target
	if r.Trust.keepsAny() {
		changes, err := r.changedJudges(r.last, r.Trust.keeps)
		if err == nil {
			list, err = r.targets(changes)
		}
		if err != nil {
			return nil, err
		}
	}
	if !r.Trust.Tools || before == nil {
		return list, nil
	}
	for _, d := range before.Diff(r.last) {
		if r.Trust.keeps(d.Path) || r.Tree.ToolReason(d.Path) == "" {
			continue
		}
		was, _ := before.Entry(d.Path)
		now, _ := r.last.Entry(d.Path)
		list = append(list, restore.Target{Path: d.Path, Want: was, From: []workspace.Entry{now}})
	}
	return list, nil
}

func (r *Run) noteTools() {
	r.tools = map[string]bool{}
	if !r.Trust.Tools || r.replaying != nil {
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
func (r *Run) restoreProtected(ctx context.Context, list []restore.Target) ([]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	done, err := restore.Paths(context.WithoutCancel(ctx), r.Tree, list, r.openContents)
	if err != nil {
		return nil, &Stop{Kind: KindBlocked, Why: "a command changed a protected file, which cannot be restored", Err: err,
			Next: resumeAfter("restore it by hand (git diff shows the change)")}
	}
	slices.Sort(done)
	return done, r.snapshot(ctx)
}

func (r *Run) openContents(digest string) (io.ReadCloser, error) {
	return r.Journal.Home().OpenObject(digest)
}

// It is empty if the file judges the work instead. A replay, which has no tree, returns the same.
func (r *Run) toolReason(path string) string {
	if !r.Trust.Tools || r.Trust.keeps(path) {
		return ""
	}
	return cmp.Or(treepath.ToolReason(path), "one of the user's tools finds it by a link")
}

func (r *Run) restoredNotes(paths []string) (judges, tools string) {
	var judging, reasons []string
	for _, path := range paths {
		if why := r.toolReason(path); why != "" {
			reasons = append(reasons, fmt.Sprintf("%s (%s)", treepath.Display(path), why))
		} else {
			judging = append(judging, path)
		}
	}
	if len(judging) > 0 {
		judges = "protected files that a command changed were restored: " + strings.Join(judging, ", ")
	}
	if len(reasons) > 0 {
		tools = "files of the user's own tools that a command changed were put back: " + strings.Join(reasons, ", ")
	}
	return judges, tools
}

func (r *Run) protectFindings(round int) []check.Finding {
	paths := slices.Clone(r.Past().Round(round).Restored)
	slices.Sort(paths)
	var findings []check.Finding
	for _, path := range slices.Compact(paths) {
		text := "A command changed this file, which is protected because it is part of the check; it was restored. Change the code, not the check."
		if why := r.toolReason(path); why != "" {
			text = "A command changed this file, and the change was undone, because " + why + ". If you need the change, edit the file; hone asks the user to approve it."
		}
		findings = append(findings, check.Finding{Source: "protect", File: path, Advisory: true, Text: text})
	}
	return findings
}
