package model

import (
	"fmt"
	"time"
)

// Kind says what went wrong with an attempt.
type Kind string

// The kinds, and whether trying again can help.
const (
	Auth        Kind = "auth"         // 401, 403: the key is missing, wrong or not allowed; no
	Invalid     Kind = "invalid"      // 400, 404, 422: the request or the model's name is not accepted; no
	TooLong     Kind = "too long"     // the request does not fit the model's context; no
	Quota       Kind = "quota"        // 402, or 429 and 400 for an account that is used up; no
	RateLimited Kind = "rate limited" // 429; yes, after After
	Overloaded  Kind = "overloaded"   // 408, 409, 5xx, 529; yes, after After
	Unreachable Kind = "unreachable"  // no connection; yes
	Cut         Kind = "cut"          // the stream or body ended early; yes
	Garbage     Kind = "garbage"      // an answer that is not of the protocol; yes
	Silent      Kind = "silent"       // the idle or total time-out passed; yes
	Failed      Kind = "failed"       // an agent's session ended badly; no: a session is not repeated as it was
)

// Error is the fault of one attempt, in words for a person. It never holds a
// key, a header or a request's text.
type Error struct {
	Kind Kind
	// Status is the HTTP status, 0 where there was none.
	Status int
	// Message is one line, the provider's own where it sent one.
	Message string
	// After is the least time to wait before another attempt (Retry-After,
	// or the provider's own field for it); 0 leaves it to the caller.
	After time.Duration
	// Usage is what the provider said was used before the fault; nil where
	// it said nothing, and then the caller must assume the worst.
	Usage *Usage
	// Hint is what the user can do before another try, such as "set X to a
	// key": a clause in the imperative, without a command line of hone's. Empty
	// means that nothing is known to help.
	Hint string
	// Or is what the user can do instead of another try: a clause like Hint.
	// Empty means nothing.
	Or string
}

func (e *Error) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("%s: %s", e.Kind, e.Message)
	}
	return fmt.Sprintf("%s (HTTP %d): %s", e.Kind, e.Status, e.Message)
}

// Temporary reports whether another attempt may succeed.
func (e *Error) Temporary() bool {
	switch e.Kind {
	case Auth, Invalid, TooLong, Quota, Failed:
		return false
	}
	return true
}

// Rejected reports whether the request was turned away before anything was
// generated, so that nothing was used: by an HTTP status that says so, or for
// want of a connection. A server's own failure (5xx) may come after work that
// is charged.
func (e *Error) Rejected() bool {
	switch e.Kind {
	case Unreachable:
		return true
	case Auth, Invalid, TooLong, RateLimited, Quota:
		return e.Status >= 400 && e.Status < 500
	}
	return false
}
