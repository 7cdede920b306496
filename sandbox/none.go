package sandbox

import (
	"context"
	"runtime"
	"time"

	"hone/sandbox/internal/loopback"
	"hone/sandbox/internal/process"
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

// Run runs the command to its end; see [Runner]. Its error is a [*StartError],
// or the context's where that was done before the start.
func (n None) Run(ctx context.Context, c Command) (Result, error) {
	return n.RunNotify(ctx, c, func(<-chan struct{}, Dialer) {})
}

// RunNotify is Run, and calls started once when the command runs; see [Hold].
func (n None) RunNotify(ctx context.Context, c Command, started Started) (Result, error) {
	if err := c.Check(ctx); err != nil {
		return Result{}, err
	}
	cmd, err := c.Exec()
	if err != nil {
		return Result{}, err
	}
	streams, err := process.NewStreams(cmd, process.IO{Stdin: c.Stdin, MaxOutput: c.MaxOutput, Live: c.Live, LiveOut: c.LiveOut, LiveErr: c.LiveErr})
	if err != nil {
		return Result{}, &StartError{Program: c.Argv[0], Reason: "its streams cannot be made", Err: err}
	}
	// The signal at hone's death follows the thread that made the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := time.Now()
	t, err := process.Start(cmd)
	streams.Started(err)
	if err != nil {
		streams.Finish(0)
		return Result{}, NewStartError(c.Argv[0], cmd.Path, err)
	}
	started(t.Exited(), loopback.Dial)
	o := process.Supervise(ctx, t, streams, c.Timeout, n.Grace)
	result := Result{Exit: o.Status, Signal: o.Signal, TimedOut: o.TimedOut, Stdout: o.Stdout, Stderr: o.Stderr, Lost: o.Lost}
	result.Duration = time.Since(began)
	return result, nil
}
