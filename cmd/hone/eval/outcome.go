package eval

import (
	"slices"
	"time"

	"hone"
	"hone/check"
	"hone/history"
	"hone/journal"
	"hone/model"
	"hone/tool"
	"hone/workspace"
)

// Outcome is what the journal of a run says about it.
type Outcome struct {
	Started bool        // the run has recorded its start
	Run     string      // its id
	End     history.End // zero if the run has not ended
	Ended   bool
	Limits  Amount // that it has now
	Used    Amount
	Priced  bool // Used.Cost is all that it cost
	Rounds  int
	// Malformed is how many replies hone could not read, or had a call of a tool that it
	// could not read; Refused how many had an edit that hone did not make.
	Malformed, Refused int
}

// final reports whether the run's end is its result: it was not interrupted, it did not
// fail, and no budget below its own limits stopped it.
func (o Outcome) final(own Amount) bool {
	switch o.End.Kind {
	case hone.KindInterrupted, hone.KindUsage, hone.KindFailed:
		return false
	case hone.KindBudget:
		return !o.Limits.below(own)
	}
	return o.Ended
}

// ReadOutcome reads the events of a run, with the objects that they name. No events mean a
// run that has not started.
func ReadOutcome(events []journal.Event, get history.Get) Outcome {
	if len(events) == 0 {
		return Outcome{}
	}
	past := history.Read(events)
	spent, limits := past.Ledger(), past.Limits()
	active := time.Duration(past.Last().Active) * time.Millisecond
	o := Outcome{Started: true, Rounds: past.State().Round, Priced: !spent.Unpriced,
		Limits: Amount{limits.Tokens, limits.Cost, limits.Time}, Used: Amount{spent.Tokens, spent.Cost, active}}
	o.End, o.Ended = past.End()
	f := faults{past: past, get: get, malformed: map[reply]bool{}, refused: map[reply]bool{}}
	for _, e := range past.Events() {
		f.add(e)
	}
	f.addRounds()
	o.Malformed, o.Refused = len(f.malformed), len(f.refused)
	return o
}

// reply identifies a reply of a run.
type reply struct{ round, session, turn int }

// faults are the replies of a run with which hone found fault.
type faults struct {
	past               *history.Past
	get                history.Get
	malformed, refused map[reply]bool
}

// add adds the reply that an event is about.
func (f faults) add(e history.Event) {
	if e.Step == nil {
		return
	}
	at := reply{e.Step.Round, e.Step.Session, e.Step.Turn}
	switch p := e.Payload.(type) {
	case history.Replied:
		if p.Finish != model.Stop && p.Finish != model.Calls {
			f.malformed[at] = true
		}
	case history.ToolCall:
		if p.Refused == hone.RefusedJSON || p.Refused == hone.RefusedName {
			f.malformed[at] = true
		}
	case history.ToolResult:
		if f.failedEdit(e) {
			f.refused[at] = true
		}
	case history.StepResult:
		if e.Step.Name == history.StepReview && f.denied(e) {
			f.refused[at] = true
		}
	}
}

// failedEdit reports whether the record of a tool call is about an edit that was not made.
func (f faults) failedEdit(e history.Event) bool {
	begin, ok := f.past.Begin(*e.Step)
	call, isCall := begin.Payload.(history.ToolCall)
	if !ok || !isCall || call.Refused != "" || call.Tool != "write" && call.Tool != "edit" {
		return false
	}
	result, err := history.ReadResult[tool.Result](e.Event, f.get)
	return err == nil && result.Failed
}

// denied reports whether a review denied one of the edits.
func (f faults) denied(e history.Event) bool {
	review, err := history.ReadResult[history.Reviewed](e.Event, f.get)
	return err == nil && slices.ContainsFunc(review.Verdicts, func(v workspace.Verdict) bool {
		return v.Ruling == workspace.Deny || v.Ruling == workspace.Unread
	})
}

// addRounds adds the replies of rounds without a conversation that could not be used for
// another reason: their text has not the form that the loop wants.
func (f faults) addRounds() {
	known := map[int]bool{}
	for _, replies := range []map[reply]bool{f.malformed, f.refused} {
		for r := range replies {
			known[r.round] = true
		}
	}
	for _, s := range f.past.States() {
		if !known[s.Round] && slices.ContainsFunc(s.Findings, func(g check.Finding) bool { return g.Source == check.SourceReply }) {
			f.malformed[reply{round: s.Round}] = true
		}
	}
}
