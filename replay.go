package hone

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// Replayed is the result of a replay.
type Replayed struct {
	Rounds   int // number of decisions that match
	Requests int // number of requests that match byte for byte
	history.Retraced
	// Open means that the journal ends within a round: the run was stopped or
	// killed there.
	Open bool
}

// Replay replays the run, in two passes. The first runs the loop over the recorded journal, and
// compares requests and decisions; the second makes the recorded edits again in the run's tree,
// and compares that with the recorded ones ([history.Retrace]). No model is asked and no command
// runs. The journal must come from [journal.Home.OpenReplay], and the tree must be empty. The
// error says what differs; a difference in the tree is in the result instead. Replay must be the
// only call on the Run.
func (r *Run) Replay(ctx context.Context, round Round) (done Replayed, err error) {
	ahead := r.Journal.Remaining()
	if len(ahead) == 0 {
		return done, errors.New("the journal of the run is empty")
	}
	if ahead[0].Type != history.TypeStart {
		return done, fmt.Errorf("the journal begins with an event of the type %q, not with a start", ahead[0].Type)
	}
	r.replaying = &played{r: r, used: map[journal.Identity]bool{}}
	for len(r.Journal.Remaining()) > 0 && err == nil {
		err = r.replaying.playRound(ctx, round, &done)
	}
	if errors.Is(err, errJournalEnds) {
		done.Open, err = true, nil
	}
	done.Requests = r.replaying.requests
	if err == nil {
		done.Retraced, err = history.Retrace(ctx, r.Journal.Home(), r.Tree, r.Past().Events(), r.Own)
	}
	return done, err
}

// errJournalEnds means that the journal ends within a round.
var errJournalEnds = errors.New("the journal ends here")

// played is a run that is replayed. A round is played as if it were resumed just before its
// decision: all its steps are recorded. So each returns its record, which is valid only for the
// same input, and the decision must match the next line of the journal.
type played struct {
	r        *Run
	events   []journal.Event           // of the round, without its decision
	decision *journal.Event            // nil if the journal ends before it
	tree     workspace.Stored          // as the round left it
	used     map[journal.Identity]bool // steps whose records the loop has used
	requests int
}

func (p *played) playRound(ctx context.Context, round Round, done *Replayed) error {
	r := p.r
	p.events, p.decision = nil, nil
	for _, e := range r.Journal.Remaining() {
		if e.Type == history.TypeRound {
			p.decision = &e
			break
		}
		p.events = append(p.events, r.Journal.Skip())
	}
	if p.decision == nil && p.unused(journal.Identity{}) == nil && !p.begun() {
		return nil // nothing but the end follows the last decision
	}
	// The round is played on the tree that it left: the one of its decision, or the newest one.
	object, _, _ := r.Past().NewestManifest()
	if p.decision != nil {
		object = history.Decode(*p.decision).Manifest()
	}
	var err error
	if object != "" {
		p.tree, err = workspace.ReadManifest(object, r.Journal.Home().Get)
	}
	if err == nil {
		err = cmp.Or(r.snapshot(ctx), r.find()) // which is that tree
	}
	if err != nil {
		return err
	}
	r.Limits = r.Past().Facts().Limits
	r.Limits.Time = 0
	s := r.Past().Facts().State
	r.startRound(s.Round)
	switch {
	case r.decidesAgain(s):
		_, err = r.decide(ctx, s, s.RoundFindings(), nil)
	case p.decision != nil && history.Decode(*p.decision).Round() == 0:
		_, err = r.checkFirst(ctx, s)
	default:
		_, err = r.play(ctx, s, round)
	}
	if p.decision == nil {
		return p.stopped(ctx, err)
	}
	if err == nil {
		done.Rounds++
		if e := p.unused(journal.Identity{}); e != nil {
			err = fmt.Errorf("event %d records the step %s, which the replayed run does not take", e.Seq, e.Step)
		}
	}
	return err
}

func (p *played) begun() bool {
	for _, e := range p.events {
		if e.Step != nil && e.Step.Session >= 0 {
			return true
		}
	}
	return false
}

