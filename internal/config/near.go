package config

import (
	"fmt"
	"strings"
)

// unknownHint names the known key that is most like an unknown one, or else all
// known keys.
func unknownHint(key string, known []string) string {
	best, distance := "", 1+len(key)/3
	for _, k := range known {
		if d := edits(strings.ToLower(dashed(key)), dashed(k)); d <= min(distance, 1+len(k)/3) {
			best, distance = k, d-1
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "remove it, or use one of: " + strings.Join(known, ", ")
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
