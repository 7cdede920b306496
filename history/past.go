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
	now    Facts
	index
}

// Facts are what follows from a run's events at one moment: [Past.Facts]. The zero value
// of each field means that there is no such thing.
type Facts struct {
	// Fault is why an event cannot be read. Another version of hone wrote such an event, and
	// the rest of the past leaves it out.
	Fault  error
	Limits Limits // of the start, or of the last resume
	// Outputs are the files of the tree into which processes of the run wrote their
	// output. They are not part of what the run watches, lists or restores (ruling G24).
	Outputs   []string
	Begun     bool // a step was started
	AtEnd     bool // the last event is the run's end
	End       End  // how the run ended; zero if it has not, or was resumed since
	Ended     bool
	Replies   int  // recorded ones
	Answered  bool // a reply was recorded since the last decision
	Resumes   int
	LastRound int // the last round that an event names, decided or not
	// ModelChanges has a line for each time that another model was asked from then on.
	ModelChanges []string
	Outage       Outage // that is not over
	Ledger       Ledger // what the run's model calls have cost

	// State is the state after the last decision. If the tree was restored since, it has the
	// tree and the findings of that round. Before the first decision it is round 0, without a
	// decision.
	State  State
	States []State // after each round that was decided, in order
	Before *State  // after the check before the first round; nil if it did not run then
	Opened *Opened // the tree as the run found it; nil before its first round
	// FirstCheck is the record of the check before the first round; nil if it did not run then.
	FirstCheck *Checked
	LastCheck  *Checked // the newest record of a check
	// Baseline is the object with the findings that were there before the first round, and do
	// not count; empty if all count.
	Baseline string
	Edits    []workspace.Verdict // that were applied, in order
	Outside  []string            // the files that were changed outside the run since its last round opened
	// Untold are the files that were changed outside the run since its last round opened or its last
	// command ended. The result of the next command tells the model.
	Untold []string
	// Pending are the questions that no user could be asked yet: the last one about each file,
	// in the order in which they came up. The file may have changed since.
	Pending []Question
	// Asking is the question that the user is being asked, or was being asked when the process
	// of the run ended. A resume asks it again.
	Asking *Question
	Asked  []Question // what the model has asked the user (ruling B15), in order, with an answer or without
	// Reopened means that a question was asked again and answered since the last decision. Then
	// there is something new to decide about.
	Reopened bool
	// RestoredTo is the round whose tree was restored since the last round opened; nil if none was.
	RestoredTo *int
}

