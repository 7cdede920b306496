package history

import (
	"fmt"
	"math"
	"strings"
	"time"

	"hone/check"
)

// Stop is an error that says why a run ended before it was done, and what the
// user can do next. The run can be resumed, but a resumed run has the same
// settings and arguments: if these are wrong, Next.Verb is [NewRun].
type Stop struct {
	Kind Kind
	Why  string // one line for the user; more lines hold details
	Next Next   // the zero Next has no advice
	Err  error  // the cause; nil if Why says everything
	// Findings are what is wrong with the result, if the round knows; nil means the
	// findings of the last round that was decided.
	Findings []check.Finding
}

func (s *Stop) Error() string {
	if s.Err == nil {
		return s.Why
	}
	return fmt.Sprintf("%s: %v", s.Why, s.Err)
}

func (s *Stop) Unwrap() error { return s.Err }

// ResumeAfter returns the advice to do something, a clause in the imperative, and then to
// resume the run.
func ResumeAfter(first string) Next { return Next{First: first, Verb: Resume} }

// ResumeWith returns the advice to resume the run with a flag.
func ResumeWith(flag string, value any) Next {
	return Next{Verb: Resume, Flags: []Flag{{Name: flag, Value: fmt.Sprint(value)}}}
}

// MoreTokens returns the advice to resume a run whose limit of tokens does not suffice: with twice the limit, and at least as many
// as it needs in all.
func MoreTokens(limit, needs int64) Next { return ResumeWith("max-tokens", max(2*limit, needs)) }

// MoreCost is [MoreTokens] for the cost in USD, which it rounds up to cents.
func MoreCost(limit, needs float64) Next {
	return ResumeWith("max-cost", fmt.Sprintf("%.2f", math.Ceil(100*max(2*limit, needs))/100))
}

// MoreTime proposes twice a time limit, and at least a minute.
func MoreTime(limit time.Duration) Next {
	return ResumeWith("max-time", DurationText(max(2*limit, time.Minute)))
}

// DurationText returns a duration as a user types it: 4h, not 4h0m0s.
func DurationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
