package hone

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hone/check"
	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// A round ends in a state: the tree, and what is wrong with it. Progress is
// told from states, not from what a model says: one that comes back shows a
// circle, and one with fewer findings than the last is worth having back.

// ended are the states that the run's rounds ended in, one a round, in order.
func (r *Run) ended() []State {
	var states []State
	for _, e := range r.Journal.Events() {
		var s State
		if e.Type != history.TypeRound || e.Decode(&s) != nil || s.Round == 0 {
			continue
		}
		if n := len(states); n > 0 && states[n-1].Round == s.Round {
			states = states[:n-1] // decided anew, after an answer
		}
		states = append(states, s)
	}
	return states
}

// earlier are the states of the rounds before one.
func (r *Run) earlier(round int) []State {
	return slices.DeleteFunc(r.ended(), func(s State) bool { return s.Round >= round })
}

// fingerprint is the same for two states that have the same tree, without the
// loop's own files, and the same findings, but for times and the like.
func (r *Run) fingerprint(s State) (string, error) {
	var wrong []string
	for _, f := range s.Findings {
		if f.Blocks() {
			wrong = append(wrong, check.Key(f))
		}
	}
	slices.Sort(wrong)
	return digest([]any{r.ours(r.last).Digest(), slices.Compact(wrong)})
}

// locate fills in the fingerprint of a state, and which earlier round ended in
// the same one. A round that changed nothing comes back to nothing.
func (r *Run) locate(s *State) (err error) {
	if s.Fingerprint, err = r.fingerprint(*s); err != nil {
		return err
	}
	s.Same = 0
	moved, err := r.moved(s.Round)
	if err != nil || !moved {
		return err
	}
	for _, before := range r.earlier(s.Round) {
		if before.Fingerprint == s.Fingerprint {
			s.Same = before.Round
			return nil
		}
	}
	return nil
}

// moved reports whether something was changed in a round: by an edit that was
// made, or, as the tree shows, by a command.
func (r *Run) moved(round int) (bool, error) {
	opened := ""
	for _, e := range r.Journal.Events() {
		if e.Step == nil || e.Step.Round != round || e.Phase != journal.Record {
			continue
		}
		var a history.Applied
		var o history.Opened
		switch {
		case e.Type == history.TypeApply && e.Decode(&a) == nil && slices.ContainsFunc(a.Verdicts, changes):
			return true, nil
		case looked(e) && e.Step.Name == history.StepOpen && e.Decode(&o) == nil:
			opened = o.Manifest
		}
	}
	if opened == "" {
		return false, nil
	}
	was, err := r.recalled(opened)
	return err == nil && len(r.ours(was).Diff(r.ours(r.last))) > 0, err
}

// changes reports whether a verdict's edit leaves other contents than it found.
func changes(v workspace.Verdict) bool { return v.Before.Digest != v.After.Digest }

// circling tells the model, once for each circle, that it has come back.
func (r *Run) circling(s State) []check.Finding {
	before := r.earlier(s.Round)
	if s.Same == 0 || before[len(before)-1].Same != 0 {
		return nil
	}
	return []check.Finding{{Source: "progress", Advisory: true, Text: fmt.Sprintf("The files and what is wrong with them are now exactly as they were at the end of round %d (this was round %d): "+
		"what was changed in between has led back there. Do not go that way again; find another cause, or another way.", s.Same, s.Round)}}
}

// repeats is how many rounds ended in a state that an earlier one had ended in.
func repeats(states []State) int {
	n := 0
	for _, s := range states {
		if s.Same != 0 {
			n++
		}
	}
	return n
}

// stuck reports whether the run has come back as often as it may.
func (r *Run) stuck(states []State) bool {
	return r.Limits.Patience > 0 && repeats(states) >= r.Limits.Patience
}

// circles says which rounds ended as earlier ones had; empty where none did.
func circles(states []State) string {
	var said []string
	for _, s := range states {
		if s.Same != 0 {
			said = append(said, fmt.Sprintf("round %d ended as round %d had", s.Round, s.Same))
		}
	}
	if len(said) == 0 {
		return ""
	}
	return strings.Join(said, ", ") + ": the same tree with the same findings"
}

// blocking is how many findings keep a state's tree from being right. That a
// reply could not be used says nothing of it.
func blocking(s State) int {
	n := 0
	for _, f := range s.Findings {
		if f.Blocks() && f.Source != check.SourceReply {
			n++
		}
	}
	return n
}

// sources are who found what keeps a state from being right.
func sources(s State) map[string]bool {
	m := map[string]bool{}
	for _, f := range s.Findings {
		if f.Blocks() {
			m[f.Source] = true
		}
	}
	return m
}

// better is the round with the fewest findings, the latest of them, where those
// are fewer than the last round's. Only what was judged alike is compared: a
// round whose reply could not be read says nothing of its tree, and neither
// does one that did not get as far as the check that speaks now.
func better(states []State) (best State, ok bool) {
	if len(states) == 0 {
		return best, false
	}
	last := states[len(states)-1]
	for _, s := range states[:len(states)-1] {
		if !comparable(s, last) || blocking(s) >= blocking(last) {
			continue
		}
		if !ok || blocking(s) <= blocking(best) {
			best, ok = s, true
		}
	}
	return best, ok
}

// comparable reports whether a state was judged by nobody but those who judged
// the last one.
func comparable(s, last State) bool {
	found, now := sources(s), sources(last)
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

// remark adds to an end what its rounds show.
func (r *Run) remark(end *End, states []State) {
	if said := circles(states); said != "" {
		end.Notes = append(end.Notes, said)
	}
	if end.Rounds > 0 && r.passedBefore() {
		end.Notes = append(end.Notes, "the check already passed before the first round, so its passing proves nothing")
	}
	best, ok := better(states)
	if !ok || !end.Kind.UsedUp() {
		return
	}
	last := states[len(states)-1]
	note := fmt.Sprintf("round %d had fewer findings (%d) than round %d (%d)", best.Round, blocking(best), last.Round, blocking(last))
	end.Best, end.Restored = best.Round, r.stands(best.Round)
	if end.Restored {
		note += ", and its tree is restored"
	}
	end.Notes = append(end.Notes, note)
}

// stands reports whether the tree is the one that a round left because it was
// put back to it since the last round.
func (r *Run) stands(round int) bool {
	to := r.putBackTo()
	return to != nil && *to == round
}

// keepBest puts the tree of the best round back, where rounds or budget have
// run out and it had fewer findings than the last; kept says that it did.
func (r *Run) keepBest(ctx context.Context, kind Kind) (kept bool, err error) {
	best, ok := better(r.ended())
	if !ok || !r.Trust.KeepBest || !kind.UsedUp() || r.stands(best.Round) {
		return false, nil
	}
	ctx = context.WithoutCancel(ctx)
	back, err := Reverse(ctx, r.Journal, r.Tree, best.Round, r.Own)
	if err != nil {
		return false, err
	}
	_, err = back.Carry(ctx, false)
	return err == nil, err
}

// outOfPatience ends a run that has come back as often as it may.
func (r *Run) outOfPatience(s *State) {
	states := append(r.earlier(s.Round), *s)
	if r.stuck(states) {
		next := resumeWith("patience", r.Limits.Patience*2)
		next.Or = byHand
		halt(s, KindStuck, fmt.Sprintf("no progress: %d of %d rounds ended in an earlier state", repeats(states), s.Round), next)
	}
}
