package hone

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hone/check"
	"hone/history"
	"hone/tool"
	"hone/workspace"
)

// A round ends in a state: the tree, and what is wrong with it. States show
// whether a run makes progress, whatever the model says: a state that comes back
// is a circle, and one with fewer findings than the last is worth restoring.

func (r *Run) statesBefore(round int) []State {
	return slices.DeleteFunc(slices.Clone(r.Past().Facts().States), func(s State) bool { return s.Round >= round })
}

// fingerprint returns a digest that is equal for states with the same tree,
// except the loop's own files, and the same findings, except for times and the
// like.
func (r *Run) fingerprint(s State) (string, error) {
	tree := slices.DeleteFunc(slices.Clone(r.last), func(e workspace.Entry) bool { return r.isOwn(e.Path) })
	return history.DigestOf([]any{tree.Digest(), check.Keys(check.BlockingOf(s.Findings))})
}

// A round that changed nothing and left the same findings has come back to the state before it (ruling G19). A round whose
// reply could not be used judged nothing: those are counted by themselves. A state without findings is what the run is for.
func (r *Run) compareWithEarlier(s *State, earlier []State) (err error) {
	if s.Fingerprint, err = r.fingerprint(*s); err != nil {
		return err
	}
	if s.Same = nil; blockingSources(*s)[check.SourceReply] || !check.Blocking(s.Findings) {
		return nil
	}
	if first := r.Past().Facts().Before; first != nil {
		earlier = append([]State{*first}, earlier...)
	}
	judged := slices.DeleteFunc(slices.Clone(earlier), func(s State) bool { return blockingSources(s)[check.SourceReply] })
	i := slices.IndexFunc(judged, func(before State) bool { return before.Fingerprint == s.Fingerprint })
	switch {
	case i < 0:
	case judged[len(judged)-1].Fingerprint == s.Fingerprint:
		s.Same = new(s.Round - 1)
	default:
		s.Same = &judged[i].Round
	}
	return nil
}

// The model is told once for each circle, unless that is the user's doing.
func (r *Run) circleFinding(states []State) []check.Finding {
	n := len(states)
	if n == 0 || states[n-1].Same == nil || n > 1 && states[n-2].Same != nil || r.Past().Declined(states[n-1].Round) {
		return nil
	}
	s := states[n-1]
	at := fmt.Sprintf("at the end of round %d", *s.Same)
	if *s.Same == 0 {
		at = "before the first round"
	}
	text := fmt.Sprintf("The files and the findings are now exactly as they were %s: the changes since then have led back there. Do not repeat them; find another cause, or another solution.", at)
	if s.ChangedNothing() {
		text = "No file has changed since the round before, so the findings are the same. A solution in words is not enough: make the change. If no change can help, say what the user has to do."
	}
	return []check.Finding{{Source: "progress", Advisory: true, Text: text}}
}

// An edit of a file that git ignores counts as a change.
func (r *Run) changedNothing() bool {
	return r.found != nil && len(r.changes(r.found, r.last)) == 0 && !slices.ContainsFunc(r.Past().Facts().Edits, func(v workspace.Verdict) bool {
		_, listed := r.found.Entry(v.Path)
		return !listed && v.Before.Digest != v.After.Digest
	})
}

func unusableInARow(states []State) int {
	n := 0
	for _, s := range slices.Backward(states) {
		if !blockingSources(s)[check.SourceReply] {
			break
		}
		n++
	}
	return n
}

// What was done before another model took over, or before the user told the model what it asked,
// says nothing about what follows.
func (r *Run) repeated(states []State) []State {
	return slices.DeleteFunc(slices.Clone(states), func(s State) bool { return s.Same == nil || s.Round <= r.Past().Restarted() })
}

// A run is not stuck while a stronger model has yet to take over.
func (r *Run) stuck(states []State) bool {
	return r.Limits.Patience > 0 && !r.hasStronger() && len(r.repeated(states)) >= r.Limits.Patience
}

// hasStronger reports whether a role that was asked in the round has a stronger model left.
func (r *Run) hasStronger() bool { return r.Past().Round(r.at.Round).Stronger }

func blocking(s State) int { return check.Count(blockingOf(s)) }

