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
	if r.begun() {
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
	object, applied, err := r.expected()
	if err != nil || object == "" {
		return err
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
		if _, ok := applied[d.Path]; !ok {
			o.Paths = append(o.Paths, d.Path)
		}
	}
	for path, image := range applied {
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

// expected folds the newest manifest and what was applied since. The object is
// empty where none was taken, and where a command or a check was begun since
// the newest: then nobody can tell what it changed from what others did.
func (r *Run) expected() (object string, applied map[string]workspace.Image, err error) {
	applied = map[string]workspace.Image{}
	for _, e := range r.Journal.Events() {
		var seen struct {
			Manifest string `json:"manifest"`
			history.Applied
		}
		switch {
		case e.Type == history.TypeCommand, command(e), e.Phase == journal.Begin && (e.Type == history.TypeCheck || e.Type == history.TypeStep && e.Step.Name == history.StepPutBack):
			object = ""
		case e.Type == history.TypeRound, e.Type == history.TypeUndo, e.Phase == journal.Record && (e.Type == history.TypeApply || e.Type == history.TypeCheck || looked(e)):
			err = errors.Join(err, e.Decode(&seen))
		}
		if seen.Manifest != "" {
			object = seen.Manifest
			clear(applied)
		}
		for _, v := range seen.Verdicts {
			applied[v.Path] = v.After
		}
	}
	return object, applied, err
}

// command reports whether an event begins something that runs commands: a tool
// call, or an agent's session.
func command(e journal.Event) bool {
	var b struct {
		Command bool `json:"command"`
	}
	return (e.Type == history.TypeTool || e.Type == history.TypeAsk) && e.Phase == journal.Begin && e.Decode(&b) == nil && b.Command
}

// looked reports whether an event is the record of a look at the whole tree
// that the engine took itself: when a round begins, or after a command.
func looked(e journal.Event) bool {
	return e.Phase == journal.Record && e.Type == history.TypeStep &&
		(e.Step.Name == history.StepAfterwards || e.Step.Name == history.StepPutBack || e.Step.Name == history.StepOpen && e.Step.Session == 0 && e.Step.Index == 0)
}

// untold are the outside changes that no round was told of yet.
func (r *Run) untold() []string {
	var paths []string
	for _, e := range r.Journal.Events() {
		var o history.Outside
		switch {
		case looked(e) && e.Step.Name == history.StepOpen:
			paths = nil
		case e.Type == history.TypeOutside && e.Decode(&o) == nil:
			paths = append(paths, o.Paths...)
		}
	}
	return paths
}

// putBackTo is the round that a person, or the run itself, had the tree put
// back to since the last one began; nil where none.
func (r *Run) putBackTo() *int {
	var to *int
	for _, e := range r.Journal.Events() {
		var u history.Undone
		switch {
		case looked(e) && e.Step.Name == history.StepOpen:
			to = nil
		case e.Type == history.TypeUndo && e.Decode(&u) == nil:
			to = &u.Round
		}
	}
	return to
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
	r.at.Session = -r.resumes()
	defer func() { r.at.Session = 0 }()
	var vs []workspace.Verdict
	for _, q := range r.unasked(s.Round) {
		vs = append(vs, workspace.Verdict{Path: q.Path, Ruling: workspace.Ask, Reason: q.Reason, Before: q.Before, After: q.After})
	}
	ch, err := contents(r.Journal.Home(), vs)
	if err != nil {
		return err
	}
	if err := r.approve(ctx, ch, vs); err != nil {
		return err
	}
	return r.carryOut(ctx, ch, vs)
}

// granted reports whether an answer that came after the last decision let
// something be applied, so that there is something new to decide about.
func (r *Run) granted() bool {
	granted := false
	for _, e := range r.Journal.Events() {
		granted = appliedLater(e) || granted && e.Type != history.TypeRound
	}
	return granted
}

// appliedLater reports whether an event records an apply that was approved
// when its question was put again.
func appliedLater(e journal.Event) bool {
	return e.Type == history.TypeApply && e.Phase == journal.Record && e.Step.Session < 0
}

// resumes is how often the run was gone on with. Its negative is the session
// of what is asked again, so that each time has identities of its own.
func (r *Run) resumes() int {
	n := 0
	for _, e := range r.Journal.Events() {
		if e.Type == history.TypeResume {
			n++
		}
	}
	return n
}

// unasked are the questions of a round and the one after it that were denied
// for want of somebody to ask, and whose file is still as it was.
func (r *Run) unasked(round int) []Question {
	var open []Question
	for _, e := range r.Journal.Events() {
		if e.Step == nil || e.Phase != journal.Record || e.Step.Round < round {
			continue
		}
		var a Answer
		var c history.Changed
		switch {
		case e.Type == history.TypeApproval && e.Decode(&a) == nil:
			switch q, ok := r.questionOf(e); {
			case !ok || a.Approved:
			case a.By != history.Nobody:
				open = without(open, q.Path)
			case r.holds(q.Path, q.Before):
				open = with(open, q)
			}
		case e.Type == history.TypeChange && e.Decode(&c) == nil && c.Ruling == workspace.Allow:
			open = without(open, c.Path)
		}
	}
	return open
}

// questionOf is what an answer was about.
func (r *Run) questionOf(answer journal.Event) (q Question, ok bool) {
	begin, _ := r.Journal.Lookup(*answer.Step)
	return q, begin != nil && begin.Decode(&q) == nil
}

// with adds a question, in the place of an earlier one about the same path.
func with(questions []Question, q Question) []Question {
	if i := slices.IndexFunc(questions, func(old Question) bool { return old.Path == q.Path }); i >= 0 {
		questions[i] = q
		return questions
	}
	return append(questions, q)
}

// without leaves out what is asked about a path.
func without(questions []Question, path string) []Question {
	return slices.DeleteFunc(questions, func(q Question) bool { return q.Path == path })
}

// holds reports whether a file has an image's contents.
func (r *Run) holds(path string, image workspace.Image) bool {
	_, now, err := r.Tree.Read(path)
	if err != nil {
		return !image.Exists() && errors.Is(err, fs.ErrNotExist)
	}
	return now.Digest == image.Digest
}
