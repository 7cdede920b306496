// Package rounds folds the events of a run into its rounds: which files each of them
// changed, how it ended, and what it used. Screens show a finished round as one line,
// which [Round.Lines] returns.
//
// [Fold] follows a run as its events arrive. [Of] returns the rounds of a recorded run.
package rounds

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hone/check"
	"hone/history"
	"hone/internal/render"
	"hone/workspace"
)

// Round is what happened in a round. Number 0 is the check before the first round.
type Round struct {
	Number      int
	Outcome     Outcome
	Verdict     string // why, in one line; it may contain control characters
	Findings    []check.Finding
	Took        time.Duration // active time
	Tokens      int64         // that providers reported
	Unconfirmed int64         // tokens charged for calls of which no use was reported
	Cost        *float64      // USD; nil if it is unknown, or if no model was called

	changes  map[string]Change
	cost     float64
	unpriced bool // the price of some call is unknown
}

// Outcome is how a round ended, as the mark before its line.
type Outcome string

// The outcomes of a round.
const (
	Passed     Outcome = "✓"
	Failed     Outcome = "✗" // the check, a review or a suite found something wrong
	Held       Outcome = "!" // nothing was judged, or the run stopped
	Unfinished Outcome = "-"
	Running    Outcome = "▸" // a process works on it
)

// Mark returns the outcome in its colour.
func (o Outcome) Mark(c render.Colours) string {
	switch o {
	case Passed:
		return c.Green(string(o))
	case Failed:
		return c.Red(string(o))
	case Held:
		return c.Yellow(string(o))
	}
	return string(o)
}

// Change is how a round changed a file: the digests of its contents, which are empty
// if it does not exist, and the lines that were added and removed.
type Change struct {
	Path           string
	Before, After  string
	Added, Removed int
}

// Changes returns the files that differ from those that the round found, sorted by
// path.
func (r Round) Changes() []Change {
	var list []Change
	for _, path := range slices.Sorted(maps.Keys(r.changes)) {
		if c := r.changes[path]; c.Before != c.After {
			list = append(list, c)
		}
	}
	return list
}

// Fold follows a run from round to round. The zero value is ready to use.
type Fold struct {
	// Get reads an object of the run. If it is nil, changes by commands are not
	// known, and no lines are counted.
	Get history.Get
	// Own reports whether the loop itself writes a file for the user. Changes of such
	// a file are left out. Nil means that there are no such files.
	Own func(path string) bool
	// Lines counts the lines that were added and removed at each change.
	Lines bool

	round       Round
	open        bool  // an event belongs to the round, and the round has not ended
	since, last int64 // the run's active time at its first and last event, in milliseconds
	undecided   int   // the first round that is not decided
	before      string
	deltas      []workspace.Delta
	found       []check.Finding // the blocking findings of the last round that was decided
}

// Of returns the rounds of a recorded run. The last one may be [Unfinished].
func Of(events []history.Event, get history.Get, own func(string) bool) []Round {
	f := Fold{Get: get, Own: own}
	var all []Round
	add := func(r *Round) {
		switch n := len(all); {
		case r == nil:
		case n > 0 && all[n-1].Number == r.Number: // resumed, or decided again
			all[n-1] = joinRounds(all[n-1], *r)
		default:
			all = append(all, *r)
		}
	}
	for _, e := range events {
		add(f.Add(e))
	}
	add(f.cut())
	for _, r := range all {
		for path, c := range r.changes {
			r.changes[path] = f.withCounts(c)
		}
	}
	return all
}

// joinRounds returns a round with what was added to it after it had ended.
func joinRounds(r, later Round) Round {
	changes := map[string]Change{}
	maps.Copy(changes, r.changes)
	for path, c := range later.changes {
		if earlier, ok := changes[path]; ok {
			c.Before = earlier.Before
		}
		changes[path] = c
	}
	later.changes = changes
	later.Took += r.Took
	later.Tokens += r.Tokens
	later.Unconfirmed += r.Unconfirmed
	later.cost += r.cost
	later.unpriced = later.unpriced || r.unpriced
	return later.priced()
}

// priced returns the round with its cost, if that is known.
func (r Round) priced() Round {
	if r.Cost = nil; !r.unpriced && r.Tokens+r.Unconfirmed > 0 {
		r.Cost = &r.cost
	}
	return r
}

// Open returns the round that has not ended. ok is false if none is open; the round is
// then the last one, without what happened in it.
func (f *Fold) Open() (r Round, ok bool) { return f.round, f.open }

// Deltas returns what the command changed after which the last event was recorded,
// without the loop's own files.
func (f *Fold) Deltas() []workspace.Delta { return f.deltas }

