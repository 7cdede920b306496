package story_test

import (
	"testing"

	"hone/history"
	"hone/story"
)

// TestAttemptWithoutRun: an attempt that was stopped before its run began names no run.
func TestAttemptWithoutRun(t *testing.T) {
	for want, a := range map[string]history.Attempt{
		"attempt 1: not started":   {Number: 1, Model: "m"},
		"attempt 2: run a with m":  {Number: 2, Model: "m", Run: "2026-a"},
		"attempt 3: ✗ failed: why": {Number: 3, Result: history.KindFailed, Why: "why"},
	} {
		if got := story.AttemptText(a, false); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