// An unusable reply shows nothing about the tree.
func blockingOf(s State) []check.Finding {
	return slices.DeleteFunc(slices.Clone(s.Findings), func(f check.Finding) bool {
		return !f.Blocks() || f.Source == check.SourceReply
	})
}

func blockingSources(s State) map[string]bool {
	m := map[string]bool{}
	for _, f := range s.Findings {
		if f.Blocks() {
			m[f.Source] = true
		}
	}
	return m
}

// ok is false unless it is better than the last round. Only states that were judged alike are compared: a round whose reply was
// unreadable is skipped, and one that did not reach the check that found something in the last round.
func bestRound(states []State) (best State, ok bool) {
	if len(states) == 0 {
		return best, false
	}
	last := states[len(states)-1]
	for _, s := range states[:len(states)-1] {
		if !comparable(s, last) || !better(s, last) || ok && better(best, s) {
			continue
		}
		best, ok = s, true
	}
	return best, ok
}

// A state in which the check did not get to its end is worse: its findings hide others.
func better(s, than State) bool {
	if p, q := partial(s, than), partial(than, s); p != q {
		return q
	}
	return blocking(s) < blocking(than)
}

// Beside findings of another state that were told apart, an output that was not counts as one.
func partial(s, beside State) bool {
	identified := map[string]bool{}
	for _, f := range beside.Findings {
		identified[f.Source] = identified[f.Source] || f.Blocks() && f.ID != ""
	}
	return slices.ContainsFunc(s.Findings, func(f check.Finding) bool {
		return f.Partial || f.Blocks() && f.ID == "" && f.More == 0 && identified[f.Source]
	})
}

func comparable(s, last State) bool {
	found, now := blockingSources(s), blockingSources(last)
	if len(found) == 0 || found[check.SourceReply] {
		return false
	}
	for source := range found {
		if !now[source] {
			return false
		}
	}
	return true
}

func (r *Run) addNotes(end *End, states []State) {
	if paths := r.Past().DeclinedPaths(); len(paths) > 0 {
		end.Notes = append(end.Notes, plural(len(paths), "change was", "changes were")+" declined: "+listed(paths))
	}
	end.Notes = append(end.Notes, r.Past().Refusals()...)
	if n := len(states); n > 0 && end.Kind != KindBlocked && firstBlocker(states[n-1].Findings) != "" {
		end.Notes = append(end.Notes, "what blocked it was not removed: "+firstBlocker(states[n-1].Findings))
	}
	if open := r.Past().Facts().Pending; len(open) > 0 && end.Kind != KindBlocked && end.Kind != KindDone {
		end.Notes = append(end.Notes, questionsText(open)+"; to answer, resume the run on a terminal")
	}
	if end.Kind != KindDone {
		end.Notes = append(end.Notes, r.Past().Denied()...)
	}
	end.Notes = append(end.Notes, r.Past().Facts().ModelChanges...)
	if c, ok, _ := r.cutShort(r.Past().Facts().LastRound, ""); ok && end.Kind != KindDone {
		end.Notes = append(end.Notes, "the last session was ended: "+c.Why)
	}
	if first := r.Past().Facts().FirstCheck; r.Metric == nil && !r.Trust.OnlyNew && end.Rounds > 0 && first != nil && !check.Blocking(first.Findings) {
		switch {
		case r.Trust.Proof != nil:
			end.Notes = append(end.Notes, "the check already passed before the first round, so its passing proves nothing")
		case r.changedNothing():
			end.Notes = append(end.Notes, "the check passed before the first round, and nothing was changed: nothing shows that the work is done")
		}
	}
	if p := r.Trust.Reported; p != nil && end.Kind == KindDone && end.Rounds > 0 && !r.failedBefore() {
		end.Notes = append(end.Notes, "the check was not seen to fail here: only "+p.Name+" says what was wrong")
	}
	best, ok := bestRound(states)
	if !ok || !end.Kind.UsedUp() {
		return
	}
	last := states[len(states)-1]
	note := fmt.Sprintf("round %d had fewer findings (%d) than round %d (%d)", best.Round, blocking(best), last.Round, blocking(last))
	if blocking(best) >= blocking(last) {
		note = fmt.Sprintf("in round %d the check got further (%s) than in round %d", best.Round, check.Tally(blockingOf(best)), last.Round)
	}
	end.Best, end.Restored = best.Round, r.restoredTo(best.Round)
	if end.Restored {
		note += ", and its tree is restored"
	}
	end.Notes = append(end.Notes, note)
}

