package hone

import (
	"context"
	"fmt"
	"slices"

	"hone/check"
	"hone/history"
	"hone/workspace"
)

// It is the first thing that a process does with a run of an earlier process.
func (r *Run) resume(ctx context.Context) error {
	if r.resumed {
		return nil
	}
	if r.Past().Facts().Begun {
		if err := r.tell(history.TypeResume, history.Resumed{Limits: r.Limits, Outputs: r.Outputs}); err != nil {
			return err
		}
		if object, _, certain := r.Past().NewestManifest(); certain && object != "" {
			want, err := workspace.ReadManifest(object, r.Journal.Home().Get)
			if err != nil {
				return err
			}
			r.last, r.stored = want.Manifest, want
			if err := r.snapshot(ctx); err != nil { // it records how the tree differs from the one that the last process left
				return err
			}
		}
		if err := r.askPending(ctx); err != nil {
			return err
		}
	}
	r.resumed = true
	return nil
}

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
			Text: "the user changed this file; keep the change and build on it"})
	}
	return findings
}

// A question whose file has changed is dropped.
func (r *Run) askPending(ctx context.Context) error {
	if r.Human == nil {
		return nil
	}
	r.at.Session = -r.Past().Facts().Resumes
	defer func() { r.at.Session = 0 }()
	for _, q := range r.Past().Facts().Asked {
		if _, answered := r.Past().AnswerTo(q); answered {
			continue
		}
		if err := r.AskUser(ctx, q.Asks); err != nil {
			return err
		}
	}
	pending := r.Past().Facts().Pending
	if len(pending) == 0 {
		return nil
	}
	vs := make([]workspace.Verdict, len(pending))
	for i, q := range pending {
		vs[i] = workspace.Verdict{Path: q.Path, Ruling: workspace.Ask, Reason: q.Reason, Before: q.Before, After: q.After, Edited: q.Edited}
	}
	ch, err := history.RecordedChange(r.Journal.Home(), vs)
	if err != nil {
		return err
	}
	denied := map[string]string{}
	made, err := r.carryOut(ctx, ch, vs, denied)
	if err != nil || made {
		return err
	}
	if ch, err = history.RecordedChange(r.Journal.Home(), vs); err != nil { // as the user edited it
		return err
	}
	for i, v := range vs {
		if v.Ruling, v.Reason = workspace.Deny, denied[v.Path]; v.Reason == "" {
			continue
		}
		if err := r.recordVerdict(ch.Edits[i], v); err != nil {
			return err
		}
	}
	return r.askPending(ctx) // which drops the questions about files that have changed
}

// It reads no file, so that a replay returns the same.
func (r *Run) openQuestions() []Question {
	return slices.DeleteFunc(slices.Clone(r.Past().Facts().Pending), func(q Question) bool {
		e, listed := r.last.Entry(q.Path)
		return listed && e.Digest != "" && e.Digest != q.Before.Digest
	})
}
