package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
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

// StartError means that a command could not be started.
type StartError struct {
	Program string // the first element of Command.Argv
	Reason  string // for the user; empty if Err is enough
	Err     error  // the cause, such as fs.ErrNotExist; never nil
}

// Error names the program and the reason.
func (e *StartError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("start %s: %v", e.Program, e.Err)
	}
	return fmt.Sprintf("start %s: %s", e.Program, e.Reason)
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Check returns an error if the context is done, or if the command has no program
// or no working directory. It looks nothing up. Its error is a [*StartError], or
// wraps the context's.
func (c Command) Check(ctx context.Context) error {
	program := "a command"
	if len(c.Argv) > 0 {
		program = c.Argv[0]
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("start %s: %w", program, context.Cause(ctx))
	case program == "" || len(c.Argv) == 0:
		return &StartError{Program: "a command", Err: errors.New("the command is empty")}
	case c.Dir == "":
		return &StartError{Program: program, Err: errors.New("no working directory was given")}
	}
	return nil
}

// Exec looks up the command's program and returns a command without streams: a name without a
// slash in the PATH of Env, another one from Dir. Its error is a [*StartError].
func (c Command) Exec() (*exec.Cmd, error) {
	if err := c.Check(context.Background()); err != nil {
		return nil, err
	}
	path := c.Argv[0]
	wrong := func(reason string, err error) (*exec.Cmd, error) {
		return nil, &StartError{Program: c.Argv[0], Reason: reason, Err: err}
	}
	info, err := os.Stat(c.Dir)
	switch {
	case err != nil:
		return wrong("", fmt.Errorf("working directory: %w", err))
	case !info.IsDir():
		return wrong("", fmt.Errorf("working directory %s: %w", c.Dir, syscall.ENOTDIR))
	case filepath.IsAbs(path):
	case strings.ContainsRune(path, filepath.Separator) || strings.ContainsRune(path, '/'):
		if path, err = filepath.Abs(filepath.Join(c.Dir, path)); err != nil {
			return wrong("", err)
		}
	default:
		if path, err = FindProgram(path, c.Env); err != nil {
			return wrong("it is not on the PATH of the command's environment", fs.ErrNotExist)
		}
	}
	info, err = os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wrong("there is no such file", err)
	case err != nil:
		return wrong("", err)
	case info.IsDir():
		return wrong("it is a directory", syscall.EISDIR)
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return wrong("it is not executable (chmod +x makes it so)", fs.ErrPermission)
	}
	return &exec.Cmd{Path: path, Args: c.Argv, Dir: c.Dir, Env: append([]string{}, c.Env...)}, nil
}

// NewStartError explains the error of the operating system for a program whose
// file exists and is executable.
func NewStartError(program, path string, err error) *StartError {
	e := &StartError{Program: program, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Reason = "the interpreter that its first line names does not exist"
	case errors.Is(err, syscall.ENOEXEC):
		e.Reason = "it is neither a program for this machine nor a script whose first line starts with #!"
	case errors.Is(err, fs.ErrPermission):
		e.Reason = fmt.Sprintf("the system does not allow %s to run", path)
	}
	return e
}

// Notify is [signal.Notify] for a program that starts commands: a signal that was ignored when the
// process started stays ignored, in commands too. nohup ignores SIGHUP; a shell without job control
// ignores SIGINT and SIGQUIT in a background job, and Go cannot tell whether SIGQUIT was ignored.
func Notify(signals chan<- os.Signal, list ...os.Signal) {
	if signal.Ignored(os.Interrupt) {
		signal.Ignore(syscall.SIGQUIT)
	}
	for _, s := range list {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
}
