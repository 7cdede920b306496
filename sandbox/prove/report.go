package prove

import (
	"fmt"
	"slices"
	"strings"

	"hone/sandbox"
)

// Result is the result of an attempt.
type Result struct {
	Name  string
	About string // what it tries
	Open  bool   // whether the wall leaves this way open, as documented
	Got   string // the name of the error number that stopped it, "open", "held", "not tried" or "unknown"
	Text  string // the error, or the change found outside; may be empty
}

// crossed reports whether the attempt got through. One that was not tried because
// it would harm the machine counts as crossed.
func (r Result) crossed() bool { return r.Got == "open" || r.Got == "not tried" }

// conclusive reports whether the attempt could be made here. If not, it is neither
// stopped nor crossed.
func (r Result) conclusive() bool { return r.Got != "unknown" }

// String returns the result in one line.
func (r Result) String() string {
	line := r.Name + ", " + r.About
	if r.Text != "" {
		line += " (" + r.Text + ")"
	}
	return line
}

// Report contains the results of all attempts.
type Report struct {
	Grade   sandbox.Grade
	Results []Result
}

// Holes returns the attempts that got through although they must be stopped.
func (r Report) Holes() []Result {
	return r.pick(func(one Result) bool { return one.crossed() && !one.Open })
}

// Open returns the attempts that got through as documented.
func (r Report) Open() []Result {
	return r.pick(func(one Result) bool { return one.crossed() && one.Open })
}

// Blocked returns the attempts that should have got through and did not, such as the
// one on a door of the policy.
func (r Report) Blocked() []Result {
	return r.pick(func(one Result) bool { return one.conclusive() && !one.crossed() && one.Open })
}

// Inconclusive returns the attempts that could not be made here.
func (r Report) Inconclusive() []Result {
	return r.pick(func(one Result) bool { return !one.conclusive() })
}

// Stopped returns the attempts that did not get through.
func (r Report) Stopped() []Result {
	return r.pick(func(one Result) bool { return one.conclusive() && !one.crossed() })
}

func (r Report) pick(keep func(Result) bool) []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(one Result) bool { return !keep(one) })
}

// Err returns an error that names the holes; nil if there are none.
func (r Report) Err() error {
	var names []string
	for _, hole := range r.Holes() {
		names = append(names, hole.Name)
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("the %s wall does not hold: %s", r.Grade.Wall, strings.Join(names, ", "))
}
