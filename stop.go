package hone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hone/check"
	"hone/history"
	"hone/internal/transient"
	"hone/journal"
	"hone/journal/objects"
)

// Kind is how a run ended, as one word that users see.
type Kind = history.Kind

// The kinds of ends; see [history.Kind].
const (
	KindDone        = history.KindDone
	KindRounds      = history.KindRounds
	KindStuck       = history.KindStuck
	KindUnreadable  = history.KindUnreadable
	KindUsage       = history.KindUsage
	KindPrompt      = history.KindPrompt
	KindBudget      = history.KindBudget
	KindContext     = history.KindContext
	KindBlocked     = history.KindBlocked
	KindFailed      = history.KindFailed
	KindInterrupted = history.KindInterrupted
)

// UsageError is an error in what the user asked for: a flag, a setting or a
// file. The engine passes it on to the user.
type UsageError struct {
	Why  string
	Next Next  // what to do, type or write instead; the zero Next has no advice
	Err  error // the cause, which Why contains; nil if there is none. If it may pass, nothing is wrong with what the user asked for (ruling G22)
}

func (u *UsageError) Error() string { return u.Why }

func (u *UsageError) Unwrap() error { return u.Err }

func (u *UsageError) resume() Next {
	next := u.Next
	next.Verb = cmp.Or(next.Verb, Resume)
	return next
}

// OutOfBudget reports whether an error means that the budget cannot pay for
// something. A loop that already has findings returns them together with such
// an error; see [Round].
func OutOfBudget(err error) bool {
	var stop *Stop
	return errors.As(err, &stop) && stop.Kind == KindBudget
}

func (r *Run) limitTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Limits.Time == 0 {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	left := func() time.Duration { return r.Limits.Time - r.Journal.Active() }
	if left() <= 0 {
		cancel(errTime)
	}
	go func() {
		for left() > 0 { // it stays the same while the user is asked
			select {
			case <-time.After(max(left(), 10*time.Millisecond)):
			case <-ctx.Done():
				return
			}
		}
		cancel(errTime)
	}()
	return ctx, func() { cancel(nil) }
}

// An error that is not of a known type is a failure of the environment.
func (r *Run) stopFor(ctx context.Context, err error) *Stop {
	var stop *Stop
	var usage *UsageError
	var room *ContextError
	switch {
	case errors.Is(context.Cause(ctx), errTime):
		limit := r.Limits.Time
		why := fmt.Sprintf("the time limit of %s is reached", history.DurationText(limit))
		if o := r.Past().Facts().Outage; o.Tries > 0 {
			why += fmt.Sprintf("; no reply since %s: %s", o.Since.Local().Format("15:04"), o.Error)
		}
		return &Stop{Kind: KindBudget, Why: why, Next: history.MoreTime(limit)}
	case errors.As(err, &stop):
		return stop
	case errors.As(err, &usage) && !transient.Is(err):
		return &Stop{Kind: KindUsage, Why: usage.Why, Next: usage.resume()}
	case errors.As(err, &room) && r.Past().Facts().Replies == 0:
		return &Stop{Kind: KindPrompt, Why: room.Error(), Next: room.Next()}
	case room != nil:
		return &Stop{Kind: KindContext, Why: room.Error(), Next: room.Next()}
	case errors.As(err, new(*objects.MissingError)) && !transient.Is(err):
		return &Stop{Kind: KindFailed, Why: "cannot read what the run recorded: " + err.Error(),
			Next: Next{First: "restore .hone from a backup", Verb: Resume, Or: &Next{Verb: NewRun, Remark: "which leaves the files as they are"}}}
	case ctx.Err() != nil:
		return &Stop{Kind: KindInterrupted, Why: "interrupted", Next: Next{Verb: Resume}}
	}
	return &Stop{Kind: KindFailed, Why: err.Error(), Next: history.ResumeAfter(remedy(err))}
}

func remedy(err error) string { return cmp.Or(transient.Remedy(err), "fix this") }

var errTime = errors.New("the run's time is used up")

func (r *Run) recordEnd(s State) (End, error) {
	now := r.Past().Facts()
	spent := now.Ledger
	end := End{Kind: s.Kind, Why: r.cleanText(s.Why), Next: s.Next.Cleaned(r.cleanText), Rounds: r.Past().Rounds(),
		Tokens: spent.Tokens, Assumed: spent.Assumed, Cost: spent.Price(), Findings: s.Findings}
	r.addNotes(&end, now.States)
	end.Said, _ = r.lastWords() // it may be what cannot be read that ended the run
	for _, s := range now.States {
		if s.Score != nil && s.Score.Kept {
			end.Said = s.Score.Idea // later words are about what was taken back
		}
	}
	if now.AtEnd {
		end.Ignored, end.Notes = now.End.Ignored, now.End.Notes
		return end, nil
	}
	end.Ignored = listed(r.changedIgnored())
	end.Notes = append(end.Notes, r.afterCommands(r.Lost)...)
	_, err := r.append(journal.Entry{Type: history.TypeEnd, Payload: end, Sync: true})
	return end, err
}

