package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Running is a command that is held open, such as a server; see [Hold].
// It is safe for concurrent use.
type Running struct {
	up, done chan struct{}   // closed when the command runs, and when all is over
	exited   <-chan struct{} // closed when the command has ended; only once up is closed
	dial     Dialer          // the same
	result   Result          // only once done is closed
	err      error           // the same
}

// Dialer connects to a TCP port of a command.
type Dialer func(ctx context.Context, port int) (net.Conn, error)

// Started is told that a command runs: exited is closed when it has ended, and
// dial connects to it. It is called once, or never.
type Started func(exited <-chan struct{}, dial Dialer)

// Hold calls run, which runs a command to its end, on a goroutine of its own.
// It returns when the command runs, or is over already; its error is run's
// where the command could not be started.
func Hold(run func(Started) (Result, error)) (*Running, error) {
	r := &Running{up: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.result, r.err = run(func(exited <-chan struct{}, dial Dialer) {
			r.exited, r.dial = exited, dial
			close(r.up)
		})
	}()
	select {
	case <-r.up:
	case <-r.done:
		if r.err != nil && !closed(r.up) {
			return nil, r.err
		}
	}
	return r, nil
}

// closed reports whether a channel that nothing is sent on is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Done is closed when the command and all that it started have ended, and what
// is protected has been put back.
func (r *Running) Done() <-chan struct{} { return r.done }

// Wait waits for Done and says how the command ended, as [Runner]'s Run would
// have. It may be called any number of times.
func (r *Running) Wait() (Result, error) {
	<-r.done
	return r.result, r.err
}

// Dial connects to a loopback TCP port of the command's network: at 127.0.0.1,
// and where that is refused at ::1. Behind walls with a network of their own
// nothing but a server in there can answer; behind others, and with
// [Policy.Net], it is a server of this machine, whoever started it.
//
// The context, and the command's end, bound the connecting alone. A connection
// lasts until one side ends it, and is a [*net.TCPConn]. Where nobody listens
// yet the error is syscall.ECONNREFUSED (on Windows WSAECONNREFUSED); after the
// command has ended there is always one.
func (r *Running) Dial(ctx context.Context, port int) (net.Conn, error) {
	conn, err := r.connect(ctx, port)
	if err != nil {
		return nil, fmt.Errorf("connect to port %d of the command: %w", port, err)
	}
	return conn, nil
}

// errEnded says that a command has ended; errNoPort that a port's number is none.
var (
	ErrEnded  = errors.New("it has ended")
	errNoPort = errors.New("ports have numbers from 1 to 65535")
)

func (r *Running) connect(ctx context.Context, port int) (net.Conn, error) {
	switch {
	case port < 1 || port > 65535:
		return nil, errNoPort
	case !closed(r.up) || closed(r.exited):
		return nil, ErrEnded
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-r.exited:
			cancel(ErrEnded)
		case <-ctx.Done():
		}
	}()
	conn, err := r.dial(ctx, port)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return conn, err
}
