package model

import (
	"fmt"
	"net/http"
	"time"
)

// Kind classifies a failed attempt.
type Kind string

// The kinds of failure that a retry cannot fix.
const (
	Auth    Kind = "auth"     // 401, 403: the key is missing, wrong or lacks permission
	Invalid Kind = "invalid"  // 400, 404, 422: the server rejects the request
	TooLong Kind = "too long" // the request does not fit the model's context
	Quota   Kind = "quota"    // 402, or 400, 403 and 429 for an account without credit
	// OutputLimit means that the request asks for more output than the model gives, or than
	// its context has room for.
	OutputLimit Kind = "output limit"
	NoModel     Kind = "unknown model" // the server does not have the model
	Failed      Kind = "failed"        // an agent's session failed; the same session is never repeated
)

// The kinds of failure after which a retry may succeed.
const (
	RateLimited Kind = "rate limited" // 429; wait for Error.RetryAfter
	Overloaded  Kind = "overloaded"   // 408, 409, 424, 425, 499, 5xx; wait for Error.RetryAfter
	Unreachable Kind = "unreachable"  // no connection
	Cut         Kind = "cut"          // the stream or body ended early
	Garbage     Kind = "garbage"      // the response does not follow the protocol
	Silent      Kind = "silent"       // the idle or total timeout expired
)

// The kinds of failure that stand for a reply; see [Error.Reply].
const (
	Blocked   Kind = "filtered"  // the provider filtered the reply, or the request
	Malformed Kind = "bad reply" // the server cannot read what the model wrote
)

// Error describes one failed attempt to the user. It never contains a key, a
// header or the text of a request.
type Error struct {
	Kind Kind
	// Status is the HTTP status; 0 if there was no response.
	Status int
	// Streamed means that the error arrived inside a response that had started, so
	// that something may have been generated, whatever its status says.
	Streamed bool
	// Message is one line: the provider's message if it sent one.
	Message string
	// RetryAfter is the minimum wait before another attempt (Retry-After or the
	// provider's own field); 0 leaves the wait to the caller.
	RetryAfter time.Duration
	// Usage is what the provider reported as used before the failure. If it
	// is nil, nothing was reported and the caller must assume the maximum.
	Usage *Usage
	// Hint is what the user can do before another try, such as "set X to a
	// key": a clause in the imperative, without a command line of hone. Empty
	// means that nothing is known to help.
	Hint string
	// Alternative is what the user can do instead of another try: a clause like
	// Hint. Empty means that there is nothing.
	Alternative string
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
	case Auth, Invalid, TooLong, OutputLimit, Quota, NoModel, Failed, Blocked, Malformed:
		return false
	}
	return true
}

// Reply returns the reply that a failure stands for, which has no parts: some servers report
// as an error that a reply was filtered, or that the model wrote a call that they cannot read.
// Another attempt may succeed, but the model has used its turn (rulings G3 and G19). ok is
// false for any other failure.
func (e *Error) Reply() (reply Reply, ok bool) {
	switch e.Kind {
	case Blocked:
		return Reply{Finish: Filtered, Detail: e.Message}, true
	case Malformed:
		return Reply{Finish: Other, Detail: e.Message}, true
	}
	return Reply{}, false
}

// Rejected reports whether the attempt failed before anything was generated, so
// that no tokens were used (ruling G17): there was no connection, or the status is
// 503, 529 or 4xx. Some servers send 408 and 499 after they have started work, and
// other failures of a server (5xx) may follow work that is charged.
func (e *Error) Rejected() bool {
	switch {
	case e.Kind == Unreachable:
		return true
	case e.Streamed, e.Status == http.StatusRequestTimeout, e.Status == statusClientClosed:
		return false
	case e.Kind == Auth && e.Status == 0: // there was no key to send it with
		return true
	case e.Status == http.StatusServiceUnavailable, e.Status == statusOverloaded:
		return true
	case e.Status/100 == 2: // the body is nothing but an error
		return !e.Temporary() || e.Kind == RateLimited
	}
	return e.Status >= 400 && e.Status < 500
}

// Statuses that net/http does not name.
const (
	statusClientClosed = 499 // nginx, Google: the server believes that the client has gone
	statusOverloaded   = 529 // Anthropic
)