func (r *Run) changedIgnored() []string {
	if r.ignored == nil {
		r.ignored = new(r.afterCommands(r.Ignored))
	}
	return slices.Clone(*r.ignored)
}

// afterCommands calls f, which may be nil, if the run has run commands.
func (r *Run) afterCommands(f func() []string) []string {
	runs := func(e history.Event) bool {
		_, check := e.Payload.(history.CheckBegun)
		return check || e.RunsCommand()
	}
	if f == nil || !slices.ContainsFunc(r.Past().Events(), runs) {
		return nil
	}
	return f()
}

// conclude sets the decision that follows from the round (ruling G12). earlier
// are the states of the rounds before it; short is as in decide.
func (r *Run) conclude(s *State, earlier []State, done bool, short *Stop) error {
	s.Decision, s.Kind, s.Why, s.Next = AnotherRound, "", "", Next{}
	states := append(earlier, *s)
	unusable, broken := unusableInARow(states), r.brokenChecks(s.Round)
	unchanged, err := r.staysBlocked(*s, earlier)
	if err != nil {
		return err
	}
	usedUp, stuck, declined := s.Round >= r.Limits.MaxRounds(), r.stuck(states), r.Past().Declined(s.Round)
	blocker := firstBlocker(s.Findings)
	more := Flag{Name: "rounds", Value: fmt.Sprint(r.Limits.MaxRounds() * 2)}
	var missing []Flag // what a resumed run needs
	if usedUp {
		missing = []Flag{more}
	}
	switch {
	case short != nil:
		why, next := short.Why, short.Next
		if r.Check != nil && !check.Blocking(s.Checked) {
			why += "; the check passes, but the round is incomplete"
		}
		if next.Verb == Resume {
			next.Flags = slices.Concat(next.Flags, missing)
		}
		halt(s, KindBudget, why, next)
	case done && (r.Check != nil || r.Trust.Passed != "" || !declined || r.Past().Round(s.Round).Edited): // without a check an applied round is the end (ruling B8)
		s.Decision, s.Kind, s.Why = Done, KindDone, r.doneWhy()
	case r.unconfirmedStop(s):
	case r.Limits.Unreadable > 0 && unusable >= r.Limits.Unreadable && !done:
		next := history.ResumeWith("unreadable", r.Limits.Unreadable*2)
		next.Or = anotherModel()
		halt(s, KindUnreadable, unusableText(unusable), next)
	case broken >= maxBrokenChecks && !done:
		halt(s, KindFailed, fmt.Sprintf("the check could not run %d times in a row, so nothing verifies the changes", broken), fixCheck(nil))
	case r.Metric != nil:
		r.concludeByNumber(s, states, more)
	case declined && (done || usedUp || stuck): // a denial is final
		without := Next{Verb: NewRun, Remark: "which may do without the declined changes"}
		next := without
		if usedUp && !done {
			next = Next{Verb: Resume, Flags: missing, Remark: "which goes on without them", Or: &without}
		}
		halt(s, KindBlocked, "changes were not approved", next)
	case unchanged, blocker != "" && (usedUp || stuck): // only the user can help
		halt(s, KindBlocked, blocker, Next{First: "remove what blocks it", Verb: Resume, Flags: missing})
	case usedUp && onlyBroken(s.Checked):
		halt(s, KindFailed, "the check could not run; "+r.usedRounds(*s), fixCheck(missing))
	case stuck:
		r.outOfPatience(s, r.repeated(states))
	case usedUp:
		blocking := check.BlockingOf(s.Findings)
		left := "and it is not done"
		if len(blocking) > 0 {
			left = check.Tally(blocking) + " left"
		}
		next := Next{Verb: Resume, Flags: missing, Or: &Next{First: "fix the remaining findings by hand"}}
		switch {
		case unusable > 0:
			left, next.Or = "and "+unusableText(unusable), anotherModel()
		case s.ChangedNothing():
			next = r.anotherWay()
		}
		halt(s, KindRounds, r.usedRounds(*s)+", "+left, next)
	}
	if s.Decision == AnotherRound && unusable > 1 {
		err = r.Notice(unusableText(unusable))
	}
	r.waitForUser(s)
	return err
}

func (r *Run) usedRounds(s State) string {
	return fmt.Sprintf("%d of %d rounds used", s.Round, r.Limits.MaxRounds())
}

