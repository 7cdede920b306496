package flow

import (
	"maps"
	"testing"
)

// TestTerminated: a batch whose workflow was terminated has ended, with all its jobs.
func TestTerminated(t *testing.T) {
	s := Status{Counts: map[State]int{Done: 1, Running: 2}, Jobs: []JobStatus{{Progress: Progress{State: Done}}, {Progress: Progress{State: Running}}, {Progress: Progress{State: Running}}}}
	s.stop("terminated")
	if !s.Ended || s.Jobs[0].Why != "" || s.Jobs[1].State != Cancelled || s.Jobs[2].Why != "terminated" {
		t.Errorf("%+v", s)
	}
	if want := map[State]int{Done: 1, Running: 0, Cancelled: 2}; !maps.Equal(s.Counts, want) {
		t.Errorf("%v", s.Counts)
	}
}
