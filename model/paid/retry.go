package paid

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"

	"hone/model"
)

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

const (
	// maxWait is the longest delay that a provider may ask for before its first reply
	// in a run. If it asks for more, the run stops.
	maxWait = 15 * time.Minute
	// maxSpareWait is the longest delay that it may ask for if another model can take its
	// place. Limits per minute end within it.
	maxSpareWait = time.Minute
)

// patience is how long a call may take in spite of temporary errors.
type patience struct {
	attempts int           // maximum number; 0 means no limit
	wait     time.Duration // maximum delay that the provider may ask for; 0 means no limit
}

// patience returns the patience with a model (ruling G17). Once the model has replied in
// the run, only the run's time limits an outage: a user who sleeps cannot resume the run.
// If another model can take its place, that is always better than to wait.
func (a *Account) patience(called string, spare bool) patience {
	if spare {
		return patience{attempts: a.Retry.maxAttempts(false), wait: maxSpareWait}
	}
	p := patience{attempts: a.Retry.maxAttempts(a.Past().HasReplied(called)), wait: maxWait}
	if p.attempts == 0 {
		p.wait = a.Limits.Time
		if p.wait > 0 {
			p.wait = max(1, p.wait-a.Active())
		}
	}
	return p
}

func (p patience) ends(fault *model.Error, attempts int) bool {
	return !fault.Temporary() || p.attempts > 0 && attempts >= p.attempts || p.tooLong(fault.RetryAfter)
}

func (p patience) tooLong(wait time.Duration) bool { return p.wait > 0 && wait > p.wait }

const lookAtClock = time.Second

// wait waits until d has passed by the time of day or by the process's clock, whichever is
// earlier. Linux stops the process's clock while the machine is suspended, and the user
// may set the time of day back.
func wait(ctx context.Context, d time.Duration, now func() time.Time) error {
	started := now()
	for {
		at := now()
		left := d - max(at.Sub(started), at.Round(0).Sub(started.Round(0)))
		if left <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(left, lookAtClock)):
		}
	}
}
