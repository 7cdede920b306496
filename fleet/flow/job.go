package flow

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"hone/fleet/job"
)

// maxLeg bounds a leg whose worker still sends heartbeats. The run has its own limits.
const maxLeg = 7 * 24 * time.Hour

// Order is a leg with its retry settings.
type Order struct {
	Leg       job.Leg       `json:"leg"`
	Heartbeat time.Duration `json:"heartbeat"`
	Tries     int           `json:"tries"`
}

// End is how a leg ended.
type End struct {
	Outcome job.Outcome `json:"outcome"`
	// Lost means that all tries failed. If Known is false, nobody knows what they spent.
	Lost  bool `json:"lost,omitempty"`
	Known bool `json:"known,omitempty"`
	// Cancelled means that the leg was asked to stop.
	Cancelled bool `json:"cancelled,omitempty"`
}

// Job is the workflow of one leg. It returns no error, even if it is cancelled or all tries
// fail: the batch must learn what the leg has spent.
func Job(ctx workflow.Context, o Order) (End, error) {
	if ctx.Err() != nil {
		return End{Lost: true, Known: true, Cancelled: true}, nil
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: maxLeg, HeartbeatTimeout: o.Heartbeat, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: 5 * time.Minute, MaximumAttempts: int32(o.Tries)},
	})
	var e End
	err := workflow.ExecuteActivity(ctx, Leg, o.Leg).Get(ctx, &e.Outcome)
	e.Cancelled = ctx.Err() != nil
	if err != nil {
		e.lose(err)
	}
	return e, nil
}

// The last try ended with the error.
func (e *End) lose(err error) {
	e.Outcome, e.Lost = job.Outcome{}, true
	if failed, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		e.Outcome.Why = failed.Message()
		e.Known = failed.HasDetails() && failed.Details(&e.Outcome) == nil
		return
	}
	switch timeout, ok := errors.AsType[*temporal.TimeoutError](err); {
	case temporal.IsCanceledError(err): // between two tries
		e.Outcome.Why = "no worker had it when it was cancelled"
	case ok && timeout.TimeoutType().String() == "Heartbeat":
		e.Outcome.Why = "its workers were lost"
	case ok:
		e.Outcome.Why = "it took too long: " + timeout.Error()
	default:
		e.Outcome.Why = err.Error()
	}
}
