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
// afterwards. Between steps it is a pure function of its arguments and of the
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
			s.Result, s.Exit, s.Why, s.Hint = stop.Result, stop.Exit, stop.Error(), stop.Hint
		}
		restored, err := r.restoreBest(ctx, s.Exit)
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

// stop says how an error ends the run. Whatever names no other status is
// the environment's fault.
func (r *Run) stop(ctx context.Context, err error) *Stop {
	var stop *Stop
	var room *ContextError
	switch {
	case errors.Is(context.Cause(ctx), errTime):
		return &Stop{Exit: ExitBudget, Result: "budget", Why: fmt.Sprintf("the time limit of %s is reached", r.Limits.Time),
			Hint: fmt.Sprintf("hone resume last --max-time %s", 2*r.Limits.Time)}
	case errors.As(err, &stop):
		return stop
	case errors.As(err, &room) && r.Past().Replies() == 0:
		return &Stop{Exit: ExitUsage, Result: "context", Why: room.Error(), Hint: room.Room}
	case room != nil:
		return &Stop{Exit: ExitBudget, Result: "context", Why: room.Error(), Hint: room.Room}
	case errors.As(err, new(*journal.MissingError)):
		return &Stop{Exit: ExitEnvironment, Result: "failed", Why: "what the run has on record cannot be read any more: " + err.Error(),
			Hint: "bring .hone back from a backup, or start a new run; the files stay as they are"}
	case ctx.Err() != nil:
		return &Stop{Exit: ExitInterrupted, Result: "interrupted", Why: "interrupted", Hint: "hone resume last"}
	}
	return &Stop{Exit: ExitEnvironment, Result: "failed", Why: err.Error(), Hint: "mend that, then: hone resume last"}
}

// errTime is the cause of a context that the run's own time limit ended.
var errTime = errors.New("the run's time is used up")

// end records how the run ended. A run that had ended before is left as it is.
func (r *Run) end(s State) (End, error) {
	spent := r.Past().Ledger()
	end := End{Result: s.Result, Exit: s.Exit, Why: r.clean(s.Why), Hint: r.clean(s.Hint), Rounds: s.Round,
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
	case s.Decision == GoOn, s.Decision == StopNow && r.Past().Granted():
		return false
	case s.Decision == Done, s.Decision == StopNow && r.stuck(r.Past().States()):
		return true
	case (check.Blocking(s.Findings) || s.Result == resultBudget) && s.Round < r.Limits.MaxRounds():
		return false
	}
	return r.Human == nil || len(r.unanswered(s.Round)) == 0
}

// play runs one round and decides.
func (r *Run) play(ctx context.Context, s State, round Round) (State, error) {
	if s.Round == 0 {
		if err := r.seeRed(ctx); err != nil {
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
		return history.Unpaid{Why: stop.Error(), Hint: stop.Hint}, nil
	})
	return &Stop{Exit: ExitBudget, Result: resultBudget, Why: u.Why, Hint: u.Hint}, err
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
	s.Decision, s.Result, s.Exit, s.Why, s.Hint = GoOn, "", 0, "", ""
	switch declined := r.Past().Declined(s.Round); {
	case short != nil:
		r.outOfBudget(&s, short)
	case done && (r.Check != nil || r.Passed != "" || !declined):
		s.Decision, s.Result, s.Why = Done, "done", r.doneWhy(s.Round)
	case done || declined && s.Round >= r.Limits.MaxRounds():
		halt(&s, "blocked", ExitBlocked, "changes were not approved", r.blockedHint(s.Round))
	case s.Round >= r.Limits.MaxRounds():
		r.outOfRounds(&s, findings)
	default:
		r.outOfPatience(&s)
	}
	_, err = r.append(journal.Entry{Type: history.TypeRound, Payload: s, Sync: true})
	return s, err
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
	if err == nil && !check.Blocking(c.Findings) && r.Proof != nil {
		c, err = r.prove(ctx)
	}
	s.Checked, s.Manifest, s.Tree = c.Findings, c.Manifest, c.Tree
	return !check.Blocking(c.Findings), err
}

// outOfBudget says how a run ends whose last round could not be paid to its
// end. That the check passes is not the last word there (ruling G12).
func (r *Run) outOfBudget(s *State, short *Stop) {
	why, hint := short.Why, short.Hint
	if r.Check != nil && !check.Blocking(s.Checked) {
		why += "; the check passes, and the rest of the round is missing"
	}
	if s.Round >= r.Limits.MaxRounds() && strings.HasPrefix(hint, "hone resume ") {
		hint += fmt.Sprintf(" --rounds %d", r.Limits.MaxRounds()*2)
	}
	halt(s, resultBudget, ExitBudget, why, hint)
}

// outOfRounds says how a run ends whose rounds are used up.
func (r *Run) outOfRounds(s *State, findings []check.Finding) {
	used := fmt.Sprintf("%d of %d rounds are used up", s.Round, r.Limits.MaxRounds())
	more := fmt.Sprintf("hone resume last --rounds %d", r.Limits.MaxRounds()*2)
	switch {
	case blocker(findings) != "":
		halt(s, "blocked", ExitBlocked, "blocked: "+blocker(findings), "take it out of the way, then: "+more)
	case broken(s.Checked):
		halt(s, "failed", ExitEnvironment, "the check could not run, and "+used, "mend the check, then: "+more)
	default:
		halt(s, "rounds", ExitNotDone, "human intervention needed: "+used+" and findings are left", "mend what is left by hand, or: "+more)
	}
}

// halt decides that a run stops without being done.
func halt(s *State, result string, exit int, why, hint string) {
	s.Decision, s.Result, s.Exit, s.Why, s.Hint = StopNow, result, exit, why, hint
}

// blocker is what only a person can take out of the way; empty where there is
// nothing.
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
	return len(checked) > 0 && !slices.ContainsFunc(checked, func(f check.Finding) bool { return !f.Broken && !f.Advisory })
}

// blockedHint says how to go on after a denial: a person's no stands, the want
// of a person does not.
func (r *Run) blockedHint(round int) string {
	if len(r.unanswered(round)) > 0 {
		return "hone resume last, on a terminal, to be asked again"
	}
	return "hone show last --diff; what was declined stays as it is, and another run may find another way"
}

func (r *Run) doneWhy(round int) string {
	switch {
	case r.Check != nil && r.Passed != "":
		return r.Passed + ", and the check has no findings"
	case r.Passed != "":
		return r.Passed
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
		if !check.Blocking(findings) || len(runs) > r.Flaky {
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
	if err != nil || len(r.Protect) == 0 {
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
