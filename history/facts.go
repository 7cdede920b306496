package history

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hone/check"
	"hone/journal"
	"hone/model"
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

// Ledger is what a run's model calls cost. A reserve counts in full until it is
// committed.
type Ledger struct {
	Reserves int     // calls that were reserved
	Tokens   int64   // charged or reserved
	Assumed  int64   // the part of Tokens that no provider confirmed
	Cost     float64 // USD, of the calls whose cost is known
	Unpriced int     // calls whose cost is not known
	Known    model.Usage
}

// Price returns the cost in USD; nil if that of some call is unknown.
func (l Ledger) Price() *float64 {
	if l.Unpriced > 0 {
		return nil
	}
	return &l.Cost
}

func (l *Ledger) reserve(r Reserve) {
	l.Reserves++
	l.Tokens += r.Tokens
	l.Assumed += r.Tokens
	if r.Cost == nil {
		l.Unpriced++
		return
	}
	l.Cost += *r.Cost
}

func (l *Ledger) commit(r Reserve, c Commit) {
	l.Tokens += c.Tokens - r.Tokens
	l.Assumed -= r.Tokens
	if c.Usage == nil {
		l.Assumed += c.Tokens
	} else {
		l.Known = l.Known.Add(*c.Usage)
		l.Assumed += c.Assumed
	}
	switch {
	case c.Cost == nil:
	case r.Cost == nil: // the server reported it
		l.Unpriced--
		l.Cost += *c.Cost
	default:
		l.Cost += *c.Cost - *r.Cost
	}
}

// Reserved returns the ledger after a reserve.
func (l Ledger) Reserved(r Reserve) Ledger {
	l.reserve(r)
	return l
}

// Plus returns what two ledgers add up to.
func (l Ledger) Plus(o Ledger) Ledger {
	return Ledger{l.Reserves + o.Reserves, l.Tokens + o.Tokens, l.Assumed + o.Assumed, l.Cost + o.Cost, l.Unpriced + o.Unpriced, l.Known.Add(o.Known)}
}

// Repaid returns the ledger after a reserve is replaced.
func (l Ledger) Repaid(r Reserve, c Commit) Ledger {
	l.commit(r, c)
	return l
}

// Repayment returns the usage that replaces a reserve for another run.
func Repayment(reserve int64, used Ledger) Commit {
	return Commit{Reserve: reserve, Usage: &used.Known, Tokens: used.Tokens, Assumed: used.Assumed, Cost: used.Price(), Basis: "run"}
}

// Outage is a period in which every attempt at a model call failed. The zero value is no
// outage, and is ready to use.
type Outage struct {
	Since time.Time // of the first failure
	Until time.Time // when the attempt that got the reply began, or whatever else ended the wait; zero if nothing has
	Tries int       // that failed
	Error string    // of the last one
	last  time.Time // of the last one
	next  time.Time // when another attempt begins
}

const longOutage = time.Minute

// Add adds the next event of a run. It returns the outage that the event ended; the
// zero value if it ended none.
func (o *Outage) Add(e Event) (over Outage) {
	switch v := e.Payload.(type) {
	case Retried:
		if o.Tries == 0 {
			o.Since = e.Time
		}
		o.Tries, o.Error, o.last = o.Tries+1, v.Error, e.Time
		o.next = e.Time.Add(time.Duration(v.Wait) * time.Millisecond)
	case Replied:
		return o.end(o.next) // however long the model took to reply
	case FailedOver, End:
		return o.end(e.Time)
	case Resumed: // nothing is known about the time since the last failure
		return o.end(o.last)
	}
	return over
}

func (o *Outage) end(at time.Time) (over Outage) {
	if over = *o; over.Tries > 0 {
		over.Until = at
	}
	*o = Outage{}
	return over
}

// Long reports whether the outage is worth a line, because it has lasted for a minute or
// more. If it is not over, it has lasted until now.
func (o Outage) Long(now time.Time) bool { return o.Tries > 0 && o.Lasted(now) >= longOutage }

// Lasted returns how long the outage lasted, or has lasted until now.
func (o Outage) Lasted(now time.Time) time.Duration {
	if !o.Until.IsZero() {
		now = o.Until
	}
	return now.Sub(o.Since)
}

// Outages returns the long outages of a run, in order. The last one may not be
// over.
func Outages(events []Event, now time.Time) []Outage {
	var all []Outage
	var o Outage
	for _, e := range events {
		if over := o.Add(e); over.Long(now) {
			all = append(all, over)
		}
	}
	if o.Long(now) {
		all = append(all, o)
	}
	return all
}
