package flow

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// stopWithin is how long a stand-in that stops waits for the server.
const stopWithin = 5 * time.Second

// StartStandIn lets this process answer for the batches in a task queue, as workers do, until
// stop is called. It runs no legs. A process with a stand-in cannot also be a worker. id is
// any batch in the queue.
func StartStandIn(c client.Client, queue, id string) (stop func(), err error) {
	worker.SetStickyWorkflowCacheSize(0) // the server must not wait for this process after its end
	slot, err := worker.NewFixedSizeSlotSupplier(1)
	if err != nil {
		return nil, err
	}
	unused, err := worker.NewFixedSizeSlotSupplier(1)
	if err != nil {
		return nil, err
	}
	tuner, err := worker.NewCompositeTuner(worker.CompositeTunerOptions{WorkflowSlotSupplier: slot,
		ActivitySlotSupplier: unused, LocalActivitySlotSupplier: unused, NexusSlotSupplier: unused, SessionActivitySlotSupplier: unused})
	if err != nil {
		return nil, err
	}
	one := worker.NewPollerBehaviorSimpleMaximum(worker.PollerBehaviorSimpleMaximumOptions{MaximumNumberOfPollers: 1})
	w := worker.New(c, queue, worker.Options{LocalActivityWorkerOnly: true, Tuner: tuner, WorkflowTaskPollerBehavior: one, WorkerStopTimeout: time.Second})
	Register(w)
	return func() { drain(c, slot, id); w.Stop() }, w.Start()
}

// drain takes the only slot of a stand-in, so that it can stop without losing a task. The
// stand-in holds the slot from before it asks the server for a task until that task is done.
// If it stopped in between, the task would be lost, and the batch could not answer until the
// server notices, ten seconds later.
//
// A request for a task can wait on the server for a minute. To end it, drain sends a query,
// which is a task, too, and repeats it in case another process answers it.
func drain(c client.Client, slot worker.SlotSupplier, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			_, _ = c.QueryWorkflow(ctx, BatchID(id), "", stateQuery)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	_, _ = slot.ReserveSlot(ctx, nil) // if the server is away, it notices that this process ends
}
