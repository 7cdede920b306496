package attempts

import (
	"testing"

	"hone/history"
)

func TestFewest(t *testing.T) {
	one, two := 1, 2
	states := []history.Attempt{{Number: 1, Findings: &two}, {Number: 2, Findings: &one}, {Number: 3}}
	for _, want := range []string{
		"attempt 2 has the fewest findings (1)",
		"attempts 2 and 4 have the fewest findings (1 each)",
		"attempts 2, 4 and 5 have the fewest findings (1 each)",
	} {
		if got := fewestText(states, one); got != want {
			t.Errorf("%d attempts: %q, want %q", len(states), got, want)
		}
		states = append(states, history.Attempt{Number: len(states) + 1, Findings: &one})
	}
}
