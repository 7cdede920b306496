package hone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"hone/check"
	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// resume is the first thing that a process does with a run of an earlier
// process. It records that it resumes the run, and what was changed outside the
// run since. It asks the questions that no user could be asked before.
func (r *Run) resume(ctx context.Context, s State) error {
	if r.resumed {
		return nil
	}
	if r.Past().Begun() {
		if _, err := r.append(journal.Entry{Type: history.TypeResume, Payload: history.Resumed{Limits: r.Limits}}); err != nil {
			return err
		}
		if err := r.recordOutside(ctx); err != nil {
			return err
		}
		if err := r.askUnanswered(ctx, s); err != nil {
			return err
		}
	}
	r.resumed = true
	return nil
}

// recordOutside records how the tree differs from the one that the run left.
// Such a change is never undone, because the user made it on purpose.
func (r *Run) recordOutside(ctx context.Context) error {
	object, written := r.Past().Expected()
	if object == "" {
		return nil
	}
	want, err := workspace.ReadManifest(object, r.Journal.Home().Get)
	if err != nil {
		return err
	}
	r.last, r.stored = want.Manifest, want
	var o history.Outside
	if o.Manifest, _, err = r.world().manifest(ctx); err != nil {
		return err
	}
	for _, d := range want.Manifest.Diff(r.last) {
		if _, ok := written[d.Path]; !ok {
			o.Paths = append(o.Paths, d.Path)
		}
	}
	for path, image := range written {
		if !r.matches(path, image) {
			o.Paths = append(o.Paths, path)
		}
	}
	if r.Own != nil {
		o.Paths = slices.DeleteFunc(o.Paths, r.Own)
	}
	if len(o.Paths) == 0 {
		return nil
	}
	slices.Sort(o.Paths)
	_, err = r.append(journal.Entry{Type: history.TypeOutside, Payload: o})
	return err
}

// outsideFindings tells the model what was restored, and what was changed
// outside the run.
func outsideFindings(o history.Opened) []check.Finding {
	var findings []check.Finding
	if o.RestoredTo != nil {
		text := "The files were restored to their state before the first round; all later changes are gone."
		if *o.RestoredTo > 0 {
			text = fmt.Sprintf("The files were restored to their state at the end of round %d, because it was better; the changes of later rounds are gone. The findings here are about the files as they are now.", *o.RestoredTo)
		}
		findings = append(findings, check.Finding{Source: "undo", Advisory: true, Text: text})
	}
	for _, p := range o.Outside {
		findings = append(findings, check.Finding{Source: "outside", File: p, Advisory: true,
			Text: "the user changed this file while the run was stopped; keep the change and build on it"})
	}
	return findings
}

// askUnanswered asks the questions that no user could be asked before, and applies
// the edits that are approved.
func (r *Run) askUnanswered(ctx context.Context, s State) error {
	if r.Human == nil {
		return nil
	}
	r.at.Session = -r.Past().Resumes()
	defer func() { r.at.Session = 0 }()
	var vs []workspace.Verdict
	for _, q := range r.unanswered(s.Round) {
		vs = append(vs, workspace.Verdict{Path: q.Path, Ruling: workspace.Ask, Reason: q.Reason, Before: q.Before, After: q.After})
	}
	ch, err := history.RecordedChange(r.Journal.Home(), vs)
	if err != nil {
		return err
	}
	if err := r.approve(ctx, ch, vs); err != nil {
		return err
	}
	return r.applyAllowed(ctx, ch, vs)
}

// unanswered returns the questions of a round that no user could be asked and
// whose files are unchanged.
func (r *Run) unanswered(round int) []Question { return r.Past().Unanswered(round, r.matches) }

// matches reports whether a file has the contents of an image.
func (r *Run) matches(path string, image workspace.Image) bool {
	_, now, err := r.Tree.Read(path)
	if err != nil {
		return !image.Exists() && errors.Is(err, fs.ErrNotExist)
	}
	return now.Digest == image.Digest
}
