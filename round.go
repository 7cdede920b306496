package hone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hone/check"
	"hone/history"
	"hone/journal"
)

// Round is one round of a loop: from what is still wrong to what is wrong
// afterwards. The first round begins without findings, unless the check runs
// before it ([Trust]). Between steps it is a pure function of its arguments and of the
// steps' results. Blocking findings mean that the tree cannot be right yet;
// the engine then leaves the check out. Findings beside an error that is
// [OutOfBudget] say that the rest of the round could not be paid: the round then
// ends with these, and the check looks at what was done, before the run ends.
type Round func(ctx context.Context, r *Run, prior []check.Finding) ([]check.Finding, error)

// Do runs rounds until one decides that the run ends, or something stops it,
// and records how it ended. The error is why even that could not be recorded;
// the End is meant for a person all the same.
func (r *Run) Do(ctx context.Context, round Round) (End, error) {
	ctx, cancel := r.limitTime(ctx)
	defer cancel()
	for {
		s, err := r.Next(ctx, round)
		if err == nil && s.Decision == GoOn {
			continue
		}
		if err != nil {
			stop := r.stop(ctx, err)
			s = r.Past().State()
			s.Kind, s.Why, s.Next = stop.Kind, stop.Error(), stop.Next
		}
		restored, err := r.restoreBest(ctx, s.Kind)
		if restored {
			s.Findings = r.Past().State().Findings // of the tree that was restored
		}
		end, err2 := r.end(s)
		return end, errors.Join(err, err2)
	}
}

// limitTime bounds a context by what is left of the run's time.
func (r *Run) limitTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Limits.Time == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, r.Limits.Time-r.Journal.Active(), errTime)
}

// stop says how an error ends the run. An error that says nothing about that is
// a fault of the environment.
func (r *Run) stop(ctx context.Context, err error) *Stop {
	var stop *Stop
	var usage *UsageError
	var room *ContextError
	switch {
	case errors.Is(context.Cause(ctx), errTime):
		return &Stop{Kind: KindBudget, Why: fmt.Sprintf("the time limit of %s is reached", r.Limits.Time), Next: resumeWith("max-time", 2*r.Limits.Time)}
	case errors.As(err, &stop):
		return stop
	case errors.As(err, &usage):
		return &Stop{Kind: KindUsage, Why: usage.Why, Next: resumeAfter(usage.Hint)}
	case errors.As(err, &room) && r.Past().Replies() == 0:
		return &Stop{Kind: KindPrompt, Why: room.Error(), Next: Next{First: room.Remedy, Verb: NewRun}}
	case room != nil:
		return &Stop{Kind: KindContext, Why: room.Error(), Next: Next{First: room.Remedy, Verb: NewRun}}
	case errors.As(err, new(*journal.MissingError)):
		return &Stop{Kind: KindFailed, Why: "cannot read what the run recorded: " + err.Error(),
			Next: Next{First: "restore .hone from a backup", Verb: Resume, Or: "start a new run; the files stay as they are"}}
	case ctx.Err() != nil:
		return &Stop{Kind: KindInterrupted, Why: "interrupted", Next: Next{Verb: Resume}}
	}
	return &Stop{Kind: KindFailed, Why: err.Error(), Next: resumeAfter("fix this")}
}

// errTime is the cause of a context that the run's own time limit ended.
var errTime = errors.New("the run's time is used up")

// end records how the run ended. A run that had ended before is left as it is.
func (r *Run) end(s State) (End, error) {
	spent := r.Past().Ledger()
	end := End{Kind: s.Kind, Why: r.clean(s.Why), Next: s.Next.Cleaned(r.clean), Rounds: s.Round,
		Tokens: spent.Tokens, Assumed: spent.Assumed, Cost: spent.Price(), Findings: s.Findings}
	r.addNotes(&end, r.Past().States())
	if r.Past().AtEnd() {
		return end, nil
	}
	_, err := r.append(journal.Entry{Type: history.TypeEnd, Payload: end, Sync: true})
	return end, err
}

