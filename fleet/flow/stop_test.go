package flow

import (
	"maps"
	"testing"

	"go.temporal.io/sdk/temporal"

	"hone/fleet/job"
	"hone/group"
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

// TestDetails: the server's pages show how far a batch is.
func TestDetails(t *testing.T) {
	b := newBatch(Input{ID: "B", Jobs: make([]job.Job, 3), Max: group.Amount{Tokens: 9000}})
	b.Progress[0].State, b.Progress[2].State, b.Bank.Spent.Tokens = Done, NeedsYou, 1234
	if got, want := b.details(), "1 queued, 1 needs you, 1 done; 1 234 tokens spent\n\nmore: `hone-fleet show B`"; got != want {
		t.Errorf("got %q, want %q", got, want)
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
