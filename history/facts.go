package history

import (
	"cmp"
	"maps"
	"slices"

	"hone/check"
	"hone/journal"
	"hone/workspace"
)

// Err returns why an event cannot be read; nil if all can. Another version of
// hone wrote such an event, and the rest of the past leaves it out.
func (p *Past) Err() error {
	defer p.lock().Unlock()
	return p.fault
}

// Events returns all events, in order.
func (p *Past) Events() []Event {
	defer p.lock().Unlock()
	return p.events[:len(p.events):len(p.events)]
}

// First returns the first event; the zero Event if there is none.
func (p *Past) First() (e Event) {
	defer p.lock().Unlock()
	if len(p.events) > 0 {
		e = p.events[0]
	}
	return e
}

// Last returns the last event; the zero Event if there is none.
func (p *Past) Last() (e Event) {
	defer p.lock().Unlock()
	if n := len(p.events); n > 0 {
		e = p.events[n-1]
	}
	return e
}

// LastRound returns the last round that an event names, decided or not; 0 if none does.
func (p *Past) LastRound() int {
	defer p.lock().Unlock()
	return p.round
}

// Limits returns the limits of the start, or of the last resume.
func (p *Past) Limits() Limits {
	defer p.lock().Unlock()
	return p.limits
}

// Outputs returns the files of the tree into which processes of the run wrote their
// output. They are not part of what the run watches, lists or restores (ruling G24).
func (p *Past) Outputs() []string {
	defer p.lock().Unlock()
	return p.outputs
}

// OwnFiles adds outputs to the files that a loop writes for users; nil if there are none of
// both.
func OwnFiles(loops func(path string) bool, outputs []string) func(path string) bool {
	if len(outputs) == 0 {
		return loops
	}
	return func(path string) bool { return slices.Contains(outputs, path) || loops != nil && loops(path) }
}

// Begun reports whether the run has started any step.
func (p *Past) Begun() bool {
	defer p.lock().Unlock()
	return p.begun
}

// End returns how the run ended; ok is false if it has not ended, or was
// resumed since.
func (p *Past) End() (end End, ok bool) {
	defer p.lock().Unlock()
	if p.end == nil {
		return end, false
	}
	return *p.end, true
}

// AtEnd reports whether the last event is the run's end.
func (p *Past) AtEnd() bool {
	defer p.lock().Unlock()
	return p.atEnd
}

// State returns the state after the last decision. If the tree was restored
// since, the state has the tree and the findings of that round. Before the
// first decision it is round 0, without a decision.
func (p *Past) State() State {
	defer p.lock().Unlock()
	return p.state
}

// States returns the state after each round that was decided, in order.
func (p *Past) States() []State {
	defer p.lock().Unlock()
	return p.states[:len(p.states):len(p.states)]
}

// Before returns the state after the check before the first round; ok is false if it did
// not run then.
func (p *Past) Before() (s State, ok bool) {
	defer p.lock().Unlock()
	if p.before == nil {
		return s, false
	}
	return *p.before, true
}

// Round returns what has happened in a round; zero if nothing has.
func (p *Past) Round(n int) Round {
	defer p.lock().Unlock()
	if r := p.rounds[n]; r != nil {
		return *r
	}
	return Round{}
}

// Part returns how many parts of a round are over: each ended with a decision, or with the
// restoration of an earlier tree. Its last session is the highest number of a session in them.
func (p *Past) Part(round int) (part, sessions int) {
	defer p.lock().Unlock()
	if part = p.parts[round]; part > 0 {
		for _, e := range p.events {
			if e.Step != nil && e.Step.Round == round && e.Step.Part < part {
				sessions = max(sessions, e.Step.Session)
			}
		}
	}
	return part, sessions
}

// Ledger returns what the run's model calls have cost so far.
func (p *Past) Ledger() Ledger {
	defer p.lock().Unlock()
	return p.ledger
}

// Charged returns what the provider, or another run, says that the calls of a role used;
// the zero Ledger if there is none.
func (p *Past) Charged(role string) Ledger {
	defer p.lock().Unlock()
	return p.charged[role]
}