// Next finishes a round that was begun or runs another, and returns where the
// run stands then. A run whose last decision was to end is left alone, unless
// what stopped it was lifted meanwhile: a round limit that was raised, or a
// question that now can be put to somebody. It keeps nothing in memory that is
// not in the journal, and may be called again after an error.
func (r *Run) Next(ctx context.Context, round Round) (State, error) {
	s := r.Past().State()
	r.enter(s.Round)
	if err := r.Past().Err(); err != nil {
		return s, err
	}
	if r.over(s) {
		return s, nil
	}
	if err := r.resume(ctx, s); err != nil {
		return s, err
	}
	switch {
	case s.Decision == StopNow && r.Past().Granted():
		return r.decide(ctx, s, s.RoundFindings(), nil)
	case r.over(s):
		return s, nil
	}
	return r.play(ctx, s, round)
}

// over reports whether the last decision was to end, and nothing that stopped
// the run was lifted since.
func (r *Run) over(s State) bool {
	switch {
	case s.Decision == "", s.Decision == GoOn, s.Decision == StopNow && r.Past().Granted():
		return false
	case s.Decision == Done, s.Decision == StopNow && r.stuck(r.Past().States()):
		return true
	case (check.Blocking(s.Findings) || s.Kind == KindBudget) && s.Round < r.Limits.MaxRounds():
		return false
	}
	return r.Human == nil || len(r.unanswered(s.Round)) == 0
}

// play runs one round and decides.
func (r *Run) play(ctx context.Context, s State, round Round) (State, error) {
	if s.Decision == "" {
		var err error
		if s, err = r.first(ctx, s); err != nil || s.Decision == Done {
			return s, err
		}
	}
	s.Round++
	r.enter(s.Round)
	o, err := step(ctx, r, work[history.Opened]{event: history.TypeStep, name: history.StepOpen, inline: true, do: r.open})
	if err != nil {
		return s, err
	}
	prior := append(s.Findings[:len(s.Findings):len(s.Findings)], outsideFindings(o)...)
	findings, err := round(ctx, r, prior)
	short, err := r.unpaid(ctx, findings, err)
	if err != nil {
		return s, err
	}
	return r.decide(ctx, s, findings, short)
}

// unpaid is why the rest of a round could not be paid; nil where it could. Any
// other error is left one.
func (r *Run) unpaid(ctx context.Context, findings []check.Finding, err error) (*Stop, error) {
	if findings == nil || !OutOfBudget(err) {
		return nil, err
	}
	u, err := Step(ctx, r, history.StepUnpaid, nil, func(context.Context) (history.Unpaid, error) {
		stop := r.stop(ctx, err)
		return history.Unpaid{Why: stop.Error(), Next: stop.Next}, nil
	})
	return &Stop{Kind: KindBudget, Why: u.Why, Next: u.Next}, err
}

// open takes the manifest that a resumed run compares the tree with.
func (r *Run) open(ctx context.Context) (history.Opened, error) {
	name, tree, err := r.manifest(ctx)
	return history.Opened{Manifest: name, Tree: tree, Outside: r.Past().Outside(), RestoredTo: r.Past().RestoredTo()}, err
}

// decide asks the check if nothing stands in its way, and records what
// follows from the round. short is why the rest of it could not be paid: what
// stands in the check's way may then be no more than that.
func (r *Run) decide(ctx context.Context, s State, findings []check.Finding, short *Stop) (State, error) {
	findings = join(findings, r.protectFindings(s.Round))
	done, err := r.judge(ctx, &s, !check.Blocking(findings) || short != nil)
	if err != nil {
		return s, err
	}
	s.Findings = join(findings, s.Checked)
	if err := r.compareWithEarlier(&s); err != nil {
		return s, err
	}
	s.Findings = join(findings, r.circleFinding(s), s.Checked)
	s.Decision, s.Kind, s.Why, s.Next = GoOn, "", "", Next{}
	switch declined := r.Past().Declined(s.Round); {
	case short != nil:
		r.outOfBudget(&s, short)
	case done && (r.Check != nil || r.Trust.Passed != "" || !declined):
		s.Decision, s.Kind, s.Why = Done, KindDone, r.doneWhy(s.Round)
	case done || declined && s.Round >= r.Limits.MaxRounds():
		halt(&s, KindBlocked, "changes were not approved", r.afterDenial(s.Round))
	case s.Round >= r.Limits.MaxRounds():
		r.outOfRounds(&s, findings)
	default:
		r.outOfPatience(&s)
	}
	return s, r.record(s)
}

