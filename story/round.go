package story

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hone/check"
	"hone/history"
	"hone/internal/render"
	"hone/journal"
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
	Unconfirmed int64         // tokens reserved for calls of which no use was reported
	Cost        *float64      // USD; nil if it is unknown, or if no model was called

	// Spans are what the round spent its time on, in the order of their begins.
	Spans []Span

	changes map[string]Change
	spent   history.Ledger
}

// Span is a part of a round's time.
type Span struct {
	Kind, Name string        // Kind is "model", "tool", "check", "command" or "wait"
	From, To   time.Duration // since the round began; To is the last known time if it has not ended
	Began      history.Event // of a wait, the event that says why
	Ended      history.Event // the zero Event if it has not ended, and of a wait
	open       bool
}

// Outcome is how a round or a run ended, as the mark before its line.
type Outcome string

// The outcomes.
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

// Name names the round.
func (r Round) Name() string {
	if r.Number == 0 {
		return "start"
	}
	return fmt.Sprintf("round %d", r.Number)
}

// Checked reports whether the round was judged, so that its findings are all that is left.
func (r Round) Checked() bool { return r.Outcome == Passed || r.Outcome == Failed }

// Decided reports whether the round has ended with a decision.
func (r Round) Decided() bool { return r.Checked() || r.Outcome == Held }

// Left returns how many findings keep the run going after the round.
func (r Round) Left() int { return check.Count(check.BlockingOf(r.Findings)) }

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

// FilesText names the files that changed, with the lines that were added and removed,
// in so many columns.
func (r Round) FilesText(columns int) string {
	changes := r.Changes()
	added, removed := 0, 0
	for _, c := range changes {
		added, removed = added+c.Added, removed+c.Removed
	}
	lines := render.StatText(added, removed, "−")
	switch len(changes) {
	case 0:
		return ""
	case 1:
		path := []rune(render.Line(changes[0].Path))
		for room := max(4, columns-render.Width(lines)-1); len(path) > 1 && render.Width(string(path)) > room; path[0] = '…' {
			path = path[1:]
		}
		return string(path) + " " + lines
	}
	return render.Count(len(changes), "file") + " " + lines
}

type rounds struct {
	o           Options
	done        []Round                   // that have ended
	round       Round                     // the last one
	isOpen      bool                      // an event belongs to the round, and the round has not ended
	ended       bool                      // by the last event
	since, last int64                     // the run's active time at the round's first and last event, in milliseconds
	undecided   int                       // the first round that is not decided
	reserved    map[int64]history.Reserve // that are open, by their numbers
	before      string                    // the manifest before the command that runs
	deltas      []workspace.Delta
	found       []check.Finding // the blocking findings of the last round that was decided
	old         int             // findings of the last check that do not count
}

// RoundsOf returns the rounds of a recorded run. working means that a process works on the
// last one, if that has not ended.
func RoundsOf(events []history.Event, get history.Get, own func(string) bool, working bool) []Round {
	f := New(Options{Get: get, Own: own, Silent: true})
	for _, e := range events {
		f.Add(e)
	}
	return f.Rounds(working)
}

// Rounds returns the rounds so far. working means that a process works on the last one, if
// that has not ended.
func (f *rounds) Rounds(working bool) []Round {
	all := slices.Clone(f.done)
	if r, ok := f.Open(); ok && r.Number > 0 {
		if r.Outcome, r.Verdict = Unfinished, "not finished"; working {
			r.Outcome, r.Verdict = Running, "not finished yet"
		}
		all = f.joined(all, r)
	}
	if n := len(all); working && n > 0 && all[n-1].Outcome == Unfinished {
		all[n-1].Outcome, all[n-1].Verdict = Running, "not finished yet"
	}
	return all
}

// Open returns the round that has not ended. ok is false if none is open; the round is
// then the last one, without what happened in it.
func (f *rounds) Open() (r Round, ok bool) {
	if !f.isOpen {
		return Round{Number: f.round.Number}, false
	}
	r = f.round.priced()
	r.Took = time.Duration(f.last-f.since) * time.Millisecond
	return r, true
}

// Ended returns the round that the last event ended, as far as it is not part of an earlier
// one; nil if it ended none. A round that is resumed, or decided again, ends again.
func (f *rounds) Ended() *Round {
	if !f.ended {
		return nil
	}
	return &f.round
}

// A round that was resumed or decided again is joined with the last one.
func (f *rounds) joined(all []Round, r Round) []Round {
	n := len(all)
	if n == 0 || all[n-1].Number != r.Number {
		return append(all, r)
	}
	earlier, changes := all[n-1], map[string]Change{}
	maps.Copy(changes, earlier.changes)
	for path, c := range r.changes {
		if was, ok := changes[path]; ok {
			c.Before = was.Before
		}
		changes[path] = f.count(c)
	}
	r.changes = changes
	spans := slices.Clone(earlier.Spans)
	for _, span := range r.Spans {
		span.From, span.To = span.From+earlier.Took, span.To+earlier.Took
		spans = append(spans, span)
	}
	r.Spans = spans
	r.Took += earlier.Took
	r.spent = earlier.spent.Plus(r.spent)
	all[n-1] = r.priced()
	return all
}

func (r Round) priced() Round {
	r.Tokens, r.Unconfirmed, r.Cost = r.spent.Tokens-r.spent.Assumed, r.spent.Assumed, nil
	if r.spent.Tokens > 0 {
		r.Cost = r.spent.Price()
	}
	return r
}

