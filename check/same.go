package check

import (
	"slices"
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
	var failed [][]Finding // what is compared of the complete runs
	for _, run := range runs {
		if Blocking(run) && isComplete(run) {
			failed = append(failed, slices.DeleteFunc(slices.Clone(run), isExempt))
		}
	}
	single := singleSources(failed)
	key := func(f Finding) string {
		if single[f.Source] && !isExempt(f) {
			return f.Source
		}
		return Key(f)
	}
	times := map[string]int{} // in how many of them a finding is
	for _, run := range failed {
		seen := map[string]bool{}
		for _, f := range run {
			if k := key(f); !seen[k] {
				seen[k] = true
				times[k]++
			}
		}
	}
	seen := map[string]bool{}
	add := func(list []Finding, f Finding) []Finding {
		seen[key(f)] = true
		return append(list, f)
	}
	for _, f := range believed {
		if isExempt(f) || Blocking(believed) && times[key(f)] == len(failed) {
			stay = add(stay, f)
		}
	}
	all := slices.Concat(runs...)
	for _, f := range all {
		if isPermanent(f) && !seen[key(f)] {
			stay = add(stay, f)
		}
	}
	if Blocking(believed) && !Blocking(stay) {
		stay = nil
		for _, f := range believed {
			stay = add(stay, f)
		}
	}
	for _, f := range all {
		if !isExempt(f) && !seen[key(f)] {
			flaky = add(flaky, f)
		}
	}
	return stay, flaky
}

// It is the last one without blocking findings, else the last complete one, else the last.
func decisiveRun(runs [][]Finding) []Finding {
	for _, trust := range []func([]Finding) bool{func(run []Finding) bool { return !Blocking(run) }, isComplete} {
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

// An exempt finding is not compared with those of other runs.
func isExempt(f Finding) bool { return f.Advisory || isPermanent(f) }

// They have exactly one finding in each run, and no ID tells it from others.
func singleSources(runs [][]Finding) map[string]bool {
	single := map[string]bool{}
	for i, run := range runs {
		count := map[string]int{}
		for _, f := range run {
			if count[f.Source]++; f.ID != "" {
				count[f.Source]++
			}
			single[f.Source] = single[f.Source] || i == 0
		}
		for source := range single {
			single[source] = single[source] && count[source] == 1
		}
	}
	return single
}
