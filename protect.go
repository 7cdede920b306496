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
// files.
func (r *Run) protectingRules(rules workspace.Rules) (workspace.Rules, error) {
	files, err := r.protectedFiles()
	if len(files) > 0 {
		rules.Protected = func(path string) bool { _, ok := files[path]; return ok }
	}
	return rules, err
}

// protectedChanges returns what restores the protected files that have changed.
// The newest manifest must be up to date.
func (r *Run) protectedChanges() ([]restore.Target, error) {
	files, err := r.protectedFiles()
	if err != nil || len(files) == 0 {
		return nil, err
	}
	return restorations(files, r.last), nil
}

// restoreProtected restores the protected files that commands changed, and
// returns their paths. The newest manifest must be up to date; if files are
// restored, it takes another one.
func (r *Run) restoreProtected(ctx context.Context) ([]string, error) {
	list, err := r.protectedChanges()
	if err != nil || len(list) == 0 {
		return nil, err
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

// restoredNote tells the user which protected files were restored; empty if none
// were.
func restoredNote(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return fmt.Sprintf("protected files that a command changed were restored: %s", strings.Join(paths, ", "))
}

// protectFindings tell the model which protected files its commands changed in a
// round.
func (r *Run) protectFindings(round int) []check.Finding {
	paths := slices.Clone(r.Past().Round(round).Restored)
	slices.Sort(paths)
	var findings []check.Finding
	for _, path := range slices.Compact(paths) {
		findings = append(findings, check.Finding{Source: "protect", File: path, Advisory: true,
			Text: "A command changed this file, which is protected because it is part of what judges your work; it was restored. Change the code, not what checks it."})
	}
	return findings
}
