package report

import (
	"strings"
	"testing"

	"hone/story"
)

// TestLongVerdicts: a verdict that does not fit its round's line has the next one, as long
// as all rounds fit the terminal.
func TestLongVerdicts(t *testing.T) {
	long := story.Round{Number: 1, Outcome: story.Failed, Verdict: "Format(40) is XXXX, and in Roman numerals it is written XL, a smaller symbol before a larger one"}
	o := sheet{rounds: []story.Round{long, {Number: 2, Outcome: story.Passed, Verdict: "check passed"}}, columns: 80, rows: 24}
	if got := o.roundLines(3); len(got) != 3 || !strings.HasPrefix(got[1], "    Format(40) is XXXX, and in Roman numerals it is written XL, a smaller ") || len(got[0]) != len(got[2]) {
		t.Errorf("got %q", got)
	}
	if got := o.roundLines(2); len(got) != 2 || !strings.Contains(got[0], "Format(40) is XXXX, and in Roman") {
		t.Errorf("got %q", got)
	}
}
