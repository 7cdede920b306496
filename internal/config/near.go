package config

import (
	"fmt"
	"slices"
	"strings"
)

// unknownHint says which key was likely meant, or which there are.
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
	return "remove it, or write one of: " + strings.Join(known, ", ")
}

// edits is how many letters have to be added, removed or changed to make one
// text of the other.
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

// oneOf words a choice.
func oneOf(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	last := len(quoted) - 1
	return "write " + strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// isOne reports whether a word is in a choice.
func isOne(word string, words []string) bool { return slices.Contains(words, word) }
