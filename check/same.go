package check

import (
	"slices"
	"strings"
)

// Key is what two findings have in common that say the same in two rounds:
// source, file, flags and [Normalise]d text. It is meant for a set and not for
// people.
func Key(f Finding) string {
	flags := []byte("---")
	for i, set := range []bool{f.Advisory, f.Broken, f.Blocker} {
		if set {
			flags[i] = "abk"[i]
		}
	}
	return strings.Join([]string{string(flags), f.Source, f.File, Normalise(f.Text)}, "\x00")
}

// Recurring tells what a check finds every time from what it finds now and
// then. The runs are its results on one tree, in their order, the first of
// which had blocking findings.
//
// If a run has no blocking finding, the last such run is believed: its advisory
// findings stay, and what blocked in the others is flaky. Otherwise those of
// the last run stay that every run has, in their order, and all others are
// flaky; but if none is in every run, all of the last run stay, because a check
// that never passed is not green.
//
// Two findings are the same if their [Key] is, or if both are the only blocking
// one of a source that has exactly one in each run, as a command's output is,
// whatever their texts say; it is the last one that stays. Advisory findings
// are compared with none: those of the run that is believed stay, and none is
// flaky. Broken ones and blockers stay in any case, whichever run had them. A
// run with a broken one knows nothing of what else there is: the others are
// asked for it, if there are any. Each flaky finding is named once. Without a
// run there is nothing.
func Recurring(runs ...[]Finding) (stay, flaky []Finding) {
	if len(runs) == 0 {
		return nil, nil
	}
	believed := trusted(runs)
	c := compareRuns(runs, believed)
	for _, f := range believed {
		if f.Advisory || lasting(f) || c.always[c.key(f)] {
			stay = append(stay, f)
		}
	}
	stay = c.addLasting(stay, runs)
	if Blocking(believed) && !Blocking(stay) {
		stay = slices.Clone(believed)
	}
	return stay, c.others(stay, runs)
}

// trusted is the run whose findings count: the last one without a blocking
// finding, else the last one that knows what there is, else the last.
func trusted(runs [][]Finding) []Finding {
	for _, trust := range []func([]Finding) bool{
		func(run []Finding) bool { return !Blocking(run) },
		knows,
	} {
		for _, run := range slices.Backward(runs) {
			if trust(run) {
				return run
			}
		}
	}
	return runs[len(runs)-1]
}

// knows reports whether a check could run, and so knows what there is.
func knows(run []Finding) bool {
	return !slices.ContainsFunc(run, func(f Finding) bool { return f.Broken })
}

// lasting reports whether a finding is no matter of chance.
func lasting(f Finding) bool { return f.Broken || f.Blocker }

// comparison is what several runs of a check have in common.
type comparison struct {
	single map[string]bool // sources with exactly one finding in each run that blocks
	always map[string]bool // keys of what every run has
}

// compareRuns compares the runs that know what there is. If one that knows is
// clean, they have nothing in common.
func compareRuns(runs [][]Finding, believed []Finding) comparison {
	c := comparison{single: map[string]bool{}, always: map[string]bool{}}
	var known [][]Finding
	for _, run := range runs {
		if Blocking(run) && knows(run) {
			known = append(known, slices.DeleteFunc(slices.Clone(run), passing))
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

// passing reports whether a finding is not compared with those of other runs.
func passing(f Finding) bool { return f.Advisory || lasting(f) }

// findSingle finds the sources that have one finding in each run.
func (c comparison) findSingle(runs [][]Finding) {
	for i, run := range runs {
		count := map[string]int{}
		for _, f := range run {
			count[f.Source]++
			c.single[f.Source] = c.single[f.Source] || i == 0
		}
		for source := range c.single {
			c.single[source] = c.single[source] && count[source] == 1
		}
	}
}

// key is the same for findings that are the same here.
func (c comparison) key(f Finding) string {
	if c.single[f.Source] && !passing(f) {
		return f.Source
	}
	return Key(f)
}

// keys are those of a run's findings.
func (c comparison) keys(run []Finding) map[string]bool {
	keys := map[string]bool{}
	for _, f := range run {
		keys[c.key(f)] = true
	}
	return keys
}

// addLasting adds what is no matter of chance and stands in any of the runs.
func (c comparison) addLasting(stay []Finding, runs [][]Finding) []Finding {
	had := c.keys(stay)
	for _, f := range slices.Concat(runs...) {
		if key := c.key(f); lasting(f) && !had[key] {
			had[key] = true
			stay = append(stay, f)
		}
	}
	return stay
}

// others are the findings that block and do not stay, each once.
func (c comparison) others(stay []Finding, runs [][]Finding) []Finding {
	had := c.keys(stay)
	var others []Finding
	for _, f := range slices.Concat(runs...) {
		if key := c.key(f); !passing(f) && !had[key] {
			had[key] = true
			others = append(others, f)
		}
	}
	return others
}
