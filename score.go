package hone

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hone/check"
	"hone/history"
	"hone/workspace"
)

// Metric is a number that judges each round beside the check (rulings I1 to I6). What is
// better than the best so far stays; any other change is taken back, so that the tree that a
// round leaves is always the best.
type Metric struct {
	Target *float64 // the run is done when the best is as good; nil means as good as possible
	// First measures the tree before the first round.
	First func(ctx context.Context, c Copies) (history.Score, error)
	// Compare measures the best so far, whose score is given, and the tree in turn. It sets
	// Kept, or Why it is not. An error means that nothing can be measured here.
	Compare func(ctx context.Context, best history.Score, c Copies) (history.Score, error)
}

// Copies makes a clean copy of the tree, or of the best so far, for one measurement: what
// an earlier one left is not in it.
type Copies func(ctx context.Context, best bool) (dir string, err error)

// copies calls do with the copies of a tree whose changes since the best are known.
func (r *Run) copies(back []workspace.Delta, do func(Copies) error) error {
	return r.withCopies(func(make copier) error {
		return do(func(ctx context.Context, best bool) (dir string, err error) {
			if best {
				dir, _, err = make(ctx, "0", back)
			} else {
				dir, _, err = make(ctx, "1", nil)
			}
			return dir, err
		})
	})
}

type scored struct {
	Score    history.Score     `json:"score"`
	Findings []check.Finding   `json:"findings,omitempty"` // of the check
	Back     []workspace.Delta `json:"back,omitempty"`     // what takes the round's change back
	history.Report
}

// firstScore measures the tree before the first round, whose check found s.Checked.
func (r *Run) firstScore(ctx context.Context, s *State) error {
	if check.Blocking(s.Checked) {
		return &Stop{Kind: KindUsage, Why: "the check fails before the first round, so nothing can be compared\n" + strings.TrimSpace(s.Checked[0].Text),
			Next: Next{First: "make it pass first", Verb: NewRun}}
	}
	v, err := Step(ctx, r, history.StepMeasure, nil, func(ctx context.Context) (v scored, err error) {
		err = r.copies(nil, func(c Copies) error {
			v.Score, err = r.Metric.First(ctx, c)
			return err
		})
		v.Said = "at the start: " + v.Score.Change()
		return v, err
	})
	s.Score = &v.Score
	if err == nil && r.onTarget(v.Score) {
		s.Decision, s.Kind, s.Why = Done, KindDone, "the target is already reached: "+v.Score.Change()
	}
	return err
}

// score runs the check unless the round is blocked, measures what passes it, and keeps the
// round's change or takes it back. s is the state before it.
func (r *Run) score(ctx context.Context, s *State, blocked bool) error {
	best := *s
	_, err := Step(ctx, r, history.StepSnapshot, nil, func(ctx context.Context) (history.Snapshot, error) { return r.snapshotAfter(ctx, history.Before{}) })
	if err != nil {
		return err
	}
	// If an earlier process has judged the round, the tree may be the best again.
	v, judged, err := recordedStep[scored](r, history.StepMeasure)
	if !judged && err == nil {
		v, err = r.judgeByNumber(ctx, best, blocked)
	}
	if err == nil && !v.Score.Kept {
		_, err = Step(ctx, r, history.StepRestore, nil, func(ctx context.Context) (history.Snapshot, error) { return r.putBack(ctx, v.Back) })
	}
	if err != nil {
		return err
	}
	s.Score, s.Checked = &v.Score, slices.Clone(v.Findings)
	for i := range s.Checked {
		s.Checked[i].Advisory = true // they are about what was taken back
	}
	s.Manifest, s.Tree, err = r.manifest(ctx)
	return err
}

// judgeByNumber checks what the round changed, and measures it beside the best so far, which
// best describes, unless the tree is the same, or is known to be wrong.
func (r *Run) judgeByNumber(ctx context.Context, best State, blocked bool) (v scored, err error) {
	if _, err := r.Manifest(ctx); err != nil { // a resumed process may not have read the tree yet
		return v, err
	}
	back, err := r.changesBack()
	if err != nil {
		return v, err
	}
	var found []check.Finding
	if !blocked && len(back) > 0 && r.Check != nil {
		c, err := r.verdict(ctx, r.at.Round)
		if err != nil {
			return v, err
		}
		found = c.Findings
	}
	return Step(ctx, r, history.StepMeasure, nil, func(ctx context.Context) (v scored, err error) {
		v = scored{Score: best.Score.Next(), Findings: found, Back: back}
		switch {
		case blocked:
			v.Score.Why = "the reply could not be used"
		case len(back) == 0:
			v.Score.Why = history.NothingChanged
		case check.Blocking(found):
			v.Score.Why = "the check fails: " + check.Tally(check.BlockingOf(found))
		default:
			err = r.copies(back, func(c Copies) error {
				v.Score, err = r.Metric.Compare(ctx, *best.Score, c)
				return err
			})
		}
		if v.Score.Kept {
			v.Score.Gains++
		}
		if err == nil {
			v.Score.Idea, err = r.lastWords()
		}
		v.Said = v.Score.Verdict()
		return v, err
	})
}

// changesBack returns what takes the round's changes back, but for those of the user (ruling G16).
func (r *Run) changesBack() (list []workspace.Delta, err error) {
	deltas, err := r.Past().ChangesSince(r.at.Round, r.Journal.Home().Get)
	for _, d := range deltas {
		switch was := d.Before; {
		case err != nil, r.isOwn(d.Path):
		case was.Kind == workspace.Other, was.Kind == workspace.Regular && !r.Journal.Home().Has(was.Digest):
			err = r.Notice(d.Path + " cannot be taken back, because its contents were not stored")
		default:
			list = append(list, d.Back())
		}
	}
	return list, err
}

func (r *Run) onTarget(s history.Score) bool {
	return r.Metric.Target != nil && !s.Better(*r.Metric.Target, s.Best)
}

// plateau says why no further round follows one (ruling I6); empty if one does.
func (r *Run) plateau(s State, states []State) string {
	since := s.Round
	for _, one := range states {
		if one.Score != nil && one.Score.Kept {
			since = s.Round - one.Round
		}
	}
	switch {
	case r.onTarget(*s.Score):
		return "the target is reached"
	case r.Limits.Patience > 0 && since >= r.Limits.Patience && !r.hasStronger():
		return plural(since, "round", "rounds") + " without a gain"
	case s.Round >= r.Limits.MaxRounds():
		return r.usedRounds(s)
	}
	return ""
}

// concludeByNumber sets the decision that follows from a round in a run with a number.
func (r *Run) concludeByNumber(s *State, states []State, moreRounds Flag) {
	why := r.plateau(*s, states)
	if why == "" {
		return
	}
	gained := s.Score.Better(s.Score.Best, s.Score.First)
	switch why += ": " + s.Score.Change(); {
	case r.onTarget(*s.Score), gained && r.Metric.Target == nil:
		s.Decision, s.Kind, s.Why = Done, KindDone, why
		return
	case !gained:
		why += ", no gain"
	default:
		why += fmt.Sprintf(", but the target is %s", history.Figure(*r.Metric.Target))
	}
	kind, more := KindStuck, Flag{Name: "patience", Value: fmt.Sprint(2 * r.Limits.Patience)}
	if s.Round >= r.Limits.MaxRounds() {
		kind, more = KindRounds, moreRounds
	}
	halt(s, kind, why, Next{Verb: Resume, Flags: []Flag{more}, Or: &Next{Verb: NewRun, Remark: "with another model, or with an idea in words"}})
}
