package prove

import (
	"fmt"
	"slices"
	"strings"

	"hone/sandbox"
)

// Result is what came out of an attempt.
type Result struct {
	Name     string
	About    string      // what it tries, in words
	Expected Expectation // what the table says
	Got      string      // the name of the error number that stopped it, "open", "held", "not tried" or "unknown"
	Text     string      // the error, or what was seen outside; may be empty
}

// Crossed reports whether the attempt got through. One that was not tried, as
// it would harm the machine, counts as such.
func (r Result) Crossed() bool { return r.Got == wordOpen || r.Got == wordNotTried }

// Known reports whether the attempt could be made here. One that could not
// be is neither stopped nor crossed.
func (r Result) Known() bool { return r.Got != wordUnknown }

// String is the result in a line.
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

// asExpected reports whether the table has the very word.
func (r Result) asExpected() bool { return !r.Known() || r.Expected.allows(r.Got) }

// Report is what came out of all attempts.
type Report struct {
	Grade   sandbox.Grade
	Results []Result
}

// Holes are the attempts that got through and that the table says are stopped.
func (r Report) Holes() []Result {
	return r.pick(func(one Result) bool { return one.Crossed() && !one.Expected.open() })
}

// Open are the attempts that got through, as the table says.
func (r Report) Open() []Result {
	return r.pick(func(one Result) bool { return one.Crossed() && one.Expected.open() })
}

// Shut are the attempts that should have got through and did not: a door of
// the policy, for one.
func (r Report) Shut() []Result {
	return r.pick(func(one Result) bool {
		return one.Known() && !one.Crossed() && one.Expected.open() && !one.asExpected()
	})
}

// Unknown are the attempts that could not be made here.
func (r Report) Unknown() []Result {
	return r.pick(func(one Result) bool { return !one.Known() })
}

// Stopped are the attempts that did not get through.
func (r Report) Stopped() []Result {
	return r.pick(func(one Result) bool { return one.Known() && !one.Crossed() })
}

func (r Report) pick(keep func(Result) bool) []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(one Result) bool { return !keep(one) })
}

// HoleError says that walls do not hold.
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
	return fmt.Sprintf("the wall %s does not hold: %s", e.Wall, strings.Join(names, ", "))
}

// Err is a [*HoleError] where there are holes, and nil otherwise.
func (r Report) Err() error {
	if holes := r.Holes(); len(holes) > 0 {
		return &HoleError{Wall: r.Grade.Wall, Holes: holes}
	}
	return nil
}