// staysBlocked reports whether a second round in a row has left a blocker, and changed
// nothing (ruling S5).
func (r *Run) staysBlocked(s State, earlier []State) (bool, error) {
	if len(earlier) == 0 || firstBlocker(s.Findings) == "" || firstBlocker(earlier[len(earlier)-1].Findings) == "" {
		return false, nil
	}
	now := r.Past().Round(s.Round)
	if now.Edited || now.Manifest == "" {
		return !now.Edited, nil
	}
	was, err := r.readManifest(now.Manifest)
	return err == nil && len(r.changes(was, r.last)) == 0, err
}

// unconfirmedStop stops a run whose check passes only because of what judges the work, or
// of what commands left in files that git ignores, and reports whether it did. The first
// such pass only begins another round.
func (r *Run) unconfirmedStop(s *State) bool {
	if slices.ContainsFunc(r.openQuestions(), Question.AboutJudges) {
		halt(s, KindBlocked, "the check passes only with changes to what is part of it", Next{Verb: Resume})
		return true
	}
	records := r.Past().Records(history.StepConfirm)
	if len(records) == 0 || r.Trust.Proof != nil {
		return false
	}
	last := records[len(records)-1]
	c, _ := last.Payload.(history.Checked)
	if last.Step.Round != s.Round || len(c.Lacks) == 0 || len(c.Judges) > 0 || !r.wasUnconfirmed() && s.Round < r.Limits.MaxRounds() {
		return false
	}
	halt(s, KindBlocked, "the check passes here, but not in a clean copy, which lacks what commands left in files that git ignores: "+listed(c.Lacks),
		Next{First: "let the check build what it needs", Verb: NewRun, Or: &Next{Verb: NewRun, Flags: []Flag{{Name: "judge", Value: "free"}}, Remark: "which believes the check here"}})
	return true
}

func halt(s *State, kind Kind, why string, next Next) {
	s.Decision, s.Kind, s.Why, s.Next = StopNow, kind, why, next
}

func firstBlocker(findings []check.Finding) string {
	for _, f := range findings {
		if f.Blocker {
			return strings.TrimSpace(f.Text)
		}
	}
	return ""
}

// The check blocks only because it could not run, so nothing is known about the tree.
func onlyBroken(checked []check.Finding) bool {
	return check.Blocking(checked) && !slices.ContainsFunc(checked, func(f check.Finding) bool { return !f.Broken && !f.Advisory })
}

// maxBrokenChecks is how often in a row a check may be unable to run. Another
// round would be paid for without finding anything out.
const maxBrokenChecks = 2

// It is 0 if the check did not run in this round.
func (r *Run) brokenChecks(round int) int {
	n := 0
	for _, e := range slices.Backward(r.Past().Records("check")) {
		c, ok := e.Payload.(history.Checked)
		if !ok || !onlyBroken(c.Findings) || n == 0 && e.Step.Round != round {
			break
		}
		n++
	}
	return n
}

func anotherModel() *Next {
	return &Next{Verb: NewRun, Remark: "with another model, or with a larger output limit if the replies were cut off"}
}

func unusableText(n int) string {
	if n == 1 {
		return "the last reply could not be used"
	}
	return fmt.Sprintf("the model does not answer in the required form: %d replies in a row could not be used", n)
}

// A run that failed or whose budget is used up ends for that reason.
func (r *Run) waitForUser(s *State) {
	open := r.openQuestions()
	switch {
	case len(open) == 0:
		return
	case s.Kind == KindDone && r.Check == nil && r.Trust.Passed == "":
		s.Why = ""
	case s.Kind != KindDone && s.Kind != KindRounds && s.Kind != KindStuck && s.Kind != KindUnreadable && s.Kind != KindBlocked:
		return
	}
	why := questionsText(open)
	if s.Why != "" {
		why += "; " + s.Why
	}
	next := history.ResumeAfter("use a terminal, in the foreground, so that hone can ask you")
	if s.Next.Verb == Resume {
		next.Flags = s.Next.Flags
	}
	halt(s, KindBlocked, why, next)
}

const maxListed = 10

func questionsText(open []Question) string {
	var paths []string
	for _, q := range open {
		paths = append(paths, q.Path)
	}
	return fmt.Sprintf("%s: %s", plural(len(paths), "question is open", "questions are open"), listed(paths))
}

func listed(paths []string) string {
	if more := len(paths) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:maxListed], ", "), more)
	}
	return strings.Join(paths, ", ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (r *Run) doneWhy() string {
	same := r.changedNothing()
	changes, verified := "the changes are made", "not verified, because no check was given"
	switch {
	case same && len(r.Past().Refusals())+len(r.Past().DeclinedPaths()) > 0:
		changes = "no change was made, because none was allowed"
	case same:
		changes = "nothing was changed"
	}
	switch {
	case r.Trust.Passed != "" && r.Check != nil:
		return r.Trust.Passed + ", and " + r.passes()
	case r.Trust.Passed != "":
		return r.Trust.Passed
	case r.Check == nil:
		return changes + "; " + verified
	case same:
		return r.passes() + ", and " + changes
	}
	return r.passes()
}
