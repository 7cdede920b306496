package history

import (
	"iter"

	"hone/journal"
)

// The types of a run's events.
const (
	TypeApply    journal.Type = "apply"
	TypeApproval journal.Type = "approval"
	TypeAttempt  journal.Type = "attempt"
	TypeAsk      journal.Type = "ask"   // the begin of a model call
	TypeReply    journal.Type = "reply" // its record
	TypeChange   journal.Type = "change"
	TypeCheck    journal.Type = "check"
	TypeCommand  journal.Type = "command"
	TypeCommit   journal.Type = "commit"
	TypeEnd      journal.Type = "end"
	TypeEscalate journal.Type = "escalate"
	TypeFailover journal.Type = "failover"
	TypeNotice   journal.Type = "notice"
	TypeOutside  journal.Type = "outside"
	TypeReserve  journal.Type = "reserve"
	TypeResume   journal.Type = "resume"
	TypeRetry    journal.Type = "retry"
	TypeRound    journal.Type = "round"
	TypeServer   journal.Type = "server"
	TypeStart    journal.Type = "start"
	TypeStep     journal.Type = "step"
	TypeTool     journal.Type = "tool"
	TypeUndo     journal.Type = "undo"
	TypeUsage    journal.Type = "usage"
	TypeWalls    journal.Type = "walls"
)

// The steps that the engine itself takes.
const (
	StepOpen     = "open"       // the first step of a round
	StepSnapshot = "afterwards" // follows every command
	StepRestore  = "put back"   // restores protected files after a command
	StepReview   = "review"     // judges a change before it is applied; its result is a [Reviewed]
	StepConfirm  = "confirm"    // runs the check in clean copies; its record is a [Checked]
	StepReported = "reported"   // takes the findings of a file for those of the check; its record is a [Checked]
	StepMeasure  = "measure"    // judges a round by a number
	StepUnpaid   = "unpaid"     // ends a round that the budget did not pay for
)

// Event is an event of a journal with its payload.
type Event struct {
	journal.Event
	// Payload is one of the types of this package, such as [Applied]; see [Decode].
	// It is nil for an event of an unknown type.
	Payload any
}

// The payloads of events that hold nothing but what a step returned; see
// [ReadResult].
type (
	StepBegun     struct{} // the begin of a step without a payload
	StepResult    struct{} // a loop's own step
	CommandResult struct{} // a command that no tool call ran
	ToolResult    struct{} // a tool call
)

// Of returns those of the events that have a payload of the type T, with their payloads, in
// order.
func Of[T any](events []Event) iter.Seq2[Event, T] {
	return func(yield func(Event, T) bool) {
		for _, e := range events {
			if v, ok := e.Payload.(T); ok && !yield(e, v) {
				return
			}
		}
	}
}

// Unreadable is the payload of an event that cannot be decoded, because another
// version of hone wrote it.
type Unreadable struct {
	Err error
}

// payloads are the types of all events: of those that belong to no step, and of a step's begin and record.
var payloads = []struct {
	of                  journal.Type
	alone, begin, ended func(journal.Event) any // nil: there is no such event
}{
	{of: TypeAttempt, alone: decode[Attempt]},
	{of: TypeCommit, alone: decode[Commit]},
	{of: TypeEnd, alone: decode[End]},
	{of: TypeEscalate, alone: decode[Escalated]},
	{of: TypeFailover, alone: decode[FailedOver]},
	{of: TypeNotice, alone: decode[Notice]},
	{of: TypeOutside, alone: decode[Outside]},
	{of: TypeReserve, alone: decode[Reserve]},
	{of: TypeResume, alone: decode[Resumed]},
	{of: TypeRetry, alone: decode[Retried]},
	{of: TypeRound, alone: decode[State]},
	{of: TypeServer, alone: decode[Served]},
	{of: TypeStart, alone: decode[Start]},
	{of: TypeUndo, alone: decode[Undone]},
	{of: TypeUsage, alone: decode[Usage]},
	{of: TypeWalls, alone: decode[Walls]},
	{of: TypeApply, begin: decode[ApplyBegun], ended: decode[Applied]},
	{of: TypeApproval, begin: decode[Question], ended: decode[Answer]},
	{of: TypeAsk, begin: decode[Asked]},
	{of: TypeReply, ended: decode[Replied]},
	{of: TypeChange, ended: decode[Changed]},
	{of: TypeCheck, begin: decode[CheckBegun], ended: decode[Checked]},
	{of: TypeCommand, begin: decode[CommandBegun], ended: func(journal.Event) any { return CommandResult{} }},
	{of: TypeStep, begin: func(journal.Event) any { return StepBegun{} }, ended: decodeStep},
	{of: TypeTool, begin: decode[ToolCall], ended: func(journal.Event) any { return ToolResult{} }},
}

// Decode reads the payload of an event.
func Decode(e journal.Event) Event {
	for _, p := range payloads {
		read := p.ended
		switch {
		case e.Step == nil:
			read = p.alone
		case e.Phase == journal.Begin:
			read = p.begin
		}
		if p.of == e.Type && read != nil {
			return Event{e, read(e)}
		}
	}
	return Event{e, nil}
}

// Observer returns an observer that shows each event of a journal, decoded, once it is in the
// file.
func Observer(show func(Event)) journal.Observer {
	return journal.Observer{After: func(e journal.Event) { show(Decode(e)) }}
}

// A loop's own step may have the name of one of the engine's: a round opens once, and outside of any session.
func decodeStep(e journal.Event) any {
	switch name := e.Step.Name; {
	case name == StepOpen && e.Step.Session == 0 && e.Step.Index == 0:
		return decode[Opened](e)
	case name == StepSnapshot, name == StepRestore:
		return decode[Snapshot](e)
	case name == StepUnpaid:
		return decode[Unpaid](e)
	}
	return StepResult{}
}

func decode[T any](e journal.Event) any {
	var v T
	if err := e.Decode(&v); err != nil {
		return Unreadable{err}
	}
	return v
}

// Round returns the round that the event belongs to; 0 if it belongs to none.
func (e Event) Round() int {
	switch v := e.Payload.(type) {
	case State:
		return v.Round
	case FailedOver:
		return v.Round
	case Escalated:
		return v.Round
	}
	if e.Step == nil {
		return 0
	}
	return e.Step.Round
}

// Before returns the tree before what the event begins; zero if that runs no commands.
func (e Event) Before() Before {
	switch p := e.Payload.(type) {
	case Asked:
		return p.Before
	case CommandBegun:
		return p.Before
	case ToolCall:
		return p.Before
	}
	return Before{}
}

// Manifest returns the object of the tree manifest that the event names; empty
// if it names none.
func (e Event) Manifest() string {
	switch p := e.Payload.(type) {
	case CheckBegun:
		return p.Manifest
	case Checked:
		return p.Manifest
	case Opened:
		return p.Manifest
	case Outside:
		return p.Manifest
	case Snapshot:
		return p.Manifest
	case State:
		return p.Manifest
	case Undone:
		return p.Manifest
	}
	return e.Before().Manifest
}
