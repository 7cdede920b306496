package hone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hone/check"
	"hone/journal"
	"hone/workspace"
)

// Round is one round of a loop: from what is still wrong to what is wrong
// afterwards. Between steps it is a pure function of its arguments and of the
// steps' results. Blocking findings mean that the tree cannot be right yet;
// the engine then leaves the check out.
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
			s = r.state()
			s.Result, s.Exit, s.Why, s.Hint = stop.Result, stop.Exit, stop.Error(), stop.Hint
		}
		return r.end(s)
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
	case errors.As(err, &room) && r.replies() == 0:
		return &Stop{Exit: ExitUsage, Result: "context", Why: room.Error(), Hint: room.Room}
	case room != nil:
		return &Stop{Exit: ExitBudget, Result: "context", Why: room.Error(), Hint: room.Room}
	case ctx.Err() != nil:
		return &Stop{Exit: ExitInterrupted, Result: "interrupted", Why: "interrupted", Hint: "hone resume last"}
	}
	return &Stop{Exit: ExitEnvironment, Result: "failed", Why: err.Error(), Hint: "mend that, then: hone resume last"}
}

// errTime is the cause of a context that the run's own time limit ended.
var errTime = errors.New("the run's time is used up")

// end records how the run ended. A run that had ended before is left as it is.
func (r *Run) end(s State) (End, error) {
	r.ledger.fold(r.Journal.Events())
	end := End{Result: s.Result, Exit: s.Exit, Why: r.clean(s.Why), Hint: r.clean(s.Hint), Rounds: s.Round,
		Tokens: r.ledger.tokens, Assumed: r.ledger.assumed, Cost: r.ledger.price(), Findings: s.Findings}
	events := r.Journal.Events()
	if n := len(events); n > 0 && events[n-1].Type == "end" {
		return end, nil
	}
	_, err := r.append(journal.Entry{Type: "end", Payload: end, Sync: true})
	return end, err
}

// Next finishes a round that was begun or runs another, and returns where the
// run stands then. A run whose last decision was to end is left alone, unless
// what stopped it was lifted meanwhile: a round limit that was raised, or a
// question that now can be put to somebody. It keeps nothing in memory that is
// not in the journal, and may be called again after an error.
func (r *Run) Next(ctx context.Context, round Round) (State, error) {
	s := r.state()
	r.enter(s.Round)
	if r.over(s) {
		return s, nil
	}
	if err := r.arrive(ctx, s); err != nil {
		return s, err
	}
	switch {
	case s.Decision == StopNow && r.granted():
		return r.decide(ctx, s, s.own())
	case r.over(s):
		return s, nil
	}
	return r.play(ctx, s, round)
}

// over reports whether the last decision was to end, and nothing that stopped
// the run was lifted since.
func (r *Run) over(s State) bool {
	switch {
	case s.Decision == GoOn, s.Decision == StopNow && r.granted():
		return false
	case s.Decision == Done:
		return true
	case check.Blocking(s.Findings) && s.Round < r.Limits.rounds():
		return false
	}
	return r.Human == nil || len(r.unasked(s.Round)) == 0
}

// play runs one round and decides.
func (r *Run) play(ctx context.Context, s State, round Round) (State, error) {
	s.Round++
	r.enter(s.Round)
	o, err := step(ctx, r, work[Opened]{event: "step", name: "open", do: r.open})
	if err != nil {
		return s, err
	}
	prior := append(s.Findings[:len(s.Findings):len(s.Findings)], told(o.Outside)...)
	findings, err := round(ctx, r, prior)
	if err != nil {
		return s, err
	}
	return r.decide(ctx, s, findings)
}

// open takes the manifest that a resumed run compares the tree with.
func (r *Run) open(ctx context.Context) (Opened, error) {
	name, tree, err := r.manifest(ctx)
	return Opened{Manifest: name, Tree: tree, Outside: r.untold()}, err
}

