package process

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// SweepTime is how long End looks for processes that a command left behind. Only
// a process that cannot be killed makes it take that long.
const SweepTime = 5 * time.Second

// Tree is a running command with all that it started.
type Tree struct {
	cmd    *exec.Cmd
	pid    int
	id     string         // marks the processes; empty: they are all that this process starts
	exited chan struct{}  // closed when the command has exited; it is not reaped yet
	status sandbox.Result // set when exited is closed
	killed map[process]bool

	watched chan struct{} // closed when nothing watches the limits any more; nil if nothing did
	excess  string        // set when watched is closed
}

// Start starts the command of a supervisor, in a session of its own. This process must have no
// other children. The kernel kills the command when the calling thread ends.
func Start(cmd *exec.Cmd) (*Tree, error) {
	cmd.Env = mark(cmd.Env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return start(cmd, "")
}

// StartSupervisor starts the supervisor of a command of a place in a session of its own. If something
// kills it, End finds what it left by its mark.
func StartSupervisor(cmd *exec.Cmd, place string) (*Tree, error) {
	id := place + "." + rand.Text()[:16]
	cmd.Env = append(cmd.Env, marker+"="+id)
	return start(cmd, id)
}

func start(cmd *exec.Cmd, id string) (*Tree, error) {
	// Without this, daemons become children of init. Then they are found by their mark, but not reaped here.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	t := &Tree{cmd: cmd, id: id, exited: make(chan struct{}), killed: map[process]bool{}}
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t.pid = cmd.Process.Pid
	go func() {
		defer close(t.exited)
		info, err := waitid(unix.P_PID, t.pid) // it stays a zombie, so that no other process gets its number or its group's
		if t.status = info.exit(); err != nil {
			t.status = sandbox.Result{Exit: -1}
		}
	}()
	return t, nil
}

// PID returns the command's process number.
func (t *Tree) PID() int { return t.pid }

// Exit returns how the command exited. It may be called after Exited is closed.
func (t *Tree) Exit() sandbox.Result { return t.status }

// Exited returns a channel that is closed when the command has exited.
func (t *Tree) Exited() <-chan struct{} { return t.exited }

// Terminate asks the command's process group to end.
func (t *Tree) Terminate() { _ = unix.Kill(-t.pid, unix.SIGTERM) }

// Kill ends the command and its group.
func (t *Tree) Kill() {
	_ = unix.Kill(-t.pid, unix.SIGKILL)
	_ = unix.Kill(t.pid, unix.SIGKILL)
}

// GroupLives reports whether any process of the command's group still runs.
func (t *Tree) GroupLives() bool {
	// Usually the command itself does. To read the status of all processes takes a hundred times as long.
	if s, ok := ReadStatus(t.pid); ok && !s.Zombie {
		return true
	}
	return slices.ContainsFunc(All(), func(s Status) bool { return s.Group == t.pid && !s.Zombie })
}

// End ends all processes that the command left behind, and returns how it exited.
func (t *Tree) End() sandbox.Result {
	t.Kill()
	<-t.exited
	t.Excess() // what watches the tree looks for the same processes
	t.Reap()
	deadline := time.Now().Add(SweepTime)
	for quiet := 0; quiet < 2 && !childless() && time.Now().Before(deadline); {
		if quiet++; t.sweep() > 0 {
			quiet = 0
			time.Sleep(time.Millisecond)
		}
	}
	return exitOf(t.cmd.ProcessState)
}

// Reap reaps the command, which must have exited.
func (t *Tree) Reap() { _ = t.cmd.Wait() } // a status other than 0 is not an error here

// ReapOthers reaps the processes whose parents have ended, until the command
// itself has exited.
func (t *Tree) ReapOthers() {
	for {
		info, err := waitid(unix.P_ALL, 0)
		pid := int(info.pid)
		if err != nil || pid == t.pid {
			return
		}
		_ = IgnoreEINTR(func() error { _, err := unix.Wait4(pid, nil, 0, nil); return err })
	}
}

// Without children, no process can be left behind.
func childless() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD)
}

// Those that are now this process's children are reaped. It returns how many are left.
func (t *Tree) sweep() int {
	left := 0
	for _, s := range t.members() {
		switch {
		case !s.Zombie:
			t.killed[s.process] = true // it may lose what identifies it
			if err := unix.Kill(s.PID, unix.SIGKILL); !errors.Is(err, unix.EPERM) {
				left++
			}
		case s.Parent == os.Getpid():
			if pid, _ := unix.Wait4(s.PID, nil, unix.WNOHANG, nil); pid != s.PID {
				left++
			}
		}
	}
	return left
}

func (t *Tree) members() []Status {
	if t.id != "" {
		return below(All(), func(s Status) bool { return t.killed[s.process] || s.PID != os.Getpid() && isMarked(s.PID, t.id) })
	}
	return below(All(), func(s Status) bool { return s.Parent == os.Getpid() })
}
