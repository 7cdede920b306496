package process

import (
	"cmp"
	"context"
	"time"
)

// Supervised is a command that runs, and all that it started.
type Supervised interface {
	Exited() <-chan struct{} // closed when the command has exited
	Terminate()              // asks its group to end
	Kill()                   // ends its group
	GroupLives() bool        // whether the command or another of its group has not ended yet
	End() Exit               // ends all that is left, and says how the command exited
}

// Exit says how a process exited.
type Exit struct {
	Status int    // its exit status; -1 where a signal ended it
	Signal string // the signal that ended it, such as "killed"; empty otherwise
}

// Outcome says how a supervised command ended, and what it wrote.
type Outcome struct {
	Exit                  // Status is -1 where its time or the context ended it
	TimedOut       bool   // its time was over
	Stdout, Stderr []byte // at most as much as was asked for
	Lost           int64  // bytes of both beyond that
}

// Lull is how long the output of a command that has ended may stay open
// because something that it left behind holds it, such as a tee that still
// writes.
const Lull = 500 * time.Millisecond

// Supervise waits for a command, ends it where it must, ends what it left
// behind, and says how it went. It must end when the context or its time is
// over; a timeout of 0 is none. Its group then has the grace between the signal
// that asks it and the one that does not; a grace of 0 is two seconds.
func Supervise(ctx context.Context, c Supervised, s *Streams, timeout, grace time.Duration) Outcome {
	how := await(ctx, c, timeout, grace)
	if how == byItself {
		s.wait(Lull)
	}
	o := Outcome{Exit: c.End(), TimedOut: how == byTimeout}
	s.Finish(Lull)
	if how != byItself {
		o.Status = -1
	}
	o.Stdout, o.Stderr, o.Lost = s.stdout.kept, s.stderr.kept, s.stdout.lost+s.stderr.lost
	return o
}

// ending is what ended a command.
type ending int

const (
	byItself ending = iota
	byTimeout
	byContext
)

// await returns when the command has exited, and sees to it that it does.
func await(ctx context.Context, c Supervised, timeout, grace time.Duration) ending {
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	how := byItself
	select {
	case <-c.Exited():
		return how
	case <-late:
		how = byTimeout
	case <-ctx.Done():
		how = byContext
	}
	stop(c, grace)
	return how
}

// stop asks the command's group to end, and ends it when the grace is over.
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
