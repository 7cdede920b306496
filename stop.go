package hone

import (
	"errors"
	"fmt"
)

// Kind is how a run ended, in one word that users see.
type Kind string

// The ways to end.
const (
	KindDone        Kind = "done"        // the check has no findings, or there is none and the loop reached its own end
	KindRounds      Kind = "rounds"      // the rounds are used up, and findings are left
	KindStuck       Kind = "stuck"       // too many rounds ended in an earlier state
	KindUsage       Kind = "usage"       // what the user asked for is wrong
	KindPrompt      Kind = "prompt"      // the first prompt does not fit the model's context
	KindBudget      Kind = "budget"      // the tokens, the cost or the time are used up
	KindContext     Kind = "context"     // a later prompt does not fit the model's context
	KindBlocked     Kind = "blocked"     // only the user can decide what comes next
	KindFailed      Kind = "failed"      // a provider, a program or the disk failed
	KindInterrupted Kind = "interrupted" // the context was canceled
)

// usedUp reports whether a run ended because its rounds or its budget did, with
// findings left.
func (k Kind) usedUp() bool {
	switch k {
	case KindRounds, KindStuck, KindBudget, KindContext:
		return true
	}
	return false
}

// Stop is why a run ended short of a decision of its own, and what the user can
// do next. A run that stopped can be resumed.
type Stop struct {
	Kind Kind
	Why  string // one line for the user; more lines hold details
	Next Next   // the zero Next means that nothing in particular helps
	Err  error  // the cause; may be nil
}

func (s *Stop) Error() string {
	if s.Err == nil {
		return s.Why
	}
	return fmt.Sprintf("%s: %v", s.Why, s.Err)
}

func (s *Stop) Unwrap() error { return s.Err }

// UsageError is an error in what the user asked for: a flag, a setting or a file.
// The engine passes both texts through.
type UsageError struct {
	Why  string
	Hint string // what to type or to write instead
}

func (u *UsageError) Error() string { return u.Why }

// OutOfBudget reports whether an error is that the budget cannot pay for
// something. A loop that has findings to record by then ends its round with
// those; see [Round].
func OutOfBudget(err error) bool {
	var stop *Stop
	return errors.As(err, &stop) && stop.Kind == KindBudget
}

// ContextError says that a request does not fit the model's context (ruling
// G10). The loop adds what takes the room.
type ContextError struct {
	Need   int64  // tokens, by estimate; 0: the provider said so
	Limit  int64  // tokens; 0: not known
	Says   string // the provider's words, if it was the provider
	Room   string // what takes the room, in lines; empty: not known
	Remedy string // how to make room, as a clause in the imperative; empty: not known
}

func (e *ContextError) Error() string {
	text := "the prompt does not fit the model's context: " + e.Says
	if e.Need > 0 {
		text = fmt.Sprintf("the prompt does not fit the model's context: about %d tokens, and %d is the most", e.Need, e.Limit)
	}
	if e.Room != "" {
		text += "\n" + e.Room
	}
	return text
}