// record records a decision.
func (r *Run) record(s State) error {
	_, err := r.append(journal.Entry{Type: history.TypeRound, Payload: s, Sync: true})
	return err
}

// judge has the check look at the tree, where nothing else stands in the way,
// and where it is green have it proved; done says that nothing is wrong.
func (r *Run) judge(ctx context.Context, s *State, done bool) (bool, error) {
	var err error
	if !done || r.Check == nil {
		s.Manifest, s.Tree, err = r.manifest(ctx)
		return done, err
	}
	c, err := r.check(ctx)
	if err == nil && !check.Blocking(c.Findings) && r.Trust.Proof != nil {
		c, err = r.prove(ctx)
	}
	s.Checked, s.Manifest, s.Tree = c.Findings, c.Manifest, c.Tree
	return !check.Blocking(c.Findings), err
}

// outOfBudget says how a run ends whose last round could not be paid to its
// end. That the check passes is not the last word there (ruling G12).
func (r *Run) outOfBudget(s *State, short *Stop) {
	why, next := short.Why, short.Next
	if r.Check != nil && !check.Blocking(s.Checked) {
		why += "; the check passes, and the rest of the round is missing"
	}
	if s.Round >= r.Limits.MaxRounds() && next.Verb == Resume {
		next.Flags = append(slices.Clone(next.Flags), r.moreRounds())
	}
	halt(s, KindBudget, why, next)
}

// outOfRounds says how a run ends whose rounds are used up.
func (r *Run) outOfRounds(s *State, findings []check.Finding) {
	used := fmt.Sprintf("%d of %d rounds are used up", s.Round, r.Limits.MaxRounds())
	more := []Flag{r.moreRounds()}
	switch {
	case blocker(findings) != "":
		halt(s, KindBlocked, "blocked: "+blocker(findings), Next{First: "remove what blocks it", Verb: Resume, Flags: more})
	case broken(s.Checked):
		halt(s, KindFailed, "the check could not run, and "+used, Next{First: "fix the check", Verb: Resume, Flags: more})
	default:
		halt(s, KindRounds, "human intervention needed: "+used+" and findings are left", Next{Verb: Resume, Flags: more, Or: byHand})
	}
}

// halt decides that the run stops without being done.
func halt(s *State, kind Kind, why string, next Next) {
	s.Decision, s.Kind, s.Why, s.Next = StopNow, kind, why, next
}

// byHand is what the user can do about findings that are left.
const byHand = "fix the remaining findings by hand"

// moreRounds doubles the rounds.
func (r *Run) moreRounds() Flag {
	return Flag{Name: "rounds", Value: fmt.Sprint(r.Limits.MaxRounds() * 2)}
}

// blocker is what only the user can remove; empty where there is nothing.
func blocker(findings []check.Finding) string {
	for _, f := range findings {
		if f.Blocker {
			return strings.TrimSpace(f.Text)
		}
	}
	return ""
}

// broken reports whether nothing but a check that could not run stands in the
// way, so that nothing is known of the tree.
func broken(checked []check.Finding) bool {
	return check.Blocking(checked) && !slices.ContainsFunc(checked, func(f check.Finding) bool { return !f.Broken && !f.Advisory })
}

// afterDenial is what to do after a denial: the user's denial is final, an
// unanswered question is asked again.
func (r *Run) afterDenial(round int) Next {
	if len(r.unanswered(round)) > 0 {
		return resumeAfter("open a terminal, where hone can ask you")
	}
	return Next{Verb: Show, Flags: []Flag{{Name: "diff"}}, Or: "start a new run, which may do without the declined changes"}
}

