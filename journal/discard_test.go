package journal_test

import (
	"slices"
	"testing"

	"hone/journal"
)

// Discard deletes a journal without events, and no other.
func TestDiscard(t *testing.T) {
	h := home(t)
	for _, run := range []string{"empty", "used"} {
		j, err := h.Create(run)
		if err != nil {
			t.Fatal(err)
		}
		if run == "used" {
			if _, err := j.Append(journal.Entry{Type: "test", Payload: payload{N: 1}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Discard(); (err != nil) != (run == "used") {
			t.Errorf("%s: %v", run, err)
		}
		j.Close()
	}
	if runs, err := h.Runs(); err != nil || !slices.Equal(runs, []string{"used"}) {
		t.Errorf("runs: %q, %v", runs, err)
	}
}