// Reserved returns the reserves that are not committed, by the numbers of their events.
func (p *Past) Reserved() map[int64]Reserve {
	defer p.lock().Unlock()
	return maps.Clone(p.open)
}

// Attempts returns the last state of each attempt, in the order of their numbers; nil if
// there are none.
func (p *Past) Attempts() []Attempt {
	defer p.lock().Unlock()
	return slices.SortedFunc(slices.Values(p.attempts), func(a, b Attempt) int { return cmp.Compare(a.Number, b.Number) })
}

// Rounds returns how many rounds a model has replied in: those of all attempts in a run that
// has some.
func (p *Past) Rounds() int {
	defer p.lock().Unlock()
	n := 0
	for _, a := range p.attempts {
		n += a.Rounds
	}
	if len(p.attempts) == 0 {
		n = p.state.Round
		if p.answers {
			n++
		}
	}
	return n
}

// Replies returns the number of recorded replies.
func (p *Past) Replies() int {
	defer p.lock().Unlock()
	return p.replies
}

// Answered reports whether a reply was recorded since the last decision.
func (p *Past) Answered() bool {
	defer p.lock().Unlock()
	return p.answers
}

// HasReplied reports whether a reply of a model was recorded.
func (p *Past) HasReplied(model string) bool {
	defer p.lock().Unlock()
	return p.models[model]
}

// HasFailed reports whether another model has taken the place of a model.
func (p *Past) HasFailed(model string) bool {
	defer p.lock().Unlock()
	return p.failed[model]
}

// HasEscalated reports whether it is recorded that another model does the rounds of a
// model.
func (p *Past) HasEscalated(model string) bool {
	defer p.lock().Unlock()
	return p.raised[model]
}

// ModelChanges returns a line for each time that another model was asked from then on.
func (p *Past) ModelChanges() []string {
	defer p.lock().Unlock()
	return p.swaps[:len(p.swaps):len(p.swaps)]
}

// Restarted returns the last round after which a model was asked that did not know what led to it,
// because another one has taken its place since, or that did not know the user's answer to the
// last of what the model asked; 0 if there is none.
func (p *Past) Restarted() int {
	defer p.lock().Unlock()
	return max(p.swapped, p.told)
}

// Outage returns the outage that is not over; the zero value if there is none.
func (p *Past) Outage() Outage {
	defer p.lock().Unlock()
	return p.outage
}

// Resumes returns how often the run was resumed.
func (p *Past) Resumes() int {
	defer p.lock().Unlock()
	return p.resumes
}

// Noticed reports whether the user was told a text ([Notice]).
func (p *Past) Noticed(text string) bool {
	defer p.lock().Unlock()
	_, ok := p.noticed[text]
	return ok
}

// Advised returns what a notice told the user to do with a flag, such as tools; ok is false if
// none did.
func (p *Past) Advised(flag string) (next Next, ok bool) {
	defer p.lock().Unlock()
	for _, n := range p.noticed {
		if slices.ContainsFunc(n.Next.Flags, func(f Flag) bool { return f.Name == flag }) {
			return n.Next, true
		}
	}
	return Next{}, false
}