func (r *Run) doneWhy(round int) string {
	switch {
	case r.Check != nil && r.Trust.Passed != "":
		return r.Trust.Passed + ", and the check has no findings"
	case r.Trust.Passed != "":
		return r.Trust.Passed
	case r.Check != nil:
		return "the check has no findings"
	case r.Past().Round(round).Touched:
		return "the changes are made, not verified: no check was given"
	}
	return "the model asked for no change, not verified: no check was given"
}

// check runs the check, unless it is on record for the tree as it is.
func (r *Run) check(ctx context.Context) (history.Checked, error) {
	return r.looking(ctx, "check", r.checkOften)
}

// looking does what judges the tree, unless it is on record for the tree as it
// is.
func (r *Run) looking(ctx context.Context, name string, do func(context.Context) (history.Checked, error)) (history.Checked, error) {
	if r.played != nil {
		return r.lookedAgain(ctx, name)
	}
	before, now, err := r.manifest(ctx)
	if err != nil {
		return history.Checked{}, err
	}
	for {
		if c, ok, err := r.lookedBefore(name); err != nil || ok && c.Tree == now {
			return c, err
		} else if !ok {
			break
		}
		r.identify(name)
	}
	return step(ctx, r, work[history.Checked]{event: history.TypeCheck, name: name, inline: true,
		open: func() (any, error) { return history.CheckBegun{Manifest: before}, nil },
		do: func(ctx context.Context) (history.Checked, error) {
			began := time.Now()
			c, err := do(ctx)
			if err != nil {
				return history.Checked{}, err
			}
			c.Findings, c.Took = join(c.Findings), time.Since(began)
			c.Manifest, c.Tree, err = r.manifest(ctx)
			return c, err
		}})
}

// checkOften runs the check, and where it fails as often again as it takes to
// tell what comes and goes.
func (r *Run) checkOften(ctx context.Context) (history.Checked, error) {
	var c history.Checked
	var runs [][]check.Finding
	for {
		findings, back, err := r.checkOnce(ctx)
		if err != nil {
			return history.Checked{}, err
		}
		runs, c.Restored = append(runs, findings), append(c.Restored, back...)
		if !check.Blocking(findings) || len(runs) > r.Trust.Flaky {
			break
		}
	}
	slices.Sort(c.Restored)
	c.Restored, c.Findings = slices.Compact(c.Restored), runs[0]
	if len(runs) > 1 {
		c.Findings, c.Flaky = check.Recurring(runs...)
	}
	return c, nil
}

// checkOnce runs the check. What it changed of what it belongs to is put back,
// and is a finding: the code that it ran has tried to judge itself.
func (r *Run) checkOnce(ctx context.Context) ([]check.Finding, []string, error) {
	r.stale = true
	findings, err := r.Check(ctx)
	if err != nil || len(r.Trust.Protect) == 0 {
		return findings, nil, err
	}
	if err := r.snapshot(ctx); err != nil {
		return nil, nil, err
	}
	back, err := r.restoreProtected(ctx)
	for _, path := range back {
		findings = append(findings, check.Finding{Source: "protect", File: path,
			Text: "This file is protected, because it is part of what judges the work; it was changed while the check ran, and was put back as it was."})
	}
	return findings, back, err
}

// lookedBefore reads the record of the look that would come next.
func (r *Run) lookedBefore(name string) (c history.Checked, ok bool, err error) {
	id := r.named(name)
	id.Index = r.count[id]
	if _, record := r.Journal.Lookup(id); record != nil {
		c, err = result[history.Checked](r, *record)
		return c, true, err
	}
	return c, false, nil
}

// join makes one list, which is never nil: in JSON it is always an array.
func join(lists ...[]check.Finding) []check.Finding {
	return append([]check.Finding{}, slices.Concat(lists...)...)
}