func (f *rounds) add(e history.Event) {
	f.deltas = nil
	if f.ended {
		f.round, f.ended = Round{Number: f.round.Number}, false
	}
	if s := e.Step; s != nil && s.Round >= f.undecided && (!f.isOpen || s.Round > f.round.Number) {
		f.round, f.isOpen, f.since = Round{Number: s.Round}, true, e.Active
	}
	f.last = e.Active
	f.span(e)
	switch p := e.Payload.(type) {
	case history.Reserve:
		f.round.spent = f.round.spent.Reserved(p)
		f.reserved[e.Seq] = p
	case history.Commit:
		f.round.spent = f.round.spent.Repaid(f.reserved[p.Reserve], p)
		delete(f.reserved, p.Reserve)
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
	case history.Checked:
		f.old = p.Old
	case history.State:
		f.undecided = p.Round + 1
		f.round.Findings = p.Findings
		left := check.BlockingOf(p.Findings)
		f.round.Outcome, f.round.Verdict = verdict(p, left, f.found)
		if f.round.Outcome == Passed && p.Kind == "" && f.old > 0 {
			f.round.Verdict = fmt.Sprintf("nothing new; %d from before the run remain", f.old)
		}
		f.found = left
		f.end()
	case history.Undone: // a round that is not decided begins again
		if n := len(f.done); f.isOpen {
			f.round.changes = nil
		} else if n > 0 && f.done[n-1].Outcome == Unfinished {
			f.done[n-1].changes = nil
		}
	case history.End, history.Resumed:
		if f.isOpen && f.round.Number > 0 {
			f.round.Outcome, f.round.Verdict = Unfinished, "not finished"
			f.end()
		}
	}
}

func (f *rounds) span(e history.Event) {
	now := time.Duration(e.Active-f.since) * time.Millisecond
	begin := func(kind, name string) {
		f.round.Spans = append(f.round.Spans, Span{Kind: kind, Name: name, From: now, To: now, Began: e, open: true})
	}
	for i, s := range f.round.Spans {
		if s.open {
			f.round.Spans[i].To = now
			if e.Phase == journal.Record && e.Step != nil && *e.Step == *s.Began.Step {
				f.round.Spans[i].open, f.round.Spans[i].Ended = false, e
			}
		}
	}
	switch p := e.Payload.(type) {
	case history.Asked:
		begin("model", ModelName(p.Model)+", "+p.Role)
	case history.ToolCall:
		if p.Refused == "" {
			begin("tool", p.Tool+" "+Short(mainArgs(p.Args), lineArgs))
		}
	case history.CheckBegun:
		begin("check", e.Step.Name)
	case history.CommandBegun:
		begin("command", e.Step.Name)
	case history.Retried:
		f.round.Spans = append(f.round.Spans, Span{Kind: "wait", Name: p.Error, From: now, To: now + time.Duration(p.Wait)*time.Millisecond, Began: e})
	}
}

// The changes are the difference between the manifest before a role's command or an agent and this one.
func (f *rounds) addDeltas(manifest string) {
	before := f.before
	f.before = ""
	if before == "" || before == manifest || f.o.Get == nil {
		return
	}
	tree := workspace.Series{Get: f.o.Get}
	if _, err := tree.MoveTo(before); err != nil {
		return
	}
	deltas, err := tree.MoveTo(manifest)
	if err != nil {
		return
	}
	f.deltas = slices.DeleteFunc(deltas, func(d workspace.Delta) bool { return f.o.Own != nil && f.o.Own(d.Path) })
	for _, d := range f.deltas {
		f.change(d.Path, d.Before.Digest, d.After.Digest)
	}
}

func (f *rounds) change(path, before, after string) {
	if f.o.Own != nil && f.o.Own(path) {
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
	f.round.changes[path] = f.count(c)
}

func (f *rounds) count(c Change) Change {
	c.Added, c.Removed = render.Stat(f.content(c.Before), f.content(c.After))
	return c
}

// largestStat is the size in bytes of the largest file whose lines are counted.
const largestStat = 1 << 20

// It is nil if the file does not exist or is not known.
func (f *rounds) content(digest string) []byte {
	if digest == "" || f.o.Get == nil {
		return nil
	}
	b, err := f.o.Get(digest)
	if err != nil || len(b) > largestStat {
		return nil
	}
	return b
}

func (f *rounds) end() {
	f.round = f.round.priced()
	if f.isOpen {
		f.round.Took = time.Duration(f.last-f.since) * time.Millisecond
	}
	f.isOpen, f.ended = false, true
	f.done = f.joined(f.done, f.round)
}

// left are the round's blocking findings, before those of the round before it.
func verdict(st history.State, left, before []check.Finding) (o Outcome, why string) {
	o, why = Passed, "check passed"
	switch {
	case st.Score != nil && st.Score.Why != "":
		o, why = Failed, st.Score.Verdict()
	case st.Score != nil:
		why = st.Score.Verdict()
	case check.Blocking(st.Checked), slices.ContainsFunc(left, func(f check.Finding) bool { return f.Source != check.SourceReply && !f.Blocker }):
		o, why = Failed, gist(left, before)
	case len(left) > 0:
		o, why = Held, gist(left, before)
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
