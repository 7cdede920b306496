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
	// Attempts is the maximum number of attempts at a call, including the first. 0
	// means 6 until the model has replied in the run, because its address may be
	// wrong, and no limit afterwards: then only the run's time limits an outage
	// (ruling G17).
	Attempts int
	First    time.Duration // wait before the second attempt, doubled for each further one; 0 means 1 s
	// Most is the maximum wait, unless the provider asks for more, before it is
	// varied by half; 0 means 200 s, so that no wait is longer than 5 min.
	Most time.Duration
}

// 0 means no limit.
func (t Retry) maxAttempts(replied bool) int {
	if t.Attempts == 0 && !replied {
		return 6
	}
	return t.Attempts
}

func (t Retry) backoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = time.Second, 200*time.Second, 2
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
