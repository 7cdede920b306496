package history

import (
	"slices"
	"sync"

	"hone/check"
	"hone/journal"
	"hone/workspace"
)

// Past is what follows from the events of a run. Its methods may be called from
// several goroutines. Callers must not change what they return.
//
// Each event is decoded and added only once. A question needs no scan of the
// journal, however long it is.
type Past struct {
	mu     sync.Mutex
	source func() []journal.Event // nil: there are no further events
	events []Event
	facts
}

type facts struct {
	fault   error // why an event cannot be read
	limits  Limits
	outputs []string
	begun   bool
	atEnd   bool
	end     *End // nil: the run has not ended, or was resumed since
	replies int
	resumes int
	round   int             // the last one that an event names
	answers bool            // a reply was recorded since the last decision
	models  map[string]bool // that have replied
	failed  map[string]bool // models that another one has taken the place of
	raised  map[string]bool // models that another one does the rounds of
	swaps   []string        // of the model, a line for each
	swapped int             // the last round that a model did that another one has taken the place of
	outage  Outage

	state    State
	before   *State                   // before the first round; nil if the check did not run then
	states   []State                  // one for each round, the last decision of it
	rounds   map[int]*Round           // also those that are not decided
	parts    map[int]int              // of each round, those that are over
	records  map[string][]int         // by the name of the step
	begins   map[journal.Identity]int // the last begin of each step
	recorded map[journal.Identity]int // the record of each step
	noticed  map[string]Notice
	outside  []string // since the last round opened
	untold   []string // the same, since the last snapshot after a command
	restored *int     // to which round, since the last one opened
	opened   *Opened  // by the first round
	checked  *Checked // before the first round
	baseline string   // of the last check there
	latest   *Checked // the last one

	manifest string                     // newest
	ran      bool                       // a command started since
	since    map[string]workspace.Image // files written by edits since the manifest
	serving  bool                       // a loop's server is up
	served   bool                       // a server was up since the manifest
	edits    []workspace.Verdict
	approvals

	attempts []Attempt // the last state of each
	ledger   Ledger
	open     map[int64]Reserve
	charged  map[string]Ledger // by role, of the commits with a usage
}

// Follow returns the past of a run whose journal is open. It includes each event
// as soon as it is appended.
func Follow(j *journal.Journal) *Past {
	p := newPast()
	p.source = j.Events
	return p
}

// Read returns the past that consists of these events.
func Read(events []journal.Event) *Past {
	p := newPast()
	p.add(events)
	return p
}

func newPast() *Past {
	return &Past{facts: facts{
		state:    State{Findings: []check.Finding{}},
		rounds:   map[int]*Round{},
		parts:    map[int]int{},
		models:   map[string]bool{},
		failed:   map[string]bool{},
		raised:   map[string]bool{},
		records:  map[string][]int{},
		begins:   map[journal.Identity]int{},
		recorded: map[journal.Identity]int{},
		noticed:  map[string]Notice{},
		since:    map[string]workspace.Image{},
		open:     map[int64]Reserve{},
		charged:  map[string]Ledger{},
		approvals: approvals{
			given:   map[edit]Answer{},
			changes: map[int]map[string]workspace.Verdict{},
			last:    map[string]workspace.Verdict{},
			late:    map[edit]bool{},
			edited:  map[edit]edit{},
		},
	}}
}

// Events that were appended since are added first.
func (p *Past) lock() *sync.Mutex {
	p.mu.Lock()
	if p.source != nil {
		p.add(p.source())
	}
	return &p.mu
}

func (p *Past) add(events []journal.Event) {
	for _, e := range events[len(p.events):] {
		p.events = append(p.events, Decode(e))
		p.fold(p.events[len(p.events)-1])
	}
}

