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

// arrive is what a process does first that goes on with a run: it records that
// it does, and what others changed meanwhile, and puts to a person who is
// there now what nobody could be asked.
func (r *Run) arrive(ctx context.Context, s State) error {
	if r.arrived {
		return nil
	}
	if r.Past().Begun() {
		if _, err := r.append(journal.Entry{Type: history.TypeResume, Payload: history.Resumed{Limits: r.Limits}}); err != nil {
			return err
		}
		if err := r.compare(ctx); err != nil {
			return err
		}
		if err := r.askAgain(ctx, s); err != nil {
			return err
		}
	}
	r.arrived = true
	return nil
}

// compare records how the tree differs from what the journal says it should
// be. It is never undone: whoever changed it meant to.
func (r *Run) compare(ctx context.Context) error {
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
	if o.Manifest, _, err = r.manifest(ctx); err != nil {
		return err
	}
	for _, d := range want.Manifest.Diff(r.last) {
		if _, ok := written[d.Path]; !ok {
			o.Paths = append(o.Paths, d.Path)
		}
	}
	for path, image := range written {
		if !r.holds(path, image) {
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

// told words for the model what was changed by others.
func told(o history.Opened) []check.Finding {
	var findings []check.Finding
	if o.RestoredTo != nil {
		text := "The files were put back to what they were before the first round; nothing of what was changed since is there any more."
		if *o.RestoredTo > 0 {
			text = fmt.Sprintf("The files were put back to what they were at the end of round %d, because that was the better state; what later rounds changed is not there any more. What is found here is about the files as they are now.", *o.RestoredTo)
		}
		findings = append(findings, check.Finding{Source: "undo", Advisory: true, Text: text})
	}
	for _, p := range o.Outside {
		findings = append(findings, check.Finding{Source: "outside", File: p, Advisory: true,
			Text: "somebody else changed this file while the run was stopped; the change is theirs, build on it"})
	}
	return findings
}

// askAgain puts the questions that nobody could be asked to whoever is there
// now, and applies what is approved.
func (r *Run) askAgain(ctx context.Context, s State) error {
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
	return r.carryOut(ctx, ch, vs)
}

// unanswered are the questions of a round that no user could be asked, as far
// as their files are still the same.
func (r *Run) unanswered(round int) []Question { return r.Past().Unanswered(round, r.holds) }

// holds reports whether a file has an image's contents.
func (r *Run) holds(path string, image workspace.Image) bool {
	_, now, err := r.Tree.Read(path)
	if err != nil {
		return !image.Exists() && errors.Is(err, fs.ErrNotExist)
	}
	return now.Digest == image.Digest
}
