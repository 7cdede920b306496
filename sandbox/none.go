package sandbox

import (
	"cmp"
	"context"
	"runtime"
	"time"

	"hone/sandbox/internal/loopback"
	"hone/sandbox/internal/process"
)

// None runs commands without walls: they may do whatever the user may do. It is
// for the user's own programs, and for users who chose it.
//
// It limits commands. A command has a session of its own. When it has ended, or
// its time is over, or the context is done, all that it started is stopped as
// well. On Linux this includes daemons, and the command itself dies with hone even
// if hone is killed; the Keeper ends the rest. It does not find a process of
// another user, such as one that sudo started, after that has left the session
// and lost its parents. On Windows
// a job object contains the tree, except what the command starts in its first
// instant. Other systems stop only the process group. On Linux the first command
// makes this process a subreaper, which becomes the parent of daemons, and the
// process remains one.
//
// The zero None is ready to use.
type None struct {
	// Grace is the time between SIGTERM and SIGKILL for a command that must
	// stop; 0 means two seconds.
	Grace time.Duration
	// Keeper ends commands when this process ends before them; nil means that they
	// may outlive it.
	Keeper *Keeper
	// As is whom commands run as, with the capabilities of this process.
	As User
}

var _ Runner = None{}

// Run runs the command to its end; see [Runner]. Its error is a [*StartError], or
// the context's if that was done before the start.
func (n None) Run(ctx context.Context, c Command) (Result, error) {
	return n.RunNotify(ctx, c, func(<-chan struct{}, Dialer) {})
}

// RunNotify is like Run, and calls started when the command runs; see [Start].
func (n None) RunNotify(ctx context.Context, c Command, started Started) (Result, error) {
	if err := cmp.Or(c.Check(ctx), n.As.Check()); err != nil {
		return Result{}, err
	}
	cmd, err := c.Exec()
	if err != nil {
		return Result{}, err
	}
	n.As.start(cmd)
	streams, err := process.NewStreams(cmd, process.IO{Stdin: c.Stdin, MaxOutput: c.MaxOutput, Live: c.Live, LiveOut: c.LiveOut, LiveErr: c.LiveErr})
	if err != nil {
		return Result{}, &StartError{Program: c.Argv[0], Reason: "cannot make its streams", Err: err}
	}
	// The kernel kills the command when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := time.Now()
	t, err := process.Start(cmd, n.Keeper)
	streams.Started(err)
	if err != nil {
		streams.Finish(0)
		return Result{}, NewStartError(c.Argv[0], cmd.Path, err)
	}
	started(t.Exited(), loopback.Dial)
	o := process.Supervise(ctx, t, streams, c.Timeout, n.Grace)
	result := Result{Exit: o.Status, Signal: o.Signal, TimedOut: o.TimedOut, Stdout: o.Stdout, Stderr: o.Stderr, Discarded: o.Discarded}
	result.Duration = time.Since(began)
	return result, nil
}
