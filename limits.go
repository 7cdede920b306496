package hone

import (
	"time"

	"github.com/cenkalti/backoff/v5"

	"hone/history"
)

// Limits bound a run.
type Limits = history.Limits

// Retry bounds how a temporary fault of a provider is met.
type Retry struct {
	Attempts int           // in all; 0 means 6
	First    time.Duration // before the second attempt; 0 means 1 s; doubled each time
	Most     time.Duration // between two attempts; 0 means 1 min; Retry-After may ask for more
}

func (t Retry) attempts() int {
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

// Bounds bound one session of a conversation (rulings S8, S11 and G11). They
// end the session, never the run.
type Bounds struct {
	Turns   int `json:"turns"`    // most model calls; 0 means 30
	Calls   int `json:"calls"`    // most tool calls that are run; 0 means 120
	PerTurn int `json:"per_turn"` // of those, in one reply; 0 means 10
}

// Resolved are the bounds with what zeros mean in their place.
func (b Bounds) Resolved() Bounds {
	return Bounds{Turns: orElse(b.Turns, 30), Calls: orElse(b.Calls, 120), PerTurn: orElse(b.PerTurn, 10)}
}

func orElse(n, standard int) int {
	if n == 0 {
		return standard
	}
	return n
}
