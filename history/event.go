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

// Decode reads the payload of an event.
func Decode(e journal.Event) Event {
	switch {
	case e.Step == nil:
		return Event{e, decodeNotice(e)}
	case e.Phase == journal.Begin:
		return Event{e, decodeBegin(e)}
	}
	return Event{e, decodeRecord(e)}
}

// Observer returns an observer that shows each event of a journal, decoded, once it is in the
// file.
func Observer(show func(Event)) journal.Observer {
	return journal.Observer{After: func(e journal.Event) { show(Decode(e)) }}
}

func decodeNotice(e journal.Event) any {
	switch e.Type {
	case TypeAttempt:
		return decodePayload[Attempt](e)
	case TypeCommit:
		return decodePayload[Commit](e)
	case TypeEnd:
		return decodePayload[End](e)
	case TypeEscalate:
		return decodePayload[Escalated](e)
	case TypeFailover:
		return decodePayload[FailedOver](e)
	case TypeNotice:
		return decodePayload[Notice](e)
	case TypeOutside:
		return decodePayload[Outside](e)
	case TypeReserve:
		return decodePayload[Reserve](e)
	case TypeResume:
		return decodePayload[Resumed](e)
	case TypeRetry:
		return decodePayload[Retried](e)
	case TypeRound:
		return decodePayload[State](e)
	case TypeServer:
		return decodePayload[Served](e)
	case TypeStart:
		return decodePayload[Start](e)
	case TypeUndo:
		return decodePayload[Undone](e)
	case TypeUsage:
		return decodePayload[Usage](e)
	case TypeWalls:
		return decodePayload[Walls](e)
	}
	return nil
}

func decodeBegin(e journal.Event) any {
	switch e.Type {
	case TypeApply:
		return decodePayload[ApplyBegun](e)
	case TypeApproval:
		return decodePayload[Question](e)
	case TypeAsk:
		return decodePayload[Asked](e)
	case TypeCheck:
		return decodePayload[CheckBegun](e)
	case TypeCommand:
		return decodePayload[CommandBegun](e)
	case TypeStep:
		return StepBegun{}
	case TypeTool:
		return decodePayload[ToolCall](e)
	}
	return nil
}

func decodeRecord(e journal.Event) any {
	switch e.Type {
	case TypeApply:
		return decodePayload[Applied](e)
	case TypeApproval:
		return decodePayload[Answer](e)
	case TypeReply:
		return decodePayload[Replied](e)
	case TypeChange:
		return decodePayload[Changed](e)
	case TypeCheck:
		return decodePayload[Checked](e)
	case TypeCommand:
		return CommandResult{}
	case TypeStep:
		return decodeStep(e)
	case TypeTool:
		return ToolResult{}
	}
	return nil
}

// A loop's own step may have the name of one of the engine's: a round opens once, and outside of any session.
func decodeStep(e journal.Event) any {
	switch name := e.Step.Name; {
	case name == StepOpen && e.Step.Session == 0 && e.Step.Index == 0:
		return decodePayload[Opened](e)
	case name == StepSnapshot, name == StepRestore:
		return decodePayload[Snapshot](e)
	case name == StepUnpaid:
		return decodePayload[Unpaid](e)
	}
	return StepResult{}
}

func decodePayload[T any](e journal.Event) any {
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
