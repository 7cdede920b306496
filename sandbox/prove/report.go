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
	Got   string // the name of the error number that stopped it, "open", "held" or "unknown"
	Text  string // the error, or the change found outside; may be empty
}

// State says what a result means, in words for the user.
type State string

// The states of a result.
const (
	Stopped State = "stopped"
	Hole    State = "crossed"                     // it got through although it must be stopped
	Open    State = "open"                        // it got through, as documented
	Blocked State = "blocked, but should be open" // such as the door of the policy
	Unknown State = "not tried"                   // it could not be made here
)

// State returns what the result means.
func (r Result) State() State {
	crossed := r.Got == "open"
	switch {
	case r.Got == "unknown":
		return Unknown
	case crossed && r.Open:
		return Open
	case crossed:
		return Hole
	case r.Open:
		return Blocked
	}
	return Stopped
}

// String returns the result in one line.
func (r Result) String() string {
	line := fmt.Sprintf("%s: %s, %s", r.State(), r.Name, r.About)
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

// In returns the results in a state.
func (r Report) In(state State) []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(one Result) bool { return one.State() != state })
}

// Err returns an error that names the holes; nil if there are none.
func (r Report) Err() error {
	var names []string
	for _, hole := range r.In(Hole) {
		names = append(names, hole.Name)
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("the %s wall does not hold: %s", r.Grade.Wall, strings.Join(names, ", "))
}
