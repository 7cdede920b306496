package hone

import (
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

// OutOfBudget reports whether an error is that something could not be paid any
// more. A loop that has something to put on record by then ends its round with
// that; see [Round].
func OutOfBudget(err error) bool {
	var stop *Stop
	return errors.As(err, &stop) && stop.Result == resultBudget
}

// resultBudget is the result of a run that the budget stopped.
const resultBudget = "budget"

// ContextError says that a request does not fit the model's context (ruling
// G10). A loop knows what takes the room and says so with it.
type ContextError struct {
	Need  int64  // tokens, by estimate; 0: the provider said so
	Limit int64  // tokens; 0: not known
	Says  string // the provider's words, if it was the provider
	Room  string // what takes the room and how to make some, in lines; the loop's word
}

func (e *ContextError) Error() string {
	if e.Need == 0 {
		return "the prompt does not fit the model's context: " + e.Says
	}
	return fmt.Sprintf("the prompt does not fit the model's context: about %d tokens, and %d is the most", e.Need, e.Limit)
}
