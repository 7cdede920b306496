package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Baseline is how often a check had found each identity before. A finding that moves to
// another line stays the same.
type Baseline map[string]int

// BaselineOf returns the baseline that findings make. Those without an ID are not in it.
func BaselineOf(findings []Finding) Baseline {
	b := Baseline{}
	for _, f := range findings {
		if f.ID != "" {
			b[f.identity()]++
		}
	}
	return b
}

// The number that tells equal findings of one output apart is left out.
func (f Finding) identity() string {
	if at := strings.LastIndex(f.ID, " #"); at >= 0 {
		if _, err := strconv.Atoi(f.ID[at+2:]); err == nil {
			return f.ID[:at]
		}
	}
	return f.ID
}

// Split separates the findings that are new from those that were there. If there are more of
// one identity than there were, those that touched accepts are the new ones. A finding
// without an ID counts as new. So does a Partial one, which may hide others.
func (b Baseline) Split(findings []Finding, touched func(Finding) bool) (added, old []Finding) {
	left, was := maps.Clone(b), make([]bool, len(findings))
	for _, any := range []bool{false, true} {
		for i, f := range findings {
			if id := f.identity(); !was[i] && id != "" && !f.Partial && left[id] > 0 && (any || !touched(f)) {
				left[id]--
				was[i] = true
			}
		}
	}
	for i, f := range findings {
		if was[i] {
			old = append(old, f)
		} else {
			added = append(added, f)
		}
	}
	return added, old
}

// Lines returns one line for each identity, sorted, such as "F401: a.py: unused import (2 times)".
func (b Baseline) Lines() []string {
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(b)) {
		if n := b[id]; n > 1 {
			id += fmt.Sprintf(" (%d times)", n)
		}
		lines = append(lines, id)
	}
	return lines
}
