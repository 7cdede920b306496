package hone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hone/check"
	"hone/history"
	"hone/workspace"
)

// Round is one round of a loop. prior are the findings that the tree has so
// far; it is empty in the first round, unless the check runs before it
// ([Trust]). The result is what is wrong afterwards: a blocking finding means
// that the tree cannot be right yet, so the engine does not run the check.
//
// Between its steps a Round depends only on its arguments and on the results of
// its steps.
//
// If the error is [OutOfBudget] and there are findings, the budget did not pay
// for the rest of the round: the round ends with these findings, and the check
// runs before the run ends. Any other error stops the run; see [Stop].
type Round func(ctx context.Context, r *Run, prior []check.Finding) ([]check.Finding, error)

// Do runs rounds until a decision or an error ends the run, and records the
// end. The End is always complete: it also says which error stopped the run.
// The error is that of OnStart, or says why the end could not be recorded, or the best
// round not restored.
func (r *Run) Do(ctx context.Context, round Round) (End, error) {
	ctx, cancel := r.limitTime(ctx)
	defer cancel()
	for {
		s, failure := r.Next(ctx, round)
		if failure == nil && s.Decision == AnotherRound {
			continue
		}
		if failure != nil {
			stop := r.stopFor(ctx, failure)
			s = r.Past().Facts().State
			s.Kind, s.Why, s.Next = stop.Kind, stop.Error(), stop.Next
			checks := r.Past().Records("check")
			switch n := len(checks); {
			case stop.Findings != nil:
				s.Findings = stop.Findings
			case n > 0 && checks[n-1].Step.Round > s.Round: // what was found before is of another tree
				c, _ := checks[n-1].Payload.(history.Checked)
				s.Findings = joinFindings(c.Findings)
			}
		}
		restored, err := r.restoreBest(ctx, s.Kind)
		if restored {
			s.Findings = r.Past().Facts().State.Findings // of the tree that was restored
		}
		end, err2 := r.recordEnd(s)
		if s.Kind == KindFailed && isUnrecorded(failure) && isUnrecorded(err2) {
			// The end says why, so the Stop does not repeat it.
			err2 = fmt.Errorf("%w: %w", &Stop{Kind: KindFailed, Why: "the end of the run could not be recorded"}, err2)
		}
		return end, errors.Join(err, err2)
	}
}

// Next completes a round that was started, or runs another one, and returns the
// state after it. If the last decision ended the run Next does nothing, unless
// the reason has gone: the user raised the limit of rounds, or can now be asked
// a question, or the check may run now.
//
// Next may be called again after an error: it keeps nothing in memory that is
// not in the journal.
func (r *Run) Next(ctx context.Context, round Round) (State, error) {
	s := r.Past().Facts().State
	r.startRound(s.Round)
	r.age = min(r.age, aged)
	if err := cmp.Or(r.Past().Facts().Fault, r.find()); err != nil {
		return s, err
	}
	if r.isOver(s) {
		return s, nil
	}
	// What an earlier call of Next has begun to apply; see [history.Settle] for what an earlier process has.
	if err := history.Complete(context.WithoutCancel(ctx), r.Journal, r.Tree, r.Past()); err != nil {
		return s, err
	}
	if err := r.resume(ctx); err != nil {
		return s, err
	}
	switch {
	case r.decidesAgain(s):
		return r.decide(ctx, s, s.RoundFindings(), nil)
	case r.isOver(s):
		return s, nil
	}
	return r.play(ctx, s, round)
}

func (r *Run) play(ctx context.Context, s State, round Round) (State, error) {
	if s.Decision == "" {
		var err error
		if s, err = r.checkFirst(ctx, s); err != nil || s.Decision == Done {
			return s, err
		}
	}
	s.Round++
	r.startRound(s.Round)
	o, err := r.openRound(ctx)
	if err != nil {
		return s, err
	}
	old, err := r.oldFindings()
	if err != nil {
		return s, err
	}
	prior := joinFindings(s.Findings, o.Notes, old)
	if r.OnRound != nil {
		if err := r.OnRound(ctx); err != nil {
			return s, err
		}
	}
	findings, err := round(ctx, r, prior)
	r.age = min(r.age, aged)
	var short *Stop // why the budget did not pay for the rest of the round
	if findings != nil && OutOfBudget(err) {
		u, failed := Step(ctx, r, history.StepUnpaid, nil, func(context.Context) (history.Unpaid, error) {
			stop := r.stopFor(ctx, err)
			return history.Unpaid{Why: stop.Error(), Next: stop.Next}, nil
		})
		short, err = &Stop{Kind: KindBudget, Why: u.Why, Next: u.Next}, failed
	}
	if err != nil {
		return s, err
	}
	return r.decide(ctx, s, check.Bound(joinFindings(findings, r.putBackFindings(s.Round))), short)
}

// It runs at the end of a round. It runs again, with the same findings, when a question was answered or a check that could not run
// may run now.
// short is why the budget did not pay for the rest of the round; nil if it did. If it is set the check always runs, because the
// findings may only say that the round is incomplete.
func (r *Run) decide(ctx context.Context, s State, findings []check.Finding, short *Stop) (State, error) {
	blocked, done := check.Blocking(findings) && short == nil, false
	var err error
	switch {
	case r.Metric != nil:
		err = r.score(ctx, &s, blocked)
	case blocked || r.Check == nil:
		done = !blocked
		s.Manifest, s.Tree, err = r.manifest(ctx)
	default:
		var c history.Checked
		c, err = r.verdict(ctx, s.Round)
		done, s.Checked, s.Manifest, s.Tree = !check.Blocking(c.Findings), c.Findings, c.Manifest, c.Tree
	}
	if err != nil {
		return s, err
	}
	s.Findings = joinFindings(findings, s.Checked)
	earlier := r.statesBefore(s.Round)
	if err := r.compareWithEarlier(&s, earlier); err != nil {
		return s, err
	}
	if short != nil { // the round is incomplete
		s.Same = nil
	}
	if err := r.conclude(&s, earlier, done, short); err != nil {
		return s, err
	}
	return s, r.tell(history.TypeRound, s)
}

