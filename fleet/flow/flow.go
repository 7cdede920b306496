// Package flow defines the workflows of a fleet on Temporal.
//
// A batch is one workflow, [Batch]. Each leg of a job is one short child workflow, [Job],
// with one activity, which a worker registers as [Leg]. A job has no child while it waits
// for its turn, for budget or for the user. So a batch has at most Parallel children, needs
// no messages between workflows, and can continue as new when its history is long and the
// running legs have ended.
//
// [Register] registers both workflows with a worker. [Start], [Read], [Answer] and [Cancel]
// are for clients.
//
// The bank lends a job an allowance before each leg, and takes the rest back after it. A
// job that has used up its allowance borrows again, after the jobs that have not started,
// and at least as much as it has had so far: the number of its legs grows with the logarithm
// of what it uses. If the outcome of a leg never arrives, its whole allowance is charged.
//
// A batch can outlive a version of this program. If you change what the workflows do, or in
// which order, keep the recorded histories in testdata valid, or use workflow.GetVersion.
package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hone/fleet/job"
	"hone/group"
	"hone/internal/render"
)

// Leg is the name of the activity. It takes a [job.Leg] and returns a [job.Outcome]. When
// it is cancelled, it returns the outcome of the interrupted run and no error. Until it
// returns it must send heartbeats, with context.WithoutCancel; otherwise it counts as lost.
// An error means that the worker's environment failed, and that another try may succeed. If
// the first detail of an application error is a [job.Outcome], it says what the run has
// spent so far.
const Leg = "leg"

// Names of the query and the updates of a batch; use [Read], [Answer] and [Cancel].
const (
	stateQuery   = "state"
	answerUpdate = "answer"
	cancelUpdate = "cancel"
)

// Input starts a batch.
type Input struct {
	ID       string       `json:"id"`
	Jobs     []job.Job    `json:"jobs"`         // at least one, with different names
	Max      group.Amount `json:"max,omitzero"` // of all jobs; a part that is 0 has no limit
	Parallel int          `json:"parallel"`     // the number of legs at the same time; 0 means 8

	// Heartbeat is the time after which a silent worker counts as lost; 0 means 60 s.
	Heartbeat time.Duration `json:"heartbeat,omitempty"`
	// Tries is how often a leg is tried when workers are lost or fail; 0 means 20.
	Tries int `json:"tries,omitempty"`

	// Carried is the state of a batch that has continued as new; nil at its start.
	Carried *Carried `json:"carried,omitempty"`
}

// Carried is what a batch knows. All of it is in the order of [Input.Jobs].
type Carried struct {
	Bank     group.Bank `json:"bank"`
	Progress []Progress `json:"progress"`
	Turn     int        `json:"turn"` // of the last job in the queue
}

// State is what a job is doing.
type State string

// A job begins as Queued. The last four are ends.
const (
	Queued    State = "queued"             // it waits for its turn
	Waiting   State = "waiting for budget" // it waits until other jobs repay
	Running   State = "running"            // it has a leg, which a worker has or will get
	NeedsYou  State = "needs you"          // it waits for answers to its questions
	Done      State = "done"
	Failed    State = "failed" // it stopped without being done
	NoBudget  State = "budget" // its own limit or the batch's is used up
	Cancelled State = "cancelled"
)

// States returns all states, in the order of a job's life.
func States() []State {
	return []State{Queued, Waiting, Running, NeedsYou, Done, Failed, NoBudget, Cancelled}
}

// Ended reports whether a state is an end.
func (s State) Ended() bool {
	return s == Done || s == Failed || s == NoBudget || s == Cancelled
}

// Progress is where a job stands.
type Progress struct {
	State State        `json:"state"`
	Why   string       `json:"why,omitempty"`  // one line: why it is in this state; may be empty
	Legs  int          `json:"legs,omitempty"` // begun so far
	Limit group.Amount `json:"limit,omitzero"` // of the last leg
	// Outcome is that of the last leg that has ended, with shortened texts. If the job has
	// ended, its Why is empty: see Why above.
	Outcome job.Outcome `json:"outcome,omitzero"`
	// Answers are those to the questions of Outcome, for the next leg.
	Answers []job.Answer `json:"answers,omitempty"`

	Turn int `json:"turn,omitempty"` // place in the queue: lower ones are first
	Idle int `json:"idle,omitempty"` // legs in a row that ended for budget, and spent nothing
}

// Status is the state of a batch for clients: the answer to a query, and the result.
type Status struct {
	ID       string        `json:"id"`
	Ended    bool          `json:"ended"`
	Bank     Figures       `json:"bank"`
	Parallel int           `json:"parallel"`
	Counts   map[State]int `json:"counts"`
	Jobs     []JobStatus   `json:"jobs"` // in the order in which they were submitted
}

// Figures is the state of a bank for people.
type Figures struct {
	Cap   group.Amount `json:"cap,omitzero"` // a part that is 0 has no limit
	Lent  group.Amount `json:"lent,omitzero"`
	Spent group.Amount `json:"spent,omitzero"`
	Free  group.Amount `json:"free,omitzero"` // of the limited parts; negative if more was spent than lent
}

