package flow

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// stopWithin is how long a stand-in that stops waits for the server.
const stopWithin = 5 * time.Second

// StandIn lets this process answer for the batches in a task queue until stop is called, as
// workers do, but it begins no legs. A process with a stand-in cannot also be a worker. id is
// a batch in the queue.
func StandIn(c client.Client, queue, id string) (stop func(), err error) {
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
	return func() { occupy(c, slot, id); w.Stop() }, w.Start()
}

// occupy waits until a stand-in does nothing, and keeps it from doing more. Its slot is taken
// from before the stand-in asks the server for a task until that task is done. If it stopped
// in between, the task would be lost, and the batch could not answer until the server notices,
// ten seconds later.
//
// A request for a task can wait on the server for a minute, so occupy asks a question, which
// is a task, too, and asks again if another process has answered it.
func occupy(c client.Client, slot worker.SlotSupplier, id string) {
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
