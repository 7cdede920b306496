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
	"hone/journal"
	"hone/workspace"
)

// What says whether the tree is right must not be changed by those whom it is
// to judge. Files that match Run.Protect and were there when the run began are
// asked about before hone changes them; what commands change in them is put
// back.

// protected are the protected files as they should be: as the run found them,
// or as an approved edit left them.
func (r *Run) protected() (map[string]workspace.Entry, error) {
	if len(r.Trust.Protect) == 0 {
		return nil, nil
	}
	found, err := r.foundProtected()
	if err != nil {
		return nil, err
	}
	kept := maps.Clone(found)
	for _, e := range r.Journal.Events() {
		var a history.Applied
		if e.Type != history.TypeApply || e.Phase != journal.Record || e.Decode(&a) != nil {
			continue
		}
		for _, v := range a.Verdicts {
			was, ok := kept[v.Path]
			if !ok {
				continue
			}
			kept[v.Path] = after(was, v)
		}
	}
	return kept, nil
}

// after is what an edit makes of an entry; zero where it deletes the file.
func after(was workspace.Entry, v workspace.Verdict) workspace.Entry {
	e := entryOf(v.Path, v.After)
	if e.Kind != "" && was.Kind != "" {
		e.Mode = was.Mode // a file that exists keeps its mode
	}
	return e
}

// foundProtected are the protected files as the run found them; nil before it
// has looked. That never changes, and a tree may be large: it is matched once a
// process.
func (r *Run) foundProtected() (map[string]workspace.Entry, error) {
	if r.guard != nil {
		return r.guard, nil
	}
	o, ok, err := Recorded[history.Opened](r, history.StepOpen)
	if err != nil || !ok {
		return nil, err
	}
	first, err := r.recalled(o.Manifest)
	if err != nil {
		return nil, err
	}
	r.guard = map[string]workspace.Entry{}
	for _, e := range first {
		if workspace.Match(r.Trust.Protect, e.Path) {
			r.guard[e.Path] = e
		}
	}
	return r.guard, nil
}

// guarded are the rules of a review, with the protected files to be asked
// about.
func (r *Run) guarded(rules workspace.Rules) (workspace.Rules, error) {
	kept, err := r.protected()
	if len(kept) > 0 {
		rules.Protected = func(path string) bool { _, ok := kept[path]; return ok }
	}
	return rules, err
}

// tampered are the restorations of protected files that are not as they should
// be. The newest manifest must be up to date.
func (r *Run) tampered() ([]workspace.Restoration, error) {
	kept, err := r.protected()
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	return changed(kept, r.last), nil
}

// putBack restores what commands changed in protected files, and returns their
// paths. The newest manifest must be up to date; it is taken anew where
// something was put back.
func (r *Run) putBack(ctx context.Context) ([]string, error) {
	list, err := r.tampered()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	done, err := r.Tree.Restore(context.WithoutCancel(ctx), list, r.contents)
	if err != nil {
		return nil, &Stop{Kind: KindBlocked, Why: "a command changed a protected file, which cannot be restored", Err: err,
			Next: resumeAfter("restore it by hand (git diff shows the change)")}
	}
	slices.Sort(done)
	return done, r.snapshot(ctx)
}

// changed are the restorations of protected files that are not as they should
// be.
func changed(kept map[string]workspace.Entry, now workspace.Manifest) []workspace.Restoration {
	here := map[string]workspace.Entry{}
	for _, e := range now {
		if _, ok := kept[e.Path]; ok {
			here[e.Path] = e
		}
	}
	var list []workspace.Restoration
	for path, want := range kept {
		if is := here[path]; !want.Same(is) {
			list = append(list, workspace.Restoration{Path: path, Want: want, From: []workspace.Entry{is}})
		}
	}
	slices.SortFunc(list, func(a, b workspace.Restoration) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// contents opens what a file held.
func (r *Run) contents(digest string) (io.ReadCloser, error) {
	return r.Journal.Home().OpenObject(digest)
}

// kept words for a person that protected files were put back; empty where none
// were.
func kept(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return fmt.Sprintf("protected, changed by a command, and put back: %s", strings.Join(paths, ", "))
}

// restored are the protected files that were put back in a round.
func (r *Run) restored(round int) []string {
	var paths []string
	for _, e := range r.Journal.Events() {
		var p struct {
			PutBack []string `json:"put_back"`
		}
		if e.Phase == journal.Record && e.Step.Round == round && e.Decode(&p) == nil {
			paths = append(paths, p.PutBack...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// untouchable tells the model which protected files its commands changed in a
// round.
func (r *Run) untouchable(round int) []check.Finding {
	var findings []check.Finding
	for _, path := range r.restored(round) {
		findings = append(findings, check.Finding{Source: "protect", File: path, Advisory: true,
			Text: "A command changed this file, which is protected because it is part of what judges your work; it was put back as it was. Change the code, not what checks it."})
	}
	return findings
}
