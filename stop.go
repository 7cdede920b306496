package hone

import (
	"errors"
	"fmt"

	"hone/history"
)

// Kind is how a run ended, in one word that users see.
type Kind = history.Kind

// The ways to end; see [history.Kind].
const (
	KindDone        = history.KindDone
	KindRounds      = history.KindRounds
	KindStuck       = history.KindStuck
	KindUsage       = history.KindUsage
	KindPrompt      = history.KindPrompt
	KindBudget      = history.KindBudget
	KindContext     = history.KindContext
	KindBlocked     = history.KindBlocked
	KindFailed      = history.KindFailed
	KindInterrupted = history.KindInterrupted
)

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