// A process that ended while it asked about files that judge goes on with that.
func (r *Run) verdict(ctx context.Context, round int) (history.Checked, error) {
	asked, ok, err := recordedStep[judgesAsked](r, askName)
	if err != nil {
		return history.Checked{}, err
	}
	if ok {
		checks := r.Past().Records("check")
		passed, _ := checks[len(checks)-1].Payload.(history.Checked)
		return r.completeAsking(ctx, passed, asked)
	}
	c, err := r.inspect(ctx, "check", func(ctx context.Context) (history.Checked, error) {
		c, err := r.checkRepeatedly(ctx)
		if err == nil && !check.Blocking(c.Findings) {
			c.Lacks = slices.DeleteFunc(r.changedIgnored(), func(p string) bool { return !r.judges.Has(p) || strings.HasSuffix(p, "/") })
		}
		return c, err
	})
	if err != nil || check.Blocking(c.Findings) {
		return c, err
	}
	return r.confirm(ctx, round, c)
}

func (r *Run) isOver(s State) bool {
	states := r.Past().Facts().States
	switch {
	case s.Decision == "", s.Decision == AnotherRound, r.decidesAgain(s):
		return false
	case s.Decision == Done:
		return true
	case !r.resumed && r.Human != nil && len(r.Past().Waiting()) > 0:
		return false
	case r.Metric != nil && (s.Kind == KindStuck || s.Kind == KindRounds):
		return r.plateau(s, states) != ""
	case r.stuck(states), r.Limits.Unreadable > 0 && unusableInARow(states) >= r.Limits.Unreadable:
		return true
	}
	return !check.Blocking(s.Findings) && s.Kind != KindBudget || s.Round >= r.Limits.MaxRounds()
}

// A check that could not run runs again before another round is paid for.
func (r *Run) decidesAgain(s State) bool {
	return s.Decision == StopNow && (r.Past().Facts().Reopened || s.Kind == KindFailed && onlyBroken(s.Checked))
}

func (r *Run) checkFirst(ctx context.Context, s State) (State, error) {
	runs := r.Check != nil && (r.Metric != nil || r.Trust.CheckFirst != Blind && r.Trust.Reported == nil || r.Trust.Proof != nil || r.Trust.OnlyNew)
	if !runs && r.Metric == nil && r.Trust.Reported == nil {
		return s, nil
	}
	r.startRound(0)
	o, err := r.openRound(ctx)
	if err != nil {
		return s, err
	}
	c := history.Checked{Manifest: o.Manifest, Tree: o.Tree}
	switch {
	case runs:
		if c, err = r.inspect(ctx, "check", r.checkBeforeFirst); err == nil {
			err = r.judgeFirstCheck(c)
		}
	case r.Trust.Reported != nil:
		c, err = r.inspect(ctx, history.StepReported, func(context.Context) (c history.Checked, err error) {
			c.Findings, c.From = r.Trust.Reported.Findings, r.Trust.Reported.Name
			if text := r.Trust.Reported.Text; text != "" {
				c.Output, err = r.putHeld([]byte(text))
			}
			return c, err
		})
	}
	if err != nil {
		return s, err
	}
	s.Decision, s.Manifest, s.Tree = AnotherRound, c.Manifest, c.Tree
	if r.Trust.CheckFirst != Blind {
		s.Findings, s.Checked = joinFindings(c.Findings), c.Findings
	}
	if r.Trust.CheckFirst == UnlessClean && !check.Blocking(c.Findings) {
		s.Decision, s.Kind, s.Why = Done, KindDone, "the check already passes"
		if c.Old > 0 {
			s.Why = r.passes()
		}
	}
	if r.Metric != nil {
		if err = r.firstScore(ctx, &s); err != nil {
			return s, err
		}
	}
	if s.Fingerprint, err = r.fingerprint(s); err != nil {
		return s, err
	}
	return s, r.tell(history.TypeRound, s)
}

// A resumed run compares the tree with this snapshot.
func (r *Run) openRound(ctx context.Context) (history.Opened, error) {
	o, err := Step(ctx, r, history.StepOpen, nil, func(ctx context.Context) (history.Opened, error) {
		name, tree, err := r.manifest(ctx)
		if err != nil {
			return history.Opened{}, err
		}
		now := r.Past().Facts()
		o := history.Opened{Manifest: name, Tree: tree, Outside: now.Outside, RestoredTo: now.RestoredTo}
		judges, err := r.judgesNote()
		o.Notes = slices.Concat(judges, r.circleFinding(r.statesBefore(r.at.Round)), check.Bound(outsideFindings(o)))
		return o, err
	})
	return o, cmp.Or(err, r.find())
}

// The result is never nil, so that JSON has an array.
func joinFindings(lists ...[]check.Finding) []check.Finding {
	return append([]check.Finding{}, slices.Concat(lists...)...)
}

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
