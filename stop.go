package hone

import (
	"context"
	"errors"
	"fmt"
)

// The exit statuses of a run, as users' scripts know them.
const (
	ExitDone        = 0   // the check is clean, or there is none and the loop reached its end
	ExitNotDone     = 1   // rounds used up, findings are left
	ExitUsage       = 2   // usage or configuration is wrong
	ExitBudget      = 3   // tokens, cost, time or the model's context is used up
	ExitBlocked     = 4   // it waits for a person
	ExitEnvironment = 5   // a provider, a program or the disk failed
	ExitInterrupted = 130 // by a signal
)

// Stop is why a run ended short of a decision of its own: an error that says
// what a person sees and types next. A run that stopped can be resumed.
type Stop struct {
	Exit   int
	Result string // one or two words: "budget", "blocked", "failed" …
	Why    string // one line
	Hint   string // what to do or type next; may be empty
	Err    error  // the cause; may be nil
}

func (s *Stop) Error() string {
	if s.Err == nil {
		return s.Why
	}
	return fmt.Sprintf("%s: %v", s.Why, s.Err)
}

func (s *Stop) Unwrap() error { return s.Err }

// errTime is the cause of a context that the run's own time limit ended.
var errTime = errors.New("the run's time is used up")

// stop says how an error ends the run. Whatever names no other status is
// the environment's fault.
func (r *Run) stop(ctx context.Context, err error) *Stop {
	var stop *Stop
	var room *ContextError
	switch {
	case errors.Is(context.Cause(ctx), errTime):
		return &Stop{Exit: ExitBudget, Result: "budget", Why: "the time limit is reached",
			Hint: "hone resume last --max-time 8h", Err: nil}
	case errors.As(err, &stop):
		return stop
	case errors.As(err, &room) && r.replies() == 0:
		return &Stop{Exit: ExitUsage, Result: "context", Why: room.Error(), Hint: room.Room}
	case room != nil:
		return &Stop{Exit: ExitBudget, Result: "context", Why: room.Error(), Hint: room.Room}
	case ctx.Err() != nil:
		return &Stop{Exit: ExitInterrupted, Result: "interrupted", Why: "interrupted", Hint: "hone resume last"}
	}
	return &Stop{Exit: ExitEnvironment, Result: "failed", Why: err.Error(), Hint: "mend that, then: hone resume last"}
}
