package prove

import (
	"fmt"
	"slices"
	"strings"

	"hone/sandbox"
)

// Result is the result of an attempt.
type Result struct {
	Name     string
	About    string      // what it tries
	Expected Expectation // the result in the table
	Got      string      // the name of the error number that stopped it, "open", "held", "not tried" or "unknown"
	Text     string      // the error, or the change found outside; may be empty
}

// Crossed reports whether the attempt got through. One that was not tried because
// it would harm the machine counts as crossed.
func (r Result) Crossed() bool { return r.Got == wordOpen || r.Got == wordNotTried }

// Conclusive reports whether the attempt could be made here. If not, it is neither
// stopped nor crossed.
func (r Result) Conclusive() bool { return r.Got != wordUnknown }

// String returns the result in one line.
func (r Result) String() string {
	line := fmt.Sprintf("%s: %s", r.Name, r.Got)
	if r.Text != "" {
		line += " (" + r.Text + ")"
	}
	if !r.asExpected() {
		line += ", expected " + r.Expected.String()
	}
	return line
}

// asExpected reports whether the table allows the result.
func (r Result) asExpected() bool { return !r.Conclusive() || r.Expected.allows(r.Got) }

// Report contains the results of all attempts.
type Report struct {
	Grade   sandbox.Grade
	Results []Result
}

// Holes returns the attempts that got through although the table expects them to
// be stopped.
func (r Report) Holes() []Result {
	return r.pick(func(one Result) bool { return one.Crossed() && !one.Expected.open() })
}

// Open returns the attempts that got through as expected.
func (r Report) Open() []Result {
	return r.pick(func(one Result) bool { return one.Crossed() && one.Expected.open() })
}

// Blocked returns the attempts that should have got through and did not, such as the
// one on a door of the policy.
func (r Report) Blocked() []Result {
	return r.pick(func(one Result) bool {
		return one.Conclusive() && !one.Crossed() && one.Expected.open() && !one.asExpected()
	})
}

// Inconclusive returns the attempts that could not be made here.
func (r Report) Inconclusive() []Result {
	return r.pick(func(one Result) bool { return !one.Conclusive() })
}

// Stopped returns the attempts that did not get through.
func (r Report) Stopped() []Result {
	return r.pick(func(one Result) bool { return one.Conclusive() && !one.Crossed() })
}

// pick returns the results for which keep returns true.
func (r Report) pick(keep func(Result) bool) []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(one Result) bool { return !keep(one) })
}

// HoleError means that a wall does not hold.
type HoleError struct {
	Wall  sandbox.Wall
	Holes []Result // at least one
}

// Error names the attempts that got through.
func (e *HoleError) Error() string {
	names := make([]string, len(e.Holes))
	for i, hole := range e.Holes {
		names[i] = hole.Name
	}
	return fmt.Sprintf("the %s wall does not hold: %s", e.Wall, strings.Join(names, ", "))
}

// Err returns a [*HoleError] if there are holes, and nil otherwise.
func (r Report) Err() error {
	if holes := r.Holes(); len(holes) > 0 {
		return &HoleError{Wall: r.Grade.Wall, Holes: holes}
	}
	return nil
}
