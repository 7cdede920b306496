package flow

import (
	"maps"
	"testing"

	"go.temporal.io/sdk/temporal"
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

// TestLose: a lost leg says why in plain words.
func TestLose(t *testing.T) {
	for err, want := range map[error]string{
		temporal.NewCanceledError():         "no worker had it when it was cancelled",
		temporal.NewHeartbeatTimeoutError(): "its workers were lost",
	} {
		var e End
		if e.lose(err); e.Outcome.Why != want || !e.Lost || e.Known {
			t.Errorf("%v: %+v", err, e)
		}
	}
}
