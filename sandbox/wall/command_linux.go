package wall

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/kernel"
	"hone/sandbox/internal/process"
)

// walled is a command behind walls, as seen from outside.
type walled struct {
	tree    *process.Tree // the supervisor and all below it
	cage    *kernel.Cage  // contains the tree; nil if there is none
	control control
	streams *process.Streams
	doors   []net.Listener

	dials sync.Mutex // held while a request is sent, which none is once over is closed, and while control is closed

	over   chan struct{} // closed after the supervisor's last message
	ready  *sandbox.Grade
	starts bool            // the command may have started
	result *sandbox.Result // nil if the supervisor was killed before
	failed error
	said   bytes.Buffer // what the program that builds the wall printed; only once the tree has ended
}

// start starts the supervisor of a command. A command without arguments only tries the walls; up
// may then be nil.
func start(s spec, c sandbox.Command, up sandbox.Started) (*walled, error) {
	if !dispatches.Load() { // it would otherwise start itself without end
		return nil, errors.New("the program must call wall.Helper first in main")
	}
	l := &walled{over: make(chan struct{})}
	var files exec.Cmd
	var err error
	if l.streams, err = process.NewStreams(&files, c); err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel kills a supervisor of the hidden wall when the thread ends that started it
		defer runtime.UnlockOSThread()
		err := l.startSupervisor(s)
		started <- err
		if err == nil {
			<-l.tree.Exited()
			l.dials.Lock()
			defer l.dials.Unlock()
			l.control.hangUp() // a child of bwrap that waits for it would hold the other end
		}
	}()
	if err := <-started; err != nil {
		l.streams.Started(err)
		l.streams.Finish(0)
		return nil, err
	}
	s.Command, s.Stdin = sandbox.Command{Argv: c.Argv, Dir: c.Dir, Env: c.Env}, c.Stdin != nil
	if err = l.instruct(s, &files); err != nil {
		l.control.hangUp() // it has ended; see [walled.failure]
	}
	l.streams.Started(err)
	dial := dialLoopback
	if s.ownNet() {
		dial = l.dial
	}
	go l.listen(s.Policy.Doors, func() { up(l.over, dial) })
	return l, nil
}

func (l *walled) startSupervisor(s spec) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	ours, theirs, err := newControl()
	if err != nil {
		return err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{helperName, "helper"}, Dir: "/", Env: []string{}, ExtraFiles: []*os.File{nil, theirs, self}}
	cmd.Stderr, cmd.WaitDelay = &l.said, process.Lull
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if s.Policy.Wall == sandbox.Hidden {
		cmd.SysProcAttr = kernel.Namespaces(s.Policy.Net, s.Policy.As)
	}
	if s.Policy.Wall.Namespaces() { // the kernel ends what is in them
		cmd.SysProcAttr.Pdeathsig = unix.SIGKILL
	}
	if l.tree, err = process.StartSupervisor(cmd, s.Place); err != nil {
		ours.close()
		if s.Policy.Wall == sandbox.Hidden && errors.Is(err, unix.ENOSPC) { // no disk is full
			err = errors.New("the system allows no more user namespaces")
		}
		return err
	}
	l.control = ours
	l.cage = kernel.NewCage(s.Policy.Limits.MaxProcesses(), l.tree.PID())
	return nil
}

// instruct sends the spec, and then the command's streams, which the program that builds a
// wall must not have: it would keep them open.
func (l *walled) instruct(s spec, streams *exec.Cmd) error {
	fd, err := unix.MemfdCreate("spec", unix.MFD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "spec")
	defer file.Close()
	// It is not JSON because paths and arguments need not be UTF-8.
	if err := gob.NewEncoder(file).Encode(s); err != nil {
		return err
	}
	if err := l.control.send(message{Spec: true}, fd); err != nil {
		return err
	}
	stdin, ok := streams.Stdin.(*os.File)
	if !ok {
		stdin = file // any file: it is not read
	}
	// If it has ended, its last message says why.
	_ = l.control.send(message{Streams: true}, int(stdin.Fd()), int(streams.Stdout.(*os.File).Fd()), int(streams.Stderr.(*os.File).Fd()))
	return nil
}

func (l *walled) listen(doors []sandbox.Door, runs func()) {
	defer close(l.over)
	for {
		m, fds, err := l.control.receive()
		switch {
		case err != nil:
			return
		case m.Doors > 0:
			l.openDoors(doors, fds)
		case m.Start:
			l.starts = true
		case m.Runs:
			runs()
		case m.Ready != nil:
			l.ready = m.Ready
			return
		case m.Fail != nil:
			l.failed = m.Fail.err()
			return
		case m.Exit != nil:
			l.result = m.Exit
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

// The supervisor connects in the command's own network, and answers on a socket of this request.
func (l *walled) dial(ctx context.Context, port int) (net.Conn, error) {
	answer, theirs, err := newControl()
	if err != nil {
		return nil, err
	}
	defer answer.close()
	if err := l.ask(port, theirs); err != nil {
		return nil, err
	}
	hung := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		answer.hangUp()
		close(hung)
	})
	m, fds, err := answer.receive()
	if !stop() {
		<-hung
	}
	var conn net.Conn
	for _, fd := range fds { // one, or none
		socket := os.NewFile(uintptr(fd), "socket")
		if conn == nil {
			conn, err = net.FileConn(socket)
		}
		socket.Close()
	}
	switch {
	case conn != nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil && m.Fail != nil:
		return nil, m.Fail.err()
	}
	return nil, sandbox.ErrEnded
}

func (l *walled) ask(port int, answer *os.File) error {
	defer answer.Close()
	l.dials.Lock()
	defer l.dials.Unlock()
	select {
	case <-l.over:
		return sandbox.ErrEnded
	default:
	}
	if l.control.send(message{Dial: port}, int(answer.Fd())) != nil {
		return sandbox.ErrEnded
	}
	return nil
}

func (l *walled) failure() error {
	if l.failed != nil {
		return l.failed
	}
	if l.tree.Exit().Signal != "" { // what is behind it may say so
		return errSilent
	}
	if text := strings.Fields(l.said.String() + " " + string(l.streams.Stderr())); len(text) > 0 {
		return errors.New(strings.Join(text, " "))
	}
	return errSilent
}

// errSilent means that the supervisor was killed before it started the command.
var errSilent = errors.New("its supervisor ended without a message")

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

// End ends everything behind the walls and the supervisor, and returns how the
// command exited.
func (l *walled) End() sandbox.Result {
	l.control.hangUp() // the supervisor then exits by itself
	timer := time.NewTimer(process.SweepTime)
	defer timer.Stop()
	clean := false
	select {
	case <-l.tree.Exited():
		clean = l.tree.Exit().Exit == 0 // after all other processes have ended
	case <-timer.C:
	}
	if clean {
		l.tree.Reap()
	} else {
		l.tree.End()
	}
	l.cage.Remove()
	<-l.over
	for _, d := range l.doors {
		d.Close()
	}
	l.dials.Lock()
	l.control.close()
	l.control.fd = -1
	l.dials.Unlock()
	if l.result == nil {
		return sandbox.Result{Exit: -1, Signal: unix.SIGKILL.String()}
	}
	return *l.result
}
