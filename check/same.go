package check

import (
	"slices"
	"strings"
)

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

// SplitFlaky separates the findings that a check returns every time from those
// that it returns sometimes. runs are its results on one tree, in order; the
// first of them had blocking findings.
//
// If a run has no blocking finding, the last such run decides: its advisory
// findings stay, and all blocking findings of other runs are flaky. Otherwise
// the findings of the last run that occur in every run stay, in their order,
// and all others are flaky. But if no finding occurs in every run, the complete
// last run stays, because a check that never passes has failed.
//
// Two findings are the same if their [Key] is. Without IDs they are also the same if
// each is the only blocking finding of its source and that source has exactly one in
// each run, as for the output of a command; then the last one stays. Advisory
// findings are not compared: those of the deciding run stay, and none is flaky.
// Broken findings and blockers always stay, whichever run had them. A run with
// a broken finding is incomplete, so if possible the other runs decide. Each
// flaky finding is returned once. Without runs both results are nil.
func SplitFlaky(runs ...[]Finding) (stay, flaky []Finding) {
	if len(runs) == 0 {
		return nil, nil
	}
	believed := decisiveRun(runs)
	c := compareRuns(runs, believed)
	for _, f := range believed {
		if f.Advisory || isPermanent(f) || c.always[c.key(f)] {
			stay = append(stay, f)
		}
	}
	stay = c.addPermanent(stay, runs)
	if Blocking(believed) && !Blocking(stay) {
		stay = slices.Clone(believed)
	}
	return stay, c.flaky(stay, runs)
}

// It is the last one without blocking findings, else the last complete one, else the last.
func decisiveRun(runs [][]Finding) []Finding {
	for _, trust := range []func([]Finding) bool{
		func(run []Finding) bool { return !Blocking(run) },
		isComplete,
	} {
		for _, run := range slices.Backward(runs) {
			if trust(run) {
				return run
			}
		}
	}
	return runs[len(runs)-1]
}

// A run in which the check could run has all findings.
func isComplete(run []Finding) bool {
	return !slices.ContainsFunc(run, func(f Finding) bool { return f.Broken })
}

// A permanent finding cannot be flaky.
func isPermanent(f Finding) bool { return f.Broken || f.Blocker }

// comparison is what several runs of a check have in common.
type comparison struct {
	single map[string]bool // sources with exactly one blocking finding in each run
	always map[string]bool // keys of findings in every run
}

// If one of the runs passes, they have nothing in common.
func compareRuns(runs [][]Finding, believed []Finding) comparison {
	c := comparison{single: map[string]bool{}, always: map[string]bool{}}
	var known [][]Finding
	for _, run := range runs {
		if Blocking(run) && isComplete(run) {
			known = append(known, slices.DeleteFunc(slices.Clone(run), isExempt))
		}
	}
	c.findSingle(known)
	if !Blocking(believed) {
		return c
	}
	times := map[string]int{}
	for _, run := range known {
		for key := range c.keys(run) {
			times[key]++
			c.always[key] = times[key] == len(known)
		}
	}
	return c
}

// An exempt finding is not compared with those of other runs.
func isExempt(f Finding) bool { return f.Advisory || isPermanent(f) }

func (c comparison) findSingle(runs [][]Finding) {
	for i, run := range runs {
		count := map[string]int{}
		for _, f := range run {
			if count[f.Source]++; f.ID != "" {
				count[f.Source]++ // its ID tells it from others
			}
			c.single[f.Source] = c.single[f.Source] || i == 0
		}
		for source := range c.single {
			c.single[source] = c.single[source] && count[source] == 1
		}
	}
}

// Findings that are the same in this comparison have equal keys.
func (c comparison) key(f Finding) string {
	if c.single[f.Source] && !isExempt(f) {
		return f.Source
	}
	return Key(f)
}

func (c comparison) keys(run []Finding) map[string]bool {
	keys := map[string]bool{}
	for _, f := range run {
		keys[c.key(f)] = true
	}
	return keys
}

func (c comparison) addPermanent(stay []Finding, runs [][]Finding) []Finding {
	seen := c.keys(stay)
	for _, f := range slices.Concat(runs...) {
		if key := c.key(f); isPermanent(f) && !seen[key] {
			seen[key] = true
			stay = append(stay, f)
		}
	}
	return stay
}

// Each is returned once.
func (c comparison) flaky(stay []Finding, runs [][]Finding) []Finding {
	seen := c.keys(stay)
	var flaky []Finding
	for _, f := range slices.Concat(runs...) {
		if key := c.key(f); !isExempt(f) && !seen[key] {
			seen[key] = true
			flaky = append(flaky, f)
		}
	}
	return flaky
}
