package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Running is a command that stays open, such as a server; see [Start].
// It is safe for concurrent use.
type Running struct {
	up, done chan struct{}   // closed when the command runs, and when run returned
	exited   <-chan struct{} // closed when the command has ended; set when up is closed
	dial     Dialer          // set when up is closed
	result   Result          // set when done is closed
	err      error           // set when done is closed
}

// Dialer connects to a loopback TCP port of a command's network.
type Dialer func(ctx context.Context, port int) (net.Conn, error)

// Started is called when a command runs, at most once: exited is closed when it
// has ended, and dial connects to it.
type Started func(exited <-chan struct{}, dial Dialer)

// Start calls run, which runs a command to its end, in a new goroutine. It returns
// when the command runs or has already ended. Its error is run's if the command
// could not be started.
func Start(run func(Started) (Result, error)) (*Running, error) {
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

// No value is sent on the channel.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Done returns a channel that is closed when the command and all that it started
// have ended, and protected paths have been restored.
func (r *Running) Done() <-chan struct{} { return r.done }

// Wait waits for Done and returns what Run of a [Runner] would have returned. It
// may be called several times.
func (r *Running) Wait() (Result, error) {
	<-r.done
	return r.result, r.err
}

// Dial connects to a loopback TCP port of the command's network: at 127.0.0.1,
// or at ::1 if that is refused. Behind walls with a network of their own only a
// server behind the same walls can answer; otherwise, and with [Policy.Net], any
// server of this machine can.
//
// The context and the end of the command only stop Dial itself. The connection
// is a [*net.TCPConn] and lasts until either side closes it. If no server listens
// yet the error is syscall.ECONNREFUSED (WSAECONNREFUSED on Windows). After the
// command has ended Dial always returns an error.
func (r *Running) Dial(ctx context.Context, port int) (net.Conn, error) {
	conn, err := r.connect(ctx, port)
	if err != nil {
		return nil, fmt.Errorf("connect to port %d of the command: %w", port, err)
	}
	return conn, nil
}

var (
	// ErrEnded is the error of [Running.Dial] after the command has ended.
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
