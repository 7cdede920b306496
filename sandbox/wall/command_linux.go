package wall

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/kernel"
	"hone/sandbox/internal/loopback"
	"hone/sandbox/internal/process"
)

// walled is a command behind walls, as seen from outside.
type walled struct {
	*helper
	streams  *process.Streams
	doors    []net.Listener
	requests requests // for sockets of its network

	namespaces bool          // the command's processes end with their namespace
	over       chan struct{} // closed after the helper's last message
	ready      *kernel.Reached
	starts     bool // the command has started, or would have been the helper's next act
	killed     bool // something else has killed the helper
	result     ended
	reported   bool // result is set
	failed     error
	once       sync.Once
}

// A command without arguments only tries the walls; up may then be nil.
func start(h *helper, s spec, c sandbox.Command, doors []sandbox.Door, up sandbox.Started) (*walled, error) {
	s.Argv, s.Dir, s.Env, s.Stdin = c.Argv, c.Dir, c.Env, c.Stdin != nil
	s.Caged = h.cage != nil
	l := &walled{helper: h, namespaces: s.kind().namespaces, over: make(chan struct{})}
	var files exec.Cmd
	var err error
	if l.streams, err = process.NewStreams(&files, process.IO{Stdin: c.Stdin, MaxOutput: c.MaxOutput, Live: c.Live, LiveOut: c.LiveOut, LiveErr: c.LiveErr}); err != nil {
		h.dismiss()
		return nil, err
	}
	if sendSpec(h.control, s, &files) != nil {
		h.control.hangUp() // it has ended; see [walled.failure]
	}
	dial := loopback.Dial
	if s.ownNet() {
		dial = l.dial
	}
	go l.listen(doors, sync.OnceFunc(func() { up(l.over, dial) }))
	return l, nil
}

var errNotStarted = errors.New("the command was not started")

func (l *walled) listen(doors []sandbox.Door, runs func()) {
	defer close(l.over)
	defer func() {
		if !l.starts {
			l.streams.Started(errNotStarted)
		}
	}()
	for {
		m, fds, err := l.control.receive()
		switch {
		case err != nil:
			return
		case m.Doors > 0:
			l.openDoors(doors, fds)
		case m.Start:
			l.starts = true
			l.streams.Started(nil) // not earlier: another helper may have to run the command with this input
		case m.Runs:
			runs()
		case m.Given != nil:
			l.requests.answer(*m.Given, fds)
		case m.Ready != nil:
			l.ready = m.Ready
			return
		case m.Fail != nil:
			l.failed = m.Fail.err()
			return
		case m.Exit != nil:
			l.result, l.reported = *m.Exit, true
			return
		}
	}
}

func (l *walled) openDoors(doors []sandbox.Door, fds []int) {
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "door")
		listener, err := net.FileListener(f)
		f.Close()
		if err != nil || i >= len(doors) {
			continue
		}
		l.doors = append(l.doors, listener)
		go serve(listener, doors[i].Serve)
	}
}

func (l *walled) sockets(ctx context.Context) ([]*os.File, error) {
	number, answers, err := l.requests.ask(l.control)
	if err != nil {
		return nil, err
	}
	defer l.requests.drop(number, answers)
	select {
	case a := <-answers:
		return a.sockets, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *walled) dial(ctx context.Context, port int) (net.Conn, error) {
	sockets, err := l.sockets(ctx)
	if err != nil {
		return nil, err
	}
	defer closeFiles(sockets)
	return loopback.Connect(ctx, sockets, port)
}

// wasKilled reports whether something killed the helper before the command could do anything.
// It may be called after End.
func (l *walled) wasKilled() bool {
	return l.killed && !l.starts && l.ready == nil && l.failed == nil
}

func (l *walled) failure() error {
	if l.failed != nil {
		return l.failed
	}
	text := strings.TrimSpace(string(l.streams.Stderr()))
	return errors.New(cmp.Or(text, "its helper ended without a message (the program must call wall.Helper first in main)"))
}

// Exited returns a channel that is closed when the command has ended.
func (l *walled) Exited() <-chan struct{} { return l.over }

// Terminate asks the command's process group to end.
func (l *walled) Terminate() { _ = l.control.send(message{Ask: true}) }

// Kill ends everything behind the walls.
func (l *walled) Kill() { l.control.hangUp() }

// GroupLives reports whether any process of the command's group still runs.
func (l *walled) GroupLives() bool {
	select {
	case <-l.over:
		return false
	default:
		return true
	}
}

// End ends everything behind the walls and the helpers, and returns how the
// command exited.
func (l *walled) End() process.Exit {
	l.control.hangUp() // the helper then exits by itself
	timer := time.NewTimer(process.SweepTime)
	defer timer.Stop()
	select {
	case <-l.tree.Exited():
		l.killed = l.tree.Exit().Signal != ""
	case <-timer.C:
	}
	if l.namespaces && l.cleanExit() {
		l.tree.Reap()
	} else {
		l.tree.End()
	}
	l.cage.Remove()
	<-l.over
	l.requests.end()
	for _, d := range l.doors {
		d.Close()
	}
	l.once.Do(l.control.close)
	if !l.reported {
		return process.Exit{Status: -1, Signal: unix.SIGKILL.String()}
	}
	return process.Exit{Status: l.result.Exit, Signal: l.result.Signal}
}

// The helper exits with status 0 after all other processes have ended.
func (l *walled) cleanExit() bool {
	select {
	case <-l.tree.Exited():
		return l.tree.Exit() == process.Exit{}
	default:
		return false
	}
}
