// Package process starts a command and controls its tree of processes, its
// streams and its time.
//
// [Start] starts it, [NewStreams] makes its input and output, and [Supervise]
// waits for it and ends what is left. How much of a tree is found depends on the
// system: see None in the package sandbox.
package process

import (
	"cmp"
	"context"
	"time"

	"hone/sandbox"
)

// Supervised is a running command with all that it started.
type Supervised interface {
	Exited() <-chan struct{} // closed when the command has exited
	Terminate()              // asks its process group to end
	Kill()                   // ends its process group
	GroupLives() bool        // whether any process of the group still runs
	End() sandbox.Result     // ends all that is left, and returns how the command exited
}

// Lull is how long the output of a command that has ended may stay open because
// a process that it left behind, such as tee, still writes.
const Lull = 500 * time.Millisecond

// Supervise waits for a command, ends the processes that it left behind, and
// returns how it ended. It stops the command when the context is done or the
// timeout is over; a timeout of 0 means none. The process group then has the
// grace period between SIGTERM and SIGKILL; 0 means two seconds.
func Supervise(ctx context.Context, c Supervised, s *Streams, timeout, grace time.Duration) sandbox.Result {
	began := time.Now()
	how := await(ctx, c, timeout, grace)
	if how == byItself {
		wait(s.done, Lull)
	}
	r := c.End()
	s.Finish(Lull)
	if r.TimedOut = how == byTimeout; how != byItself {
		r.Exit = -1
	}
	r.Stdout, r.Stderr, r.Discarded, r.Duration = s.stdout.kept, s.stderr.kept, s.stdout.lost+s.stderr.lost, time.Since(began)
	return r
}

type ending int

const (
	byItself ending = iota
	byTimeout
	byContext
)

func await(ctx context.Context, c Supervised, timeout, grace time.Duration) ending {
	limit := newLimit(timeout)
	how := byItself
	for how == byItself {
		began := time.Now()
		select {
		case <-c.Exited():
			return how
		case <-limit.tick():
			if limit.passed(time.Since(began)) {
				how = byTimeout
			}
		case <-ctx.Done():
			how = byContext
		}
	}
	stop(c, grace)
	return how
}

// limit is a time limit in short parts. While this process was stopped, as in a paused
// container, its command most likely was as well: that counts as one part more.
type limit struct{ left, part time.Duration }

// 0 means no limit.
func newLimit(timeout time.Duration) limit {
	return limit{timeout, max(timeout/10, min(timeout, 10*time.Millisecond))}
}

func (l *limit) tick() <-chan time.Time {
	if l.part == 0 {
		return nil
	}
	return time.After(min(l.left, l.part))
}

func (l *limit) passed(took time.Duration) bool {
	l.left -= min(took, 2*l.part)
	return l.left <= 0
}

func stop(c Supervised, grace time.Duration) {
	c.Terminate()
	over := time.NewTimer(cmp.Or(grace, 2*time.Second))
	defer over.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for c.GroupLives() {
		select {
		case <-over.C:
			c.Kill()
			<-c.Exited()
			return
		case <-tick.C:
		}
	}
	<-c.Exited()
}
