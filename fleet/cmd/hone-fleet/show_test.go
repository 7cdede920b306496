package main

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hone/fleet/flow"
)

// lister is a server with one page of batches for each group of ids, which began in the
// order of their letters.
type lister struct {
	client.Client
	pages []string
}

func (l lister) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	n := len(r.GetNextPageToken())
	page := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, id := range l.pages[n] {
		page.Executions = append(page.Executions, &workflow.WorkflowExecutionInfo{
			Execution: &common.WorkflowExecution{WorkflowId: flow.BatchID(string(id))},
			StartTime: timestamppb.New(time.Unix(int64(id), 0)),
		})
	}
	if n+1 < len(l.pages) {
		page.NextPageToken = make([]byte, n+1)
	}
	return page, nil
}

// TestLastBatch holds that "last" is the batch that began last, although a server lists
// the batches that have not ended first.
func TestLastBatch(t *testing.T) {
	for want, pages := range map[string][]string{"c": {"ac", "b"}, "d": {"ab", "dc"}} {
		if id, err := lastBatch(t.Context(), lister{pages: pages}, "last"); id != want || err != nil {
			t.Errorf("%v: %s, %v, want %s", pages, id, err, want)
		}
	}
	if _, err := lastBatch(t.Context(), lister{pages: []string{""}}, "last"); err == nil {
		t.Error("there is a last batch of none")
	}
}

// meeting is a server on which no query is answered before the last one arrives.
type meeting struct {
	client.Client
	sync.WaitGroup
}

func (m *meeting) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, nil
}

func (m *meeting) QueryWorkflow(_ context.Context, id, _, _ string, _ ...any) (converter.EncodedValue, error) {
	m.Done()
	m.Wait()
	return encoded{id}, nil
}

// encoded is the status of the batch with this workflow.
type encoded struct{ id string }

func (e encoded) HasValue() bool { return true }
func (e encoded) Get(s any) error {
	*s.(*flow.Status) = flow.Status{ID: e.id}
	return nil
}

// TestReadTogether: one batch that does not answer must not delay the others.
func TestReadTogether(t *testing.T) {
	m := &meeting{}
	ids := []string{"a", "b", "c"}
	m.Add(len(ids))
	all := readAll(t.Context(), m, ids...)
	for _, id := range ids {
		if r := all[id]; r.err != nil || r.ID != flow.BatchID(id) {
			t.Errorf("%s: %+v, %v", id, r.Status, r.err)
		}
	}
}