// JobStatus is the state of a job for clients.
type JobStatus struct {
	Name string `json:"name"`
	Repo string `json:"repo"`
	Ref  string `json:"ref,omitempty"`
	Loop string `json:"loop"`
	Progress
}

// The ids of workflows. Names contain no colon, so that no two workflows have the same id.
const idPrefix = "hone:"

// BatchID returns the id of a batch's workflow.
func BatchID(batch string) string { return idPrefix + batch }

// JobID returns the id of the workflows of a job's legs.
func JobID(batch, name string) string { return BatchID(batch) + ":" + name }

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

// Register registers the workflows with a worker.
func Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(Batch, workflow.RegisterOptions{Name: "hone batch"})
	r.RegisterWorkflowWithOptions(Job, workflow.RegisterOptions{Name: "hone leg"})
}

// MaxInput is the maximum size of a batch's input as JSON, in bytes. Temporal accepts 2 MiB,
// which must also hold the outcomes of the jobs.
const MaxInput = 512 << 10

// MaxJobs is the maximum number of jobs of a batch, so that its state fits into one answer.
const MaxJobs = 2000

var (
	// ErrExists means that a batch with this id exists, or has existed.
	ErrExists = errors.New("a batch with this id exists already")
	// ErrUnknown means that the server has no batch with this id, or has forgotten it.
	ErrUnknown = errors.New("the server knows no batch with this id")
	// ErrEnded means that the batch has ended, and accepts nothing more.
	ErrEnded = errors.New("the batch has ended")
)

// Start starts a batch on a task queue. The error is [ErrExists] if its id is taken.
func Start(ctx context.Context, c client.Client, queue string, in Input) error {
	text, err := json.Marshal(in)
	switch {
	case err != nil:
		return err
	case len(in.Jobs) == 0:
		return errors.New("a batch needs at least one job")
	case len(in.Jobs) > MaxJobs:
		return fmt.Errorf("a batch can have at most %d jobs, and this one has %d: submit several batches", MaxJobs, len(in.Jobs))
	case len(text) > MaxInput:
		return fmt.Errorf("the jobs need %d bytes, and a batch can have at most %d: submit several batches, or shorten the arguments", len(text), MaxInput)
	}
	_, err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: BatchID(in.ID), TaskQueue: queue, StaticSummary: render.Count(len(in.Jobs), "job") + budget(in.Max),
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, "hone batch", in)
	if errors.As(err, new(*serviceerror.WorkflowExecutionAlreadyStarted)) {
		return ErrExists
	}
	return err
}

// Read returns the status of a batch. While the batch runs, one of its workers must
// be running to answer; once it has ended, the server alone answers.
func Read(ctx context.Context, c client.Client, id string) (s Status, err error) {
	d, err := c.DescribeWorkflowExecution(ctx, BatchID(id), "")
	if err != nil {
		return s, batchError(err)
	}
	status := d.GetWorkflowExecutionInfo().GetStatus()
	if status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return s, c.GetWorkflow(ctx, BatchID(id), "").Get(ctx, &s)
	}
	value, err := c.QueryWorkflow(ctx, BatchID(id), "", stateQuery)
	if err != nil {
		return s, batchError(err)
	}
	err = value.Get(&s)
	switch status {
	case enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, enums.WORKFLOW_EXECUTION_STATUS_FAILED, enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		s.stop("the batch's workflow ended: " + status.String())
	}
	return s, err
}

func budget(limit group.Amount) string {
	if limit == (group.Amount{}) {
		return ""
	}
	return ", at most " + limit.String()
}

// The workflow has ended without a result, for example because it was terminated. What the last legs have spent is missing.
func (s *Status) stop(why string) {
	s.Ended = true
	for i := range s.Jobs {
		if j := &s.Jobs[i]; !j.State.Ended() {
			s.Counts[j.State]--
			s.Counts[Cancelled]++
			j.State, j.Why = Cancelled, why
		}
	}
}

// Answer answers questions of a job that needs the user. When all are answered, the job
// continues. It is an error if the job does not wait for these answers.
func Answer(ctx context.Context, c client.Client, id, name string, answers []job.Answer) error {
	return update(ctx, c, id, answerUpdate, name, answers)
}

// Cancel cancels jobs by name: a running leg is interrupted, and its result is kept. Without
// names, Cancel cancels all jobs of the batch that have not ended; that needs no worker.
func Cancel(ctx context.Context, c client.Client, id string, names ...string) error {
	if len(names) > 0 {
		return update(ctx, c, id, cancelUpdate, names)
	}
	d, err := c.DescribeWorkflowExecution(ctx, BatchID(id), "")
	switch {
	case err != nil:
		return batchError(err)
	case d.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return ErrEnded // which the server does not say
	}
	return batchError(c.CancelWorkflow(ctx, BatchID(id), ""))
}

func update(ctx context.Context, c client.Client, id, name string, args ...any) error {
	h, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: BatchID(id), UpdateName: name, Args: args, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(ctx, nil)
	}
	return batchError(err)
}

func batchError(err error) error {
	var missing *serviceerror.NotFound
	switch {
	case !errors.As(err, &missing):
		return err
	case missing.Message == "workflow execution already completed":
		return ErrEnded
	}
	return ErrUnknown
}
