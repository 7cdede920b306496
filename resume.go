package hone

import (
	"context"
	"errors"
	"io/fs"

	"hone/check"
	"hone/journal"
	"hone/workspace"
)

// arrive is what a process does first that goes on with a run: it records that
// it does, and what others changed meanwhile, and puts to a person who is
// there now what nobody could be asked. It reports whether anything was
// approved and applied by that.
func (r *Run) arrive(ctx context.Context, s State) (approved bool, err error) {
	if r.arrived {
		return false, nil
	}
	r.arrived = true
	if !r.begun() {
		return false, nil
	}
	if _, err := r.append(journal.Entry{Type: "resume", Payload: r.Limits}); err != nil {
		return false, err
	}
	if err := r.compare(ctx); err != nil {
		return false, err
	}
	if r.Human == nil {
		return false, nil
	}
	return r.askAgain(ctx, s)
}

// begun reports whether an earlier process has worked on the run.
func (r *Run) begun() bool {
	for _, e := range r.Journal.Events() {
		if e.Step != nil {
			return true
		}
	}
	return false
}

// compare records how the tree differs from what the journal says it should
// be. It is never undone: whoever changed it meant to.
func (r *Run) compare(ctx context.Context) error {
	want, changed, err := r.expected()
	if err != nil {
		return err
	}
	now, err := r.Tree.Manifest(ctx, want)
	if err != nil {
		return err
	}
	r.last = now
	var o Outside
	for _, d := range want.Diff(now) {
		if image, ok := changed[d.Path]; !ok || image.Digest != d.After.Digest {
			o.Paths = append(o.Paths, d.Path)
		}
	}
	if len(o.Paths) == 0 {
		return nil
	}
	_, err = r.append(journal.Entry{Type: "outside", Payload: o})
	return err
}

// expected folds the newest manifest and what was applied since.
func (r *Run) expected() (workspace.Manifest, map[string]workspace.Image, error) {
	object, changed := "", map[string]workspace.Image{}
	for _, e := range r.Journal.Events() {
		var seen struct {
			Manifest string `json:"manifest"`
			Applied
		}
		if e.Phase == journal.Begin || e.Type != "round" && e.Phase != journal.Record {
			continue
		}
		if err := e.Decode(&seen); err != nil {
			return nil, nil, err
		}
		if e.Type == "apply" {
			for _, v := range seen.Verdicts {
				changed[v.Path] = v.After
			}
		} else if seen.Manifest != "" {
			object = seen.Manifest
			clear(changed)
		}
	}
	if object == "" {
		return nil, nil, nil
	}
	b, err := r.Journal.Home().Get(object)
	if err != nil {
		return nil, nil, err
	}
	m, err := workspace.DecodeManifest(b)
	return m, changed, err
}

// untold are the outside changes that no round was told of yet.
func (r *Run) untold() []string {
	var paths []string
	for _, e := range r.Journal.Events() {
		var o Outside
		switch {
		case e.Phase == journal.Record && e.Step.Name == "open":
			paths = nil
		case e.Type == "outside" && e.Decode(&o) == nil:
			paths = append(paths, o.Paths...)
		}
	}
	return paths
}

// told words outside changes for the model.
func told(outside []string) []check.Finding {
	var findings []check.Finding
	for _, p := range outside {
		findings = append(findings, check.Finding{Source: "outside", File: p, Advisory: true,
			Text: "somebody else changed this file while the run was stopped; the change is theirs, build on it"})
	}
	return findings
}

// askAgain puts the questions that nobody could be asked, and applies what is
// approved.
func (r *Run) askAgain(ctx context.Context, s State) (bool, error) {
	r.at.Session = -r.resumes()
	var ch workspace.Change
	var vs []workspace.Verdict
	for _, q := range r.unasked(s.Round) {
		v := workspace.Verdict{Path: q.Path, Ruling: workspace.Ask, Reason: q.Reason, Before: q.Before, After: q.After}
		one, err := contents(r.Journal.Home(), []workspace.Verdict{v})
		if err != nil {
			return false, err
		}
		ch.Edits = append(ch.Edits, one.Edits...)
		vs = append(vs, v)
	}
	if err := r.approve(ctx, ch, vs); err != nil {
		return false, err
	}
	_, allowed := permitted(ch, vs)
	return len(allowed) > 0, r.make(ctx, ch, vs)
}

// resumes is how often the run was gone on with. Its negative is the session
// of what is asked again, so that each time has identities of its own.
func (r *Run) resumes() int {
	n := 0
	for _, e := range r.Journal.Events() {
		if e.Type == "resume" {
			n++
		}
	}
	return n
}

// unasked are the questions of a round and the one after it that were denied
// for want of somebody to ask, and whose file is still as it was.
func (r *Run) unasked(round int) []Question {
	open := map[string]Question{}
	var order []string
	for _, e := range r.Journal.Events() {
		if e.Step == nil || e.Phase != journal.Record || e.Step.Round < round {
			continue
		}
		var a Answer
		var c Changed
		switch {
		case e.Type == "approval" && e.Decode(&a) == nil && a.By == nobody:
			begin, _ := r.Journal.Lookup(*e.Step)
			var q Question
			if begin != nil && begin.Decode(&q) == nil && r.stands(q) {
				open[q.Path] = q
				order = append(order, q.Path)
			}
		case e.Type == "approval" && !a.Approved:
			begin, _ := r.Journal.Lookup(*e.Step)
			var q Question
			if begin != nil && begin.Decode(&q) == nil {
				delete(open, q.Path)
			}
		case e.Type == "change" && e.Decode(&c) == nil && c.Ruling == workspace.Allow:
			delete(open, c.Path)
		}
	}
	var questions []Question
	for _, path := range order {
		if q, ok := open[path]; ok {
			questions = append(questions, q)
			delete(open, path)
		}
	}
	return questions
}

// stands reports whether a question's file is still as it was when it was asked.
func (r *Run) stands(q Question) bool {
	_, image, err := r.Tree.Read(q.Path)
	if err != nil {
		return !q.Before.Exists() && errors.Is(err, fs.ErrNotExist)
	}
	return image.Digest == q.Before.Digest
}