// Add adds the next event of the run. It returns the round that the event ended; nil if
// it ended none. A round that is resumed, or decided again, ends again.
func (f *Fold) Add(e history.Event) *Round {
	f.deltas = nil
	if s := e.Step; s != nil && s.Round >= f.undecided && (!f.open || s.Round > f.round.Number) {
		f.round, f.open, f.since = Round{Number: s.Round}, true, e.Active
	}
	f.last = e.Active
	switch p := e.Payload.(type) {
	case history.Commit:
		f.charge(p)
	case history.ToolCall:
		f.before = p.Manifest
	case history.Asked:
		if p.Command {
			f.before = p.Manifest
		}
	case history.Changed:
		if p.Ruling == workspace.Allow {
			f.change(p.Path, p.Before.Digest, p.After.Digest)
		}
	case history.Snapshot:
		f.addDeltas(p.Manifest)
	case history.State:
		return f.decide(p)
	case history.End, history.Resumed:
		return f.cut()
	}
	return nil
}

// charge adds what a model call used.
func (f *Fold) charge(c history.Commit) {
	if c.Usage == nil {
		f.round.Unconfirmed += c.Tokens
	} else {
		f.round.Tokens += c.Tokens
	}
	if c.Cost == nil {
		f.round.unpriced = true
		return
	}
	f.round.cost += *c.Cost
}

// addDeltas adds what a role's command or an agent changed: the difference between the
// manifest before it and this one.
func (f *Fold) addDeltas(manifest string) {
	before := f.before
	f.before = ""
	if before == "" || before == manifest || f.Get == nil {
		return
	}
	tree := workspace.Series{Get: f.Get}
	if _, err := tree.MoveTo(before); err != nil {
		return
	}
	deltas, err := tree.MoveTo(manifest)
	if err != nil {
		return
	}
	f.deltas = slices.DeleteFunc(deltas, func(d workspace.Delta) bool { return f.Own != nil && f.Own(d.Path) })
	for _, d := range f.deltas {
		f.change(d.Path, d.Before.Digest, d.After.Digest)
	}
}

// change adds the change of a file to those of the round.
func (f *Fold) change(path, before, after string) {
	if f.Own != nil && f.Own(path) {
		return
	}
	if f.round.changes == nil {
		f.round.changes = map[string]Change{}
	}
	c, known := f.round.changes[path]
	if !known {
		c = Change{Path: path, Before: before}
	}
	c.After = after
	if f.Lines {
		c = f.withCounts(c)
	}
	f.round.changes[path] = c
}

// withCounts returns a change with the numbers of its lines.
func (f *Fold) withCounts(c Change) Change {
	c.Added, c.Removed = render.Stat(f.content(c.Before), f.content(c.After))
	return c
}

// content returns the contents of a file; nil if it does not exist or is not known.
func (f *Fold) content(digest string) []byte {
	if digest == "" || f.Get == nil {
		return nil
	}
	b, err := f.Get(digest)
	if err != nil || len(b) > largestStat {
		return nil
	}
	return b
}

// largestStat is the size in bytes of the largest file whose lines are counted.
const largestStat = 1 << 20

// decide ends the round with a decision.
func (f *Fold) decide(st history.State) *Round {
	f.undecided = st.Round + 1
	f.round.Findings = st.Findings
	blocking := slices.DeleteFunc(slices.Clone(st.Findings), func(f check.Finding) bool { return !f.Blocks() })
	f.round.Outcome, f.round.Verdict = verdict(st, blocking, f.found)
	f.found = blocking
	return f.end()
}

// cut ends a round that was not decided.
func (f *Fold) cut() *Round {
	if !f.open || f.round.Number == 0 {
		return nil
	}
	f.round.Outcome, f.round.Verdict = Unfinished, "not finished"
	return f.end()
}

func (f *Fold) end() *Round {
	r := f.round.priced()
	if f.open {
		r.Took = time.Duration(f.last-f.since) * time.Millisecond
	}
	f.round, f.open = Round{Number: r.Number}, false
	return &r
}

// verdict returns how a round ended, and why. blocking are its blocking findings,
// before those of the round before it.
func verdict(st history.State, blocking, before []check.Finding) (o Outcome, why string) {
	o, why = Passed, "check passed"
	switch {
	case check.Blocking(st.Checked), slices.ContainsFunc(blocking, func(f check.Finding) bool { return f.Source != check.SourceReply && !f.Blocker }):
		o, why = Failed, gist(blocking, before)
	case len(blocking) > 0:
		o, why = Held, gist(blocking, before)
	case st.Decision == history.Done && st.Why != history.CheckPasses:
		why = st.Why
	case st.Decision == history.StopNow:
		o, why = Held, st.Why
	}
	switch {
	case st.ChangedNothing():
		why = "↻ nothing changed: " + why
	case st.Same != nil && *st.Same == 0:
		why = "↻ as before the first round: " + why
	case st.Same != nil:
		why = fmt.Sprintf("↻ as after round %d: %s", *st.Same, why)
	}
	return o, why
}