func (p *played) use(record journal.Event) {
	if record.Type == history.TypeReply && !p.used[*record.Step] {
		p.requests++
	}
	p.used[*record.Step] = true
}

// unused returns the first record of the round that the loop has not used; nil if there is none.
// What ended with an earlier tree, and steps within a recorded call, or within the step that is given, are not taken again. A check may
// have run again after another process judged the same tree, and a later process may have paid for
// the rest of a round.
func (p *played) unused(within journal.Identity) *journal.Event {
	for _, e := range p.events {
		if e.Phase != journal.Record || p.used[*e.Step] || e.Step.Session < 0 || e.Step.Round == p.r.at.Round && e.Step.Part < p.r.at.Part || e.Type == history.TypeCheck || e.Step.Name == history.StepUnpaid {
			continue
		}
		call := *e.Step
		call.Name, call.Index = toolStepName, 0
		if call.Call == 0 || !p.used[call] && call != within {
			return &e
		}
	}
	return nil
}

// missing says why a step has no record: the budget did not pay for it, the journal ends before
// it, or the recorded run did not take it.
func (p *played) missing(id journal.Identity) error {
	for _, e := range p.r.Past().Records(history.StepUnpaid) {
		if e.Step.Round == id.Round {
			return &Stop{Kind: KindBudget}
		}
	}
	other := p.unused(id)
	if other == nil && p.decision == nil {
		return errJournalEnds
	}
	if other == nil {
		other = p.decision
	}
	return &divergedError{*other, other.Line(), []byte("the step " + id.String())}
}

// decide compares an event that the replayed round adds with the decision, which alone may follow.
func (p *played) decide(n journal.Entry) (journal.Event, error) {
	if p.decision == nil {
		return journal.Event{}, errJournalEnds
	}
	now, err := p.r.encoded(n.Payload)
	if err == nil && n.Type != p.decision.Type {
		err = &divergedError{*p.decision, p.decision.Line(), now}
	}
	if err = cmp.Or(err, compare(*p.decision, now)); err != nil {
		return journal.Event{}, err
	}
	return p.r.Journal.Skip(), nil
}

func (p *played) same(record journal.Event, payload any) error {
	p.use(record)
	now, err := p.r.encoded(payload)
	return cmp.Or(err, compare(record, now))
}

func compare(recorded journal.Event, now []byte) error {
	// Encoding replaces bytes that are not UTF-8, so only decoded payloads compare equal.
	again, err := journal.ParseLine(now)
	again.Type, again.Phase, again.Step = recorded.Type, recorded.Phase, recorded.Step
	was, err1 := journal.Encode(history.Decode(recorded).Payload)
	is, err2 := journal.Encode(history.Decode(again).Payload)
	if err = cmp.Or(err, err1, err2); err == nil && !bytes.Equal(was, is) {
		err = &divergedError{recorded, was, is}
	}
	return err
}

// divergedError says that a replayed run does not do what was recorded.
type divergedError struct {
	event    journal.Event
	was, now []byte // of the event: what was recorded, and what the replay has
}

func (e *divergedError) Error() string {
	same := 0
	for same < min(len(e.was), len(e.now)) && e.was[same] == e.now[same] {
		same++
	}
	excerpt := func(b []byte) string {
		return strings.ToValidUTF8(string(b[max(0, same-60):min(len(b), same+160)]), "")
	}
	return fmt.Sprintf("event %d (%s) differs: recorded …%s, replayed …%s", e.event.Seq, e.event.Type, excerpt(e.was), excerpt(e.now))
}

// stopped judges the error of a round that the journal does not decide: the recorded run must
// have ended with it too.
func (p *played) stopped(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, errJournalEnds) || errors.As(err, new(*divergedError)) {
		return err
	}
	stop := p.r.stopFor(ctx, err)
	if now := p.r.Past().Facts(); !now.Ended || now.End.Kind != stop.Kind || now.End.Why != p.r.cleanText(stop.Error()) {
		return err
	}
	return nil
}
