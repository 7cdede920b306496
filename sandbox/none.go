package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"
)

// None is the runner without walls: the command may do whatever the person
// who started hone may do. It is for programs that are the user's own, and for
// those who chose it.
//
// It does bound them. The command has a session of its own, and when it has
// ended, or its time or the context is over, all that it started is ended as
// well. On Linux that holds for daemons too, and the command itself dies with
// hone even when hone is killed; what it does not find is a process that runs
// as another user, such as one that sudo started, once it has left the session
// and lost its parents. On Windows a job object holds the tree, but for what the command starts
// in its first instant. Elsewhere only the process group is ended. To become
// the parent of daemons the whole process is made a subreaper on Linux, and
// stays one.
//
// The zero None is ready.
type None struct {
	// Grace is how long a command that is being ended has between the signal
	// that asks it and the one that does not; 0 means two seconds.
	Grace time.Duration
}

var _ Runner = None{}

// lull is how long the output of a command that has ended may stay open
// because something that it left behind holds it, such as a tee that still
// writes.
const lull = 500 * time.Millisecond

// Run runs the command to its end; see [Runner]. Its error is a [*StartError],
// or the context's where that was done before the start.
func (n None) Run(ctx context.Context, c Command) (Result, error) {
	return n.run(ctx, c, func(underway) {})
}

// run tells when the command runs.
func (n None) run(ctx context.Context, c Command, up func(underway)) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, fmt.Errorf("start %s: %w", first(c.Argv), context.Cause(ctx))
	}
	cmd, err := prepare(c)
	if err != nil {
		return Result{}, err
	}
	streams, err := newStreams(cmd, c)
	if err != nil {
		return Result{}, &StartError{Program: c.Argv[0], Reason: "its streams cannot be made", Err: err}
	}
	// The signal at hone's death follows the thread that made the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := time.Now()
	t, err := start(cmd)
	streams.started(err)
	if err != nil {
		streams.finish(0)
		return Result{}, startError(c.Argv[0], cmd.Path, err)
	}
	up(t)
	result := n.supervise(ctx, c, t, streams)
	result.Duration = time.Since(began)
	return result, nil
}

// prepare makes a command that can be started, or says why it cannot.
func prepare(c Command) (*exec.Cmd, error) {
	path, err := c.program()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: path, Args: c.Argv, Dir: c.Dir, Env: append([]string{}, c.Env...)}
	return cmd, nil
}

// underway is a command that runs, and all that it started.
type underway interface {
	exits() <-chan struct{} // closed when the command has exited
	ask()                   // asks its group to end
	kill()                  // ends its group
	groupLives() bool       // whether the command or another of its group has not ended yet
	end() Result            // ends all that is left, and says how the command exited
}

func (t *tree) exits() <-chan struct{} { return t.exited }

// supervise waits for the command, ends it where it must, ends what it left
// behind, and says how it went.
func (n None) supervise(ctx context.Context, c Command, t underway, s *streams) Result {
	how := n.wait(ctx, c.Timeout, t)
	if how == byItself {
		s.wait(lull)
	}
	result := t.end()
	s.finish(lull)
	if how != byItself {
		result.Exit = -1
	}
	result.TimedOut = how == byTimeout
	result.Stdout, result.Stderr, result.Lost = s.stdout.kept, s.stderr.kept, s.stdout.lost+s.stderr.lost
	return result
}

// ending is what ended a command.
type ending int

const (
	byItself ending = iota
	byTimeout
	byContext
)

// wait returns when the command has exited, and sees to it that it does.
func (n None) wait(ctx context.Context, timeout time.Duration, t underway) ending {
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	how := byItself
	select {
	case <-t.exits():
		return how
	case <-late:
		how = byTimeout
	case <-ctx.Done():
		how = byContext
	}
	n.stop(t)
	return how
}

// stop asks the command's group to end, and ends it when the grace is over.
func (n None) stop(t underway) {
	grace := n.Grace
	if grace == 0 {
		grace = 2 * time.Second
	}
	t.ask()
	over := time.NewTimer(grace)
	defer over.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for t.groupLives() {
		select {
		case <-over.C:
			t.kill()
			<-t.exits()
			return
		case <-tick.C:
		}
	}
	<-t.exits()
}

// first is the program as it was asked for.
func first(argv []string) string {
	if len(argv) == 0 {
		return "a command"
	}
	return argv[0]
}

// errNoProgram is for a Command without Argv, errNoDir for one without Dir.
var (
	errNoProgram = errors.New("the command is empty")
	errNoDir     = errors.New("no working directory was given")
)
