package flow_test

import (
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"hone/fleet/flow"
)

// TestReplay: workers of this version can continue the batches and jobs of earlier ones.
// The histories are those of a real server: a batch of eight jobs, of which one borrows
// twice, one asks, one loses its workers and two are cancelled; a cancelled batch; and two
// of the jobs.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		r := worker.NewWorkflowReplayer()
		flow.Register(r)
		if err := r.ReplayWorkflowHistoryFromJSONFile(silent{}, file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestReplaySees: TestReplay would see that a batch starts its jobs in another order.
func TestReplaySees(t *testing.T) {
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(func(ctx workflow.Context, in flow.Input) (flow.Status, error) {
		in.Jobs[0], in.Jobs[1] = in.Jobs[1], in.Jobs[0]
		return flow.Batch(ctx, in)
	}, workflow.RegisterOptions{Name: "hone batch"})
	err := r.ReplayWorkflowHistoryFromJSONFile(silent{}, "testdata/batch.json")
	if err == nil || !strings.Contains(err.Error(), "nondeterministic") {
		t.Errorf("got %v", err)
	}
}