type index struct {
	models  map[string]bool // that have replied
	failed  map[string]bool // models that another one has taken the place of
	raised  map[string]bool // models that another one does the rounds of
	swapped int             // the last round that a model did that another one has taken the place of

	rounds   map[int]*Round           // also those that are not decided
	parts    map[int]int              // of each round, those that are over
	records  map[string][]int         // by the name of the step
	begins   map[journal.Identity]int // the last begin of each step
	recorded map[journal.Identity]int // the record of each step
	noticed  map[string]Notice

	manifest string                     // newest
	ran      bool                       // a command started since
	since    map[string]workspace.Image // files written by edits since the manifest
	serving  bool                       // a loop's server is up
	served   bool                       // a server was up since the manifest
	approvals

	attempts []Attempt // the last state of each
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
	return &Past{now: Facts{State: State{Findings: []check.Finding{}}}, index: index{
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
	_, p.now.AtEnd = e.Payload.(End)
	p.now.LastRound = max(p.now.LastRound, e.Round())
	if e.Step != nil {
		p.foldStep(e)
	}
	p.foldTree(e)
	p.foldApprovals(e)
	p.now.Outage.Add(e)
	switch v := e.Payload.(type) {
	case Unreadable:
		if p.now.Fault == nil {
			p.now.Fault = v.Err
		}
	case Start:
		p.now.Limits, p.now.Outputs = v.Limits, v.Outputs
	case Resumed:
		p.now.Limits, p.now.End, p.now.Ended = v.Limits, End{}, false
		p.now.Outputs = slices.Concat(p.now.Outputs, v.Outputs)
		p.now.Resumes++
	case Notice:
		p.noticed[v.Text] = v
	case FailedOver:
		p.failed[v.From] = true
		p.now.ModelChanges, p.swapped = append(p.now.ModelChanges, v.String()), v.Round
	case Escalated:
		p.raised[v.From] = true
		p.now.ModelChanges, p.swapped = append(p.now.ModelChanges, v.String()), v.Round-1
	case State:
		p.now.State, p.now.Answered = v, false
		p.parts[v.Round]++
		n := len(p.now.States)
		switch {
		case v.Round == 0: // the check before the first round
			p.now.Before = &v
		case n > 0 && p.now.States[n-1].Round == v.Round: // a round whose questions were answered later may be decided again
			p.now.States = append(p.now.States[:n-1:n-1], v)
		default:
			p.now.States = append(p.now.States, v)
		}
	case Undone:
		p.foldUndone(v)
	case Outside:
		p.now.Outside = append(p.now.Outside, v.Paths...)
		p.now.Untold = append(p.now.Untold, v.Paths...)
	case Attempt:
		p.attempts = append(slices.DeleteFunc(p.attempts, func(a Attempt) bool { return a.Number == v.Number }), v)
	case Reserve:
		p.open[e.Seq] = v
		p.now.Ledger.reserve(v)
	case Commit:
		if r, ok := p.open[v.Reserve]; ok {
			delete(p.open, v.Reserve)
			p.now.Ledger.commit(r, v)
			if v.Usage != nil {
				used := Ledger{Tokens: v.Tokens, Assumed: v.Assumed, Known: *v.Usage}
				if v.Cost != nil {
					used.Cost = *v.Cost
				}
				p.charged[r.Role] = p.charged[r.Role].Plus(used)
			}
		}
	case End:
		p.now.End, p.now.Ended = v, true
	}
}

func (p *Past) foldStep(e Event) {
	p.now.Begun = true
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
		p.now.Replies++
		p.now.Answered = true
		p.models[v.Model] = true
	case Opened:
		p.now.Outside, p.now.Untold, p.now.RestoredTo = nil, nil, nil
		if p.now.Opened == nil {
			p.now.Opened = &v
		}
	case Snapshot:
		p.now.Untold = nil
	case Checked:
		p.now.LastCheck = &v
		if p.now.FirstCheck == nil && e.Step.Round == 0 {
			p.now.FirstCheck = &v
		}
		if v.Baseline != "" {
			p.now.Baseline = v.Baseline
		}
	case Applied:
		p.now.Edits = append(p.now.Edits, v.Verdicts...)
	}
}

// The findings and the score are again those at the end of that round. What an open round did is gone, so it begins again.
func (p *Past) foldUndone(u Undone) {
	if open := p.now.State.Round + 1; p.rounds[open] != nil {
		p.parts[open]++
	}
	p.now.RestoredTo = &u.Round
	p.now.State.Manifest, p.now.State.Tree = u.Manifest, u.Tree
	if u.Round == 0 && p.now.Before != nil {
		p.now.State.Score = p.now.Before.Score
		if len(p.now.Before.Findings) > 0 {
			p.now.State.Findings, p.now.State.Checked = p.now.Before.Findings, p.now.Before.Checked
		}
	}
	for _, s := range p.now.States {
		if s.Round == u.Round {
			p.now.State.Findings, p.now.State.Checked, p.now.State.Score = s.Findings, s.Checked, s.Score
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

// Round is what happened in a round, decided or not.
type Round struct {
	Manifest string     // object with the manifest of the tree when the round opened; empty if it did not open
	Touched  bool       // an apply was recorded, or a command may have changed something
	Edited   bool       // an edit left other contents than it found
	Restored []Restored // protected files that commands changed; may repeat
	// Agent is the first event of the round that began an agent's session; nil if
	// there is none. Its payload is an [Asked].
	Agent *Event
	// Stronger reports whether a role was asked that has a stronger model left.
	Stronger bool
}

func (r *Round) fold(e Event) {
	r.Touched = r.Touched || e.RunsCommand()
	switch v := e.Payload.(type) {
	case Opened:
		*r = Round{Manifest: v.Manifest}
	case Snapshot:
		r.Restored = append(r.Restored, v.Restored...)
	case Applied:
		r.Touched = true
		for _, edit := range v.Verdicts {
			r.Edited = r.Edited || edit.Before.Digest != edit.After.Digest
		}
	case Asked:
		r.Stronger = r.Stronger || v.Stronger
		if v.Command && r.Agent == nil {
			r.Agent = &e
		}
	}
}

// RunsCommand reports whether the event is the begin of something that runs
// commands of a model, or the record of a command. Nothing says what such a
// command changes. Checks do not count, although they run commands: they are
// not a change that a round makes.
func (e Event) RunsCommand() bool {
	switch v := e.Payload.(type) {
	case CommandBegun, CommandResult:
		return true
	case ToolCall:
		return v.Command
	case Asked:
		return v.Command
	}
	return false
}
