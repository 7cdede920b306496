// Package near finds the name that a user probably meant.
package near

import "strings"

// Name returns the known name that is most like an unknown one: the only one that begins
// with it, or else the one that takes the fewest changes; empty if none is like it. It
// ignores case.
func Name(unknown string, known []string) string {
	if name := beginning(unknown, known); name != "" {
		return name
	}
	best, distance := "", 1+len(unknown)/3
	for _, k := range known {
		if d := edits(strings.ToLower(unknown), strings.ToLower(k)); d <= min(distance, 1+len(k)/3) {
			best, distance = k, d-1
		}
	}
	return best
}

func beginning(text string, names []string) (only string) {
	for _, n := range names {
		if len(text) < 3 || !strings.HasPrefix(strings.ToLower(n), strings.ToLower(text)) {
			continue
		}
		if only != "" {
			return ""
		}
		only = n
	}
	return only
}

// edits returns how many bytes must be added, removed or changed to turn one
// text into the other.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
