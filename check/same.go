package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"hone/internal/excerpt"
	"hone/internal/lazyregexp"
)

// volatile is what usually differs between two runs of the same failure: a name in a
// directory for temporary files, and whatever has a digit, such as a time, a duration, an
// address or a port. The width of pytest's headers depends on a duration.
var volatile = lazyregexp.New(`(?:/private)?(?:/var)?/(?:tmp|folders)/[^\s'"` + "`" + `:;,()<>\[\]]+|(?i:[a-z]:[\\/]+[^\s'"]*te?mp[\\/]+[^\s'":;,()<>]+)|` +
	number + `(?: (?:` + number + `|(?:ms|s|secs?|min|AM|PM)\b))*|\(cached\)|={8,}`)

const number = `\b(?:[0-9][\w.:,+-]*|[0-9a-fA-F]{7,}\b(?:-[0-9a-fA-F]{4,})*)`

// Normalize returns a text without what usually differs between two runs of the same
// failure: colors, numbers, and names in directories for temporary files. It is for the
// output of a command that no Reader understood; a finding with an ID is recognized by that.
//
// Two different failures may become equal. That matters only between two checks of the same
// tree, or two equal calls in a row, and no verdict depends on it. Show the user the text itself.
//
// Normalize takes linear time, and normalizing twice changes nothing more. The result is at
// most five times as long as the text.
func Normalize(text string) string {
	var b strings.Builder
	for line := range strings.Lines(excerpt.Screen(text)) {
		b.WriteString(strings.TrimRight(volatile.ReplaceAllString(line, "<n>"), " \t\r\n") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// Key returns a string that is equal for two findings that say the same in
// different rounds: source, flags, and the ID, or else the file and the [Normalize]d
// text, or for omitted findings their digest. A test has the same ID when it fails in
// another file. The key is not meant for display.
func Key(f Finding) string {
	flags := []byte("---")
	for i, set := range []bool{f.Advisory, f.Broken, f.Blocker} {
		if set {
			flags[i] = "abk"[i]
		}
	}
	if f.ID != "" {
		return strings.Join([]string{string(flags), f.Source, "", "", f.ID}, "\x00")
	}
	return strings.Join([]string{string(flags), f.Source, f.File, Normalize(f.Text) + f.Digest}, "\x00")
}

// SplitFlaky separates the findings that a check returns every time from those that it
// returns sometimes. runs are its results on one tree, in order; all but the last have
// blocking findings. Runs with a Broken finding do not count, unless all have one.
//
// Of the last run its advisory findings stay, and the blocking ones that are in every run;
// all others are flaky, each once. If no blocking finding is in every run, the complete last
// run stays, because a check that never passes has failed. Without IDs, two findings are the
// same if their [Key] is, and the outputs of a command are.
func SplitFlaky(runs ...[]Finding) (stay, flaky []Finding) {
	complete := slices.DeleteFunc(slices.Clone(runs), func(run []Finding) bool {
		return slices.ContainsFunc(run, func(f Finding) bool { return f.Broken })
	})
	if len(complete) == 0 {
		return slices.Concat(runs[max(0, len(runs)-1):]...), nil
	}
	key := func(f Finding) string {
		if f.ID == "" && f.Source == SourceCommand && f.Blocks() {
			return f.Source
		}
		return Key(f)
	}
	times := map[string]int{} // in how many runs it is
	for _, run := range complete {
		seen := map[string]bool{}
		for _, f := range run {
			if k := key(f); !seen[k] {
				seen[k] = true
				times[k]++
			}
		}
	}
	last := complete[len(complete)-1]
	for _, f := range last {
		if !f.Blocks() || times[key(f)] == len(complete) {
			stay = append(stay, f)
		}
	}
	if Blocking(last) && !Blocking(stay) {
		stay = slices.Clone(last)
	}
	seen := map[string]bool{}
	for _, f := range stay {
		seen[key(f)] = true
	}
	for _, f := range slices.Concat(complete...) {
		if f.Blocks() && !seen[key(f)] {
			seen[key(f)] = true
			flaky = append(flaky, f)
		}
	}
	return stay, flaky
}

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
