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

// acks are the acknowledgments of a program that stores the events of a run elsewhere.
type acks struct {
	lock sync.Mutex
	more *sync.Cond
	seq  int64 // of the last event that is stored
}

// awaitAcks makes a run wait before each model call until in confirms that all its events are
// stored. The end of in cancels the returned context, as Ctrl-C does: the program that
// stores the events is gone.
func awaitAcks(ctx context.Context, r *hone.Run, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	k := &acks{}
	k.more = sync.NewCond(&k.lock)
	go func() {
		defer cancel()
		k.read(in)
	}()
	r.Sending = func() error { return k.wait(ctx, lastCall(r.Past().Events())) }
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

func (k *acks) read(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		seq, err := strconv.ParseInt(strings.TrimSpace(lines.Text()), 10, 64)
		if err != nil {
			return
		}
		k.lock.Lock()
		k.seq = max(k.seq, seq)
		k.lock.Unlock()
		k.more.Broadcast()
	}
}

// The error is the context's.
func (k *acks) wait(ctx context.Context, seq int64) error {
	defer context.AfterFunc(ctx, func() {
		k.lock.Lock()
		defer k.lock.Unlock()
		k.more.Broadcast()
	})()
	k.lock.Lock()
	defer k.lock.Unlock()
	for k.seq < seq && ctx.Err() == nil {
		k.more.Wait()
	}
	return ctx.Err()
}
