package check

import (
	"fmt"
	"slices"
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
	was, ok := identified(before)
	is, ok2 := identified(now)
	if !ok || !ok2 || len(was) == 0 {
		return ""
	}
	var parts []string
	if gone := len(without(was, is)); gone > 0 {
		parts = append(parts, fmt.Sprintf("%d gone", gone))
	}
	if added := len(without(is, was)); added > 0 {
		parts = append(parts, fmt.Sprintf("%d new", added))
	}
	return strings.Join(parts, ", ")
}

// ok is false if one has no ID.
func identified(findings []Finding) (list []string, ok bool) {
	for _, f := range findings {
		if f.Blocks() && f.ID == "" {
			return nil, false
		}
		if f.Blocks() {
			list = append(list, Key(f))
		}
	}
	return list, true
}

// Of equal strings as many stay as other has fewer.
func without(list, other []string) []string {
	other = slices.Clone(other)
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		i := slices.Index(other, s)
		if i >= 0 {
			other = slices.Delete(other, i, i+1)
		}
		return i >= 0
	})
}
