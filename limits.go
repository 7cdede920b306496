package hone

import (
	"time"

	"github.com/cenkalti/backoff/v5"

	"hone/history"
)

// Limits limit a run.
type Limits = history.Limits

// Retry says how often and when a request is repeated after a temporary error
// of a provider.
type Retry struct {
	Attempts int           // maximum number of attempts, including the first; 0 means 6
	First    time.Duration // wait before the second attempt, doubled for each further one; 0 means 1 s
	Most     time.Duration // maximum wait, unless the provider asks for more; 0 means 1 min
}

// MaxAttempts returns how many attempts a call may have: Attempts, or 6 if that is 0.
func (t Retry) MaxAttempts() int {
	if t.Attempts == 0 {
		return 6
	}
	return t.Attempts
}

func (t Retry) backoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = time.Second, time.Minute, 2
	if t.First > 0 {
		b.InitialInterval = t.First
	}
	if t.Most > 0 {
		b.MaxInterval = t.Most
	}
	b.Reset()
	return b
}

// Bounds limit one session of a conversation (rulings S8, S11 and G11). They
// end the session, never the run.
type Bounds struct {
	Turns   int `json:"turns"`    // maximum number of model calls; 0 means 30
	Calls   int `json:"calls"`    // maximum number of tool calls that are run; 0 means 120
	PerTurn int `json:"per_turn"` // maximum number of those in one reply; 0 means 10
}

// Resolved returns the bounds with the defaults in place of zeros.
func (b Bounds) Resolved() Bounds {
	return Bounds{Turns: orElse(b.Turns, 30), Calls: orElse(b.Calls, 120), PerTurn: orElse(b.PerTurn, 10)}
}

func orElse(n, standard int) int {
	if n == 0 {
		return standard
	}
	return n
}