// Denied returns what the walls kept commands from, with the flags that allow it; nil if there is nothing.
func (p *Past) Denied() (texts []string) {
	defer p.lock().Unlock()
	for _, n := range p.noticed {
		text := n.Text
		for _, f := range n.Next.Flags {
			text += "; --" + f.Name + " allows it"
		}
		if n.Denied {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	return texts
}

// Records returns the records of the steps of these names, in order.
func (p *Past) Records(names ...string) []Event {
	defer p.lock().Unlock()
	var at []int
	for _, name := range names {
		at = append(at, p.records[name]...)
	}
	slices.Sort(at)
	var records []Event
	for _, i := range at {
		records = append(records, p.events[i])
	}
	return records
}

// Begin returns the last begin of a step; ok is false if the step was not
// started.
func (p *Past) Begin(id journal.Identity) (e Event, ok bool) {
	defer p.lock().Unlock()
	return p.begin(id)
}

func (p *Past) begin(id journal.Identity) (e Event, ok bool) {
	i, ok := p.begins[id]
	if ok {
		e = p.events[i]
	}
	return e, ok
}

// Record returns the record of a step; ok is false if there is none.
func (p *Past) Record(id journal.Identity) (e Event, ok bool) {
	defer p.lock().Unlock()
	i, ok := p.recorded[id]
	if ok {
		e = p.events[i]
	}
	return e, ok
}

// Since returns the events after the record of a step, up to the next step of its name; nil
// without a record. A resumed or replayed round knows what it did later.
func (p *Past) Since(step journal.Identity) []Event {
	defer p.lock().Unlock()
	for i, at := range p.records[step.Name] {
		if *p.events[at].Step != step {
			continue
		}
		end := len(p.events)
		if next := p.records[step.Name][i+1:]; len(next) > 0 {
			end = next[0]
		}
		return p.events[at+1 : end : end]
	}
	return nil
}

// Opened returns the tree as the run found it; ok is false before its first
// round.
func (p *Past) Opened() (o Opened, ok bool) {
	defer p.lock().Unlock()
	if p.opened == nil {
		return o, false
	}
	return *p.opened, true
}

// FirstCheck returns what the check found before the first round; ok is false
// if it did not run then.
func (p *Past) FirstCheck() (c Checked, ok bool) {
	defer p.lock().Unlock()
	if p.checked == nil {
		return c, false
	}
	return *p.checked, true
}

// Baseline returns the object with the findings that were there before the first round, and do
// not count; empty if all count.
func (p *Past) Baseline() string {
	defer p.lock().Unlock()
	return p.baseline
}

// LastCheck returns the newest record of a check; ok is false if there is none.
func (p *Past) LastCheck() (c Checked, ok bool) {
	defer p.lock().Unlock()
	if p.latest == nil {
		return c, false
	}
	return *p.latest, true
}

// Passed returns the record of the check that passed with the tree that the run was done
// with; ok is false if the run is not done, or if no check saw that tree. What an undo has
// restored since does not count.
func (p *Past) Passed() (record Event, ok bool) {
	var end State
	for _, e := range slices.Backward(p.Events()) {
		switch v := e.Payload.(type) {
		case State:
			if end.Decision == "" {
				end = v
			}
		case Checked:
			if end.Decision == Done && v.Tree == end.Tree && v.From == "" && !check.Blocking(v.Findings) {
				return e, true
			}
		}
	}
	return record, false
}

// Edits returns the edits that were applied, in order.
func (p *Past) Edits() []workspace.Verdict {
	defer p.lock().Unlock()
	return p.edits[:len(p.edits):len(p.edits)]
}

// OutsideChanges returns the files that were changed outside the run since its last
// round opened.
func (p *Past) OutsideChanges() []string {
	defer p.lock().Unlock()
	return p.outside
}

// UntoldChanges returns the files that were changed outside the run since its last round
// opened or its last command ended. The result of the next command tells the model.
func (p *Past) UntoldChanges() []string {
	defer p.lock().Unlock()
	return p.untold
}

// RestoredTo returns the round whose tree was restored since the last round
// opened; nil if none was.
func (p *Past) RestoredTo() *int {
	defer p.lock().Unlock()
	return p.restored
}

// UndoneTo returns the round whose tree the user restored; nil if the tree is that of the last
// round, or of the best one, which the run itself restored.
func (p *Past) UndoneTo() *int {
	end, _ := p.End()
	to := p.RestoredTo()
	if to == nil || *to == p.State().Round || end.Restored && *to == end.Best {
		return nil
	}
	return to
}

// NewestManifest returns the object of the newest manifest, and the files that edits wrote
// since. certain means that nothing else of hone's can have changed the tree since: no
// command, check or server ran. The object is empty if there is no manifest.
func (p *Past) NewestManifest() (object string, written map[string]workspace.Image, certain bool) {
	defer p.lock().Unlock()
	return p.manifest, maps.Clone(p.since), !p.ran && !p.served
}
