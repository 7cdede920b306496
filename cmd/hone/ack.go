package main

import (
	"bufio"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"hone"
	"hone/history"
)

// awaitAcks makes a run wait before each model call until all its events are stored. Each line of in is the
// number of the last event that is. The end of in cancels the returned context, as Ctrl-C does: the program that
// stores the events is gone.
func awaitAcks(ctx context.Context, r *hone.Run, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stored := make(chan int64, 1) // the newest number, if no call has waited for it
	go func() {
		defer cancel()
		last := int64(0)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			seq, err := strconv.ParseInt(strings.TrimSpace(lines.Text()), 10, 64)
			if err != nil {
				return
			}
			last = max(last, seq)
			select {
			case <-stored:
			default:
			}
			stored <- last
		}
	}()
	var waiting sync.Mutex
	last := int64(0)
	r.Sending = func() error {
		seq := lastCall(r.Past().Events())
		waiting.Lock()
		defer waiting.Unlock()
		for last < seq && ctx.Err() == nil {
			select {
			case last = <-stored:
			case <-ctx.Done():
			}
		}
		return ctx.Err()
	}
	return ctx, cancel
}

// It is 0 if there is none. Concurrent calls of an agent may have recorded later events, for which hone does not wait.
func lastCall(events []history.Event) int64 {
	for _, e := range slices.Backward(events) {
		switch p := e.Payload.(type) {
		case history.Reserve:
			return e.Seq
		case history.Asked:
			if p.Command {
				return e.Seq
			}
		}
	}
	return 0
}
