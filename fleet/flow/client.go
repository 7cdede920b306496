package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hone/fleet/job"
	"hone/group"
	"hone/internal/render"
)

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
