package check

import (
	"fmt"
	"strings"
)

// Tally returns how many findings there are, such as "7 findings in 3 files". Omitted
// findings count. It does not say how many files if a finding has none, or if there is
// only one finding.
func Tally(findings []Finding) string {
	n, files := Count(findings), map[string]bool{}
	for _, f := range findings {
		files[f.File] = true
	}
	text := fmt.Sprintf("%d findings", n)
	switch {
	case n == 1:
		text = "1 finding"
	case files[""] || n == 0:
	case len(files) == 1:
		text += " in 1 file"
	default:
		text += fmt.Sprintf(" in %d files", len(files))
	}
	return text
}

// Difference returns how findings differ from those before, such as "2 gone, 1 new";
// empty if they do not, or if that is not known because a blocking finding of either has
// no ID.
func Difference(before, now []Finding) string {
	if !Blocking(before) {
		return ""
	}
	count := map[string]int{} // of each key now, less before
	for n, list := range [][]Finding{before, now} {
		for _, f := range BlockingOf(list) {
			if f.ID == "" {
				return ""
			}
			count[Key(f)] += 2*n - 1
		}
	}
	gone, added := 0, 0
	for _, n := range count {
		gone, added = gone+max(0, -n), added+max(0, n)
	}
	var parts []string
	if gone > 0 {
		parts = append(parts, fmt.Sprintf("%d gone", gone))
	}
	if added > 0 {
		parts = append(parts, fmt.Sprintf("%d new", added))
	}
	return strings.Join(parts, ", ")
}