func (r *Run) restoredTo(round int) bool {
	to := r.Past().Facts().RestoredTo
	return to != nil && *to == round
}

// It also takes back what a run with a number as its judge has not measured.
func (r *Run) restoreBest(ctx context.Context, kind Kind) (restored bool, err error) {
	best, ok := bestRound(r.Past().Facts().States)
	if ok = ok && r.Trust.KeepBest && kind.UsedUp(); r.Metric != nil { // whatever is not measured is taken back
		best = r.Past().Facts().State
		ok = best.Decision != "" && r.Past().Facts().LastRound > best.Round
	}
	if !ok || r.restoredTo(best.Round) {
		return false, nil
	}
	ctx = context.WithoutCancel(ctx)
	reversal, err := history.Reverse(ctx, r.Journal, r.Tree, best.Round, r.Own)
	if err != nil {
		return false, err
	}
	reversal.Unstored = func(e workspace.Entry) bool { return r.isUnstored(e, nil) }
	_, err = reversal.Restore(ctx, false)
	var conflict *history.ConflictError
	if errors.As(err, &conflict) {
		return false, r.Notice(fmt.Sprintf("the files of round %d, which was the best, were not restored: %s: %s", best.Round, conflict.Path, conflict.Why))
	}
	return err == nil, err
}

func (r *Run) outOfPatience(s *State, repeated []State) {
	what := "ended in an earlier state"
	if !slices.ContainsFunc(repeated, func(s State) bool { return !s.ChangedNothing() }) {
		what = "changed nothing and left the same findings"
	}
	halt(s, KindStuck, fmt.Sprintf("no progress: %d of %d rounds %s", len(repeated), s.Round, what), r.anotherWay())
	last := &s.Next
	for last.Or != nil {
		last = last.Or
	}
	if !r.changedNothing() {
		last.Or = &Next{Verb: Undo, Remark: "which takes all changes back"}
	}
}

func (r *Run) anotherWay() Next {
	next := Next{Verb: NewRun, Remark: "with another model, or with advice in words"}
	notAllowed := func(record history.Event) bool {
		begin, _ := r.Past().Begin(*record.Step)
		call, _ := begin.Payload.(history.ToolCall)
		got, err := result[tool.Result](r, record.Event)
		return err == nil && call.Tool == "bash" && call.Refused == "" && got.Failed && got.Exit == nil
	}
	if r.Trust.Passed == "" && slices.ContainsFunc(r.Past().Records(toolStepName), notAllowed) {
		next.Or = &Next{Flags: []Flag{{Name: "allow", Value: "PROGRAM"}}, Remark: "which lets the model run it"}
	}
	if read, ok := r.Past().Advised("tools"); ok {
		other := next
		read.Or = &other
		next = read
	}
	return next
}

// escalationRound returns the first round that follows so many rounds in a row without
// fewer findings; 0 if there is none yet.
func (r *Run) escalationRound(after int) int {
	var judged []State
	if c := r.Past().Facts().FirstCheck; c != nil && len(c.Findings) > 0 {
		judged = append(judged, State{Findings: c.Findings})
	}
	n := 0
	for _, s := range r.statesBefore(r.at.Round) {
		usable := !blockingSources(s)[check.SourceReply]
		if n++; usable && improves(s, judged) {
			n = 0
		}
		if usable {
			judged = append(judged, s)
		}
		if n >= after {
			return s.Round + 1
		}
	}
	return 0
}

// improves reports whether a state has fewer findings than all earlier states that were
// judged alike. The first state of all does not, because nothing shows that there were
// more; a state that no earlier one was judged like does, because it came further.
func improves(s State, earlier []State) bool {
	if s.Score != nil {
		return s.Score.Kept
	}
	for _, before := range earlier {
		if comparable(before, s) && blocking(before) <= blocking(s) {
			return false
		}
	}
	return len(earlier) > 0
}
