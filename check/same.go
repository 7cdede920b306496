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
