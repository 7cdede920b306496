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
	"hone/workspace/restore"
	"hone/workspace/treepath"
)

// Code that is judged must not change what judges it. The files that match
// Run.Protect and existed when the run began are protected: hone asks before it
// changes one, and restores one that a command changed.
//
// The same holds for files that the user's own tools run or believe, new ones as well,
// if Trust.Tools says so. Only what a command of a model does there is put back: the
// check is the user's, and such files may be what it makes.

// protectedFiles returns the protected files as they must be: as the run found
// them, or as an approved edit or the user left them.
func (r *Run) protectedFiles() (map[string]workspace.Entry, error) {
	if len(r.Trust.Protect) == 0 {
		return nil, nil
	}
	found, err := r.foundProtected()
	if err != nil {
		return nil, err
	}
	files := maps.Clone(found)
	for _, e := range r.Past().Events() {
		switch p := e.Payload.(type) {
		case history.Applied:
			for _, v := range p.Verdicts {
				if was, ok := files[v.Path]; ok {
					files[v.Path] = history.EntryAfter(was, v)
				}
			}
		case history.Outside:
			if err := r.addUsersChanges(files, p); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// addUsersChanges sets the protected files that the user changed: they must stay as the
// user left them.
func (r *Run) addUsersChanges(files map[string]workspace.Entry, o history.Outside) error {
	var m workspace.Manifest
	for _, path := range o.Paths {
		if _, ok := files[path]; !ok {
			continue
		}
		if m == nil {
			var err error
			if m, err = r.readManifest(o.Manifest); err != nil {
				return err
			}
		}
		files[path], _ = m.Entry(path)
	}
	return nil
}

// foundProtected returns the protected files as the run found them; nil before
// its first round. They never change, and a tree may be large, so each process
// matches them only once.
func (r *Run) foundProtected() (map[string]workspace.Entry, error) {
	if r.guard != nil {
		return r.guard, nil
	}
	o, ok := r.Past().Opened()
	if !ok {
		return nil, nil
	}
	first, err := r.readManifest(o.Manifest)
	if err != nil {
		return nil, err
	}
	r.guard = map[string]workspace.Entry{}
	for _, e := range first {
		if treepath.Match(r.Trust.Protect, e.Path) {
			r.guard[e.Path] = e
		}
	}
	return r.guard, nil
}

// protectingRules returns rules for a review that also protect the protected
// files and those of the user's tools.
func (r *Run) protectingRules(rules workspace.Rules) (workspace.Rules, error) {
	files, err := r.protectedFiles()
	rules.Tools = rules.Tools || r.Trust.Tools
	if len(files) > 0 {
		rules.Protected = func(path string) bool { _, ok := files[path]; return ok }
	}
	return rules, err
}

// protectedChanges returns what restores the protected files that have changed since they
// were found, and the files of the user's tools that have changed since a manifest, which
// is that before a model's command; nil if there was none. The newest manifest must be up
// to date.
func (r *Run) protectedChanges(before workspace.Manifest) ([]restore.Target, error) {
	files, err := r.protectedFiles()
	if err != nil {
		return nil, err
	}
	var list []restore.Target
	if len(files) > 0 {
		list = restorations(files, r.last)
	}
	if !r.Trust.Tools || before == nil {
		return list, nil
	}
	for _, d := range before.Diff(r.last) {
		if _, ok := files[d.Path]; ok || treepath.ToolReason(d.Path) == "" {
			continue
		}
		was, _ := before.Entry(d.Path)
		now, _ := r.last.Entry(d.Path)
		list = append(list, restore.Target{Path: d.Path, Want: was, From: []workspace.Entry{now}})
	}
	return list, nil
}

// restoreProtected restores the protected files that commands changed, and
// returns their paths. The newest manifest must be up to date; if files are
// restored, it takes another one.
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

// restorations returns what restores the files of a manifest that are not as
// they must be.
func restorations(files map[string]workspace.Entry, now workspace.Manifest) []restore.Target {
	here := map[string]workspace.Entry{}
	for _, e := range now {
		if _, ok := files[e.Path]; ok {
			here[e.Path] = e
		}
	}
	var list []restore.Target
	for path, want := range files {
		if found := here[path]; !want.SameState(found) {
			list = append(list, restore.Target{Path: path, Want: want, From: []workspace.Entry{found}})
		}
	}
	slices.SortFunc(list, func(a, b restore.Target) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// openContents opens the stored contents of a file.
func (r *Run) openContents(digest string) (io.ReadCloser, error) {
	return r.Journal.Home().OpenObject(digest)
}

// isToolFile reports whether a restored file is one of the user's tools.
func (r *Run) isToolFile(path string) bool {
	return r.Trust.Tools && treepath.ToolReason(path) != "" && !treepath.Match(r.Trust.Protect, path)
}

// restoredNotes tell which files were restored: those of what judges the work, and those
// of the user's tools. A text is empty if there are none.
func (r *Run) restoredNotes(paths []string) (judges, tools string) {
	var judging, reasons []string
	for _, path := range paths {
		if r.isToolFile(path) {
			reasons = append(reasons, fmt.Sprintf("%s (%s)", treepath.Display(path), treepath.ToolReason(path)))
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

// protectFindings tell the model which protected files its commands changed in a
// round.
func (r *Run) protectFindings(round int) []check.Finding {
	paths := slices.Clone(r.Past().Round(round).Restored)
	slices.Sort(paths)
	var findings []check.Finding
	for _, path := range slices.Compact(paths) {
		text := "A command changed this file, which is protected because it is part of what judges your work; it was restored. Change the code, not what checks it."
		if r.isToolFile(path) {
			text = "A command changed this file, but " + treepath.ToolReason(path) + "; it was put back. If the work needs the change, edit the file: the user is asked."
		}
		findings = append(findings, check.Finding{Source: "protect", File: path, Advisory: true, Text: text})
	}
	return findings
}