func (p *Past) fold(e Event) {
	_, p.atEnd = e.Payload.(End)
	p.round = max(p.round, e.Round())
	if e.Step != nil {
		p.foldStep(e)
	}
	p.foldTree(e)
	p.foldApprovals(e)
	p.outage.Add(e)
	switch v := e.Payload.(type) {
	case Unreadable:
		if p.fault == nil {
			p.fault = v.Err
		}
	case Start:
		p.limits, p.outputs = v.Limits, v.Outputs
	case Resumed:
		p.limits, p.end = v.Limits, nil
		p.outputs = slices.Concat(p.outputs, v.Outputs)
		p.resumes++
	case Notice:
		p.noticed[v.Text] = v
	case FailedOver:
		p.failed[v.From] = true
		p.swaps, p.swapped = append(p.swaps, v.String()), v.Round
	case Escalated:
		p.raised[v.From] = true
		p.swaps, p.swapped = append(p.swaps, v.String()), v.Round-1
	case State:
		p.state, p.answers = v, false
		p.parts[v.Round]++
		n := len(p.states)
		switch {
		case v.Round == 0: // the check before the first round
			p.before = &v
		case n > 0 && p.states[n-1].Round == v.Round: // a round whose questions were answered later may be decided again
			p.states = append(p.states[:n-1:n-1], v)
		default:
			p.states = append(p.states, v)
		}
	case Undone:
		p.foldUndone(v)
	case Outside:
		p.outside = append(p.outside, v.Paths...)
		p.untold = append(p.untold, v.Paths...)
	case Attempt:
		p.attempts = append(slices.DeleteFunc(p.attempts, func(a Attempt) bool { return a.Number == v.Number }), v)
	case Reserve:
		p.open[e.Seq] = v
		p.ledger.reserve(v)
	case Commit:
		if r, ok := p.open[v.Reserve]; ok {
			delete(p.open, v.Reserve)
			p.ledger.commit(r, v)
			if v.Usage != nil {
				used := Ledger{Tokens: v.Tokens, Assumed: v.Assumed, Known: *v.Usage}
				if v.Cost != nil {
					used.Cost = *v.Cost
				}
				p.charged[r.Role] = p.charged[r.Role].Plus(used)
			}
		}
	case End:
		p.end = &v
	}
}

func (p *Past) foldStep(e Event) {
	p.begun = true
	switch e.Phase {
	case journal.Begin:
		p.begins[*e.Step] = len(p.events) - 1
	case journal.Record:
		p.recorded[*e.Step] = len(p.events) - 1
		p.records[e.Step.Name] = append(p.records[e.Step.Name], len(p.events)-1)
	}
	if p.rounds[e.Step.Round] == nil {
		p.rounds[e.Step.Round] = &Round{}
	}
	p.rounds[e.Step.Round].fold(e)
	switch v := e.Payload.(type) {
	case Replied:
		p.replies++
		p.answers = true
		p.models[v.Model] = true
	case Opened:
		p.outside, p.untold, p.restored = nil, nil, nil
		if p.opened == nil {
			p.opened = &v
		}
	case Snapshot:
		p.untold = nil
	case Checked:
		p.latest = &v
		if p.checked == nil && e.Step.Round == 0 {
			p.checked = &v
		}
		if v.Baseline != "" {
			p.baseline = v.Baseline
		}
	case Applied:
		p.edits = append(p.edits, v.Verdicts...)
	}
}

// The findings and the score are again those at the end of that round. What an open round did is gone, so it begins again.
func (p *Past) foldUndone(u Undone) {
	if open := p.state.Round + 1; p.rounds[open] != nil {
		p.parts[open]++
	}
	p.restored = &u.Round
	p.state.Manifest, p.state.Tree = u.Manifest, u.Tree
	if u.Round == 0 && p.before != nil {
		p.state.Score = p.before.Score
		if len(p.before.Findings) > 0 {
			p.state.Findings, p.state.Checked = p.before.Findings, p.before.Checked
		}
	}
	for _, s := range p.states {
		if s.Round == u.Round {
			p.state.Findings, p.state.Checked, p.state.Score = s.Findings, s.Checked, s.Score
		}
	}
}

func (p *Past) foldTree(e Event) {
	switch v := e.Payload.(type) {
	case Applied:
		for _, edit := range v.Verdicts {
			p.since[edit.Path] = edit.After
		}
	case Opened, Snapshot, Checked, Outside, State, Undone:
		if m := e.Manifest(); m != "" {
			p.manifest, p.ran, p.served = m, false, p.serving
			clear(p.since)
		}
	case Resumed: // the servers of the process before have ended with it
		p.serving, p.served = false, false
	case Served:
		p.serving = v.What != Down
		p.served = true
	case CheckBegun:
		p.ran = true
	case StepBegun:
		if e.Step.Name == StepRestore {
			p.ran = true
		}
	default:
		if e.RunsCommand() {
			p.ran = true
		}
	}
}