// decide asks the check if nothing stands in its way, and records what
// follows from the round.
func (r *Run) decide(ctx context.Context, s State, findings []check.Finding) (State, error) {
	done := !check.Blocking(findings)
	var err error
	if done && r.Check != nil {
		var c Checked
		c, err = r.check(ctx)
		s.Checked, s.Manifest, s.Tree = c.Findings, c.Manifest, c.Tree
		done = !check.Blocking(c.Findings)
	} else {
		s.Manifest, s.Tree, err = r.manifest(ctx)
	}
	if err != nil {
		return s, err
	}
	s.Findings = join(findings, s.Checked)
	s.Decision, s.Result, s.Exit, s.Why, s.Hint = GoOn, "", 0, "", ""
	switch declined := r.declined(s.Round); {
	case done && (r.Check != nil || r.Passed != "" || !declined):
		s.Decision, s.Result, s.Why = Done, "done", r.doneWhy(s.Round)
	case done || declined && s.Round >= r.Limits.rounds():
		s.stop("blocked", ExitBlocked, "changes were not approved", r.blockedHint(s.Round))
	case s.Round >= r.Limits.rounds() && blocker(findings) != "":
		s.stop("blocked", ExitBlocked, "blocked: "+blocker(findings),
			fmt.Sprintf("take it out of the way, then: hone resume last --rounds %d", r.Limits.rounds()*2))
	case s.Round >= r.Limits.rounds() && broken(s.Checked):
		s.stop("failed", ExitEnvironment, fmt.Sprintf("the check could not run, and %d of %d rounds are used up", s.Round, r.Limits.rounds()),
			fmt.Sprintf("mend the check, then: hone resume last --rounds %d", r.Limits.rounds()*2))
	case s.Round >= r.Limits.rounds():
		s.stop("rounds", ExitNotDone, fmt.Sprintf("human intervention needed: %d of %d rounds are used up and findings are left", s.Round, r.Limits.rounds()),
			fmt.Sprintf("mend what is left by hand, or: hone resume last --rounds %d", r.Limits.rounds()*2))
	}
	_, err = r.append(journal.Entry{Type: "round", Payload: s, Sync: true})
	return s, err
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
	if len(r.unasked(round)) > 0 {
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
	case r.changedIn(round):
		return "the changes are made, not verified: no check was given"
	}
	return "the model asked for no change, not verified: no check was given"
}

// changedIn reports whether an edit was made in the round, or a command run
// that may have changed something.
func (r *Run) changedIn(round int) bool {
	return slices.ContainsFunc(r.Journal.Events(), func(e journal.Event) bool {
		made := e.Type == "apply" && e.Phase == journal.Record || e.Type == "command" || command(e)
		return made && e.Step.Round == round
	})
}

// check runs the check, unless it is on record for the tree as it is.
func (r *Run) check(ctx context.Context) (Checked, error) {
	_, now, err := r.manifest(ctx)
	if err != nil {
		return Checked{}, err
	}
	for {
		if c, ok, err := r.checkedBefore(); err != nil || ok && c.Tree == now {
			return c, err
		} else if !ok {
			break
		}
		r.identify("check")
	}
	return step(ctx, r, work[Checked]{event: "check", name: "check", inline: true, do: func(ctx context.Context) (Checked, error) {
		began := time.Now()
		r.stale = true
		findings, err := r.Check(ctx)
		if err != nil {
			return Checked{}, err
		}
		object, tree, err := r.manifest(ctx)
		return Checked{Findings: join(findings), Tree: tree, Manifest: object, Took: time.Since(began)}, err
	}})
}

// checkedBefore reads the record of the check that would come next.
func (r *Run) checkedBefore() (c Checked, ok bool, err error) {
	id := r.at
	id.Name = "check"
	id.Index = r.count[id]
	if _, record := r.Journal.Lookup(id); record != nil {
		c, err = result[Checked](r, *record)
		return c, true, err
	}
	return c, false, nil
}

// state folds where the run stands out of the journal.
func (r *Run) state() State {
	s := State{Decision: GoOn, Findings: []check.Finding{}}
	for _, e := range r.Journal.Events() {
		if e.Type == "round" {
			s = State{}
			if err := e.Decode(&s); err != nil {
				s = State{Decision: StopNow, Result: "failed", Exit: ExitEnvironment, Why: err.Error(), Findings: []check.Finding{}}
			}
		}
	}
	return s
}

// join makes one list, which is never nil: in JSON it is always an array.
func join(lists ...[]check.Finding) []check.Finding {
	return append([]check.Finding{}, slices.Concat(lists...)...)
}

// declined reports whether a person, or the want of one, kept an edit of the
// round from being made, and no later answer let it be.
func (r *Run) declined(round int) bool {
	last := map[string]workspace.Verdict{}
	answered := map[string]bool{}
	for _, e := range r.Journal.Events() {
		var c Changed
		var a Applied
		switch {
		case e.Type == "change" && e.Step.Round == round && e.Decode(&c) == nil:
			last[c.Path] = c.Verdict
		case appliedLater(e) && e.Decode(&a) == nil:
			for _, v := range a.Verdicts {
				answered[edited(v)] = true
			}
		}
	}
	for _, v := range last {
		if v.Ruling == workspace.Declined && !answered[edited(v)] {
			return true
		}
	}
	return false
}

// edited tells one edit from another by what it does to which file.
func edited(v workspace.Verdict) string { return v.Before.Digest + " " + v.After.Digest + " " + v.Path }
