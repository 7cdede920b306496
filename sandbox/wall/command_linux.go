package wall

import (
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
	tree     *process.Tree // the outer helper and all below it
	control  control
	streams  *process.Streams
	doors    []net.Listener
	requests requests // for sockets of its network

	apart  bool          // the command's processes cannot outlive their namespace
	over   chan struct{} // closed when there is nothing more to wait for
	ready  *kernel.Reached
	result ended
	failed error
	told   bool // the helper said how the command ended
	once   sync.Once
}

// start starts the helper that builds the walls and runs a command, or none. Up
// may be nil where there is none.
func (w *Walls) start(c sandbox.Command, up sandbox.Started) (*walled, error) {
	s := w.spec
	s.Argv, s.Dir, s.Env, s.Stdin = c.Argv, c.Dir, c.Env, c.Stdin != nil
	file, err := specFile(s)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	defer self.Close()
	ours, theirs, err := newControl()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{helperName, "outer"}, Dir: "/", Env: []string{}, ExtraFiles: []*os.File{file, theirs, self}}
	l := &walled{control: ours, apart: s.apart(), over: make(chan struct{})}
	if l.streams, err = process.NewStreams(cmd, process.IO{Stdin: c.Stdin, MaxOutput: c.MaxOutput, Live: c.Live, LiveOut: c.LiveOut, LiveErr: c.LiveErr}); err != nil {
		ours.close()
		return nil, err
	}
	l.tree, err = process.StartDetached(cmd)
	l.streams.Started(err)
	if err != nil {
		l.streams.Finish(0)
		ours.close()
		return nil, err
	}
	reach := loopback.Dial
	if s.ownNet() {
		reach = l.dial
	}
	go l.listen(w.doors, sync.OnceFunc(func() { up(l.over, reach) }))
	return l, nil
}

// listen hears what the helper says until there is nothing more to hear.
func (l *walled) listen(doors []sandbox.Door, runs func()) {
	defer close(l.over)
	for {
		m, fds, err := l.control.receive()
		switch {
		case err != nil:
			return
		case m.Doors > 0:
			l.openDoors(doors, fds)
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
			l.result, l.told = *m.Exit, true
			return
		}
	}
}

// openDoors answers at the doors that the keeper opened inside.
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

// excuse is why the walls did not come up.
func (l *walled) excuse() string {
	if l.failed != nil {
		return l.failed.Error()
	}
	said := strings.TrimSpace(string(l.streams.StderrKept()))
	if said == "" {
		return "its helper ended without a word"
	}
	return said
}

// Exited is closed when the command has ended.
func (l *walled) Exited() <-chan struct{} { return l.over }

// Terminate asks the command's group to end.
func (l *walled) Terminate() { _ = l.control.send(message{Ask: true}) }

// Kill ends everything behind the walls.
func (l *walled) Kill() { l.control.hangUp() }

// GroupLives reports whether the command or another process of its group has
// not ended yet.
func (l *walled) GroupLives() bool {
	select {
	case <-l.over:
		return false
	default:
		return true
	}
}

// End ends everything behind the walls, the helpers too, and says how the
// command ended.
func (l *walled) End() process.Exit {
	l.control.hangUp()
	timer := time.NewTimer(process.SweepTime)
	defer timer.Stop()
	select {
	case <-l.tree.Exited():
	case <-timer.C:
	}
	if l.apart && l.clean() {
		l.tree.Reap()
	} else {
		l.tree.End()
	}
	<-l.over
	l.requests.end()
	for _, d := range l.doors {
		d.Close()
	}
	l.once.Do(l.control.close)
	if !l.told {
		return process.Exit{Status: -1, Signal: unix.SIGKILL.String()}
	}
	return process.Exit{Status: l.result.Exit, Signal: l.result.Signal}
}

// clean reports whether the helper ended in order, having ended all the others.
func (l *walled) clean() bool {
	select {
	case <-l.tree.Exited():
		return l.tree.Exit() == process.Exit{}
	default:
		return false
	}
}
