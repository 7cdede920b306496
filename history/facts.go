package history

import (
	"cmp"
	"maps"
	"slices"

	"hone/check"
	"hone/journal"
	"hone/workspace"
)

// Facts returns what follows from the events so far.
func (p *Past) Facts() Facts {
	defer p.lock().Unlock()
	return p.now
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

// OwnFiles adds outputs to the files that a loop writes for users; nil if there are none of
// both.
func OwnFiles(loops func(path string) bool, outputs []string) func(path string) bool {
	if len(outputs) == 0 {
		return loops
	}
	return func(path string) bool { return slices.Contains(outputs, path) || loops != nil && loops(path) }
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
		n = p.now.State.Round
		if p.now.Answered {
			n++
		}
	}
	return n
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

// Restarted returns the last round after which a model was asked that did not know what led to it,
// because another one has taken its place since, or that did not know the user's answer to the
// last of what the model asked; 0 if there is none.
func (p *Past) Restarted() int {
	defer p.lock().Unlock()
	return max(p.swapped, p.told)
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

// UndoneTo returns the round whose tree the user restored; nil if the tree is that of the last
// round, or of the best one, which the run itself restored.
func (p *Past) UndoneTo() *int {
	now := p.Facts()
	if to := now.RestoredTo; to != nil && *to != now.State.Round && !(now.End.Restored && *to == now.End.Best) {
		return to
	}
	return nil
}

// NewestManifest returns the object of the newest manifest, and the files that edits wrote
// since. certain means that nothing else of hone's can have changed the tree since: no
// command, check or server ran. The object is empty if there is no manifest.
func (p *Past) NewestManifest() (object string, written map[string]workspace.Image, certain bool) {
	defer p.lock().Unlock()
	return p.manifest, maps.Clone(p.since), !p.ran && !p.served
}
