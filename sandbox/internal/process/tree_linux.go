package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// SweepTime is how long End looks for processes that a command left behind. Only
// a process that cannot be killed makes it take that long.
const SweepTime = 5 * time.Second

// Tree is a running command with all that it started.
type Tree struct {
	cmd    *exec.Cmd
	pid    int
	outer  int    // this process's session, which no process of the tree can enter
	born   uint64 // the command's Status.Born
	mark   mark
	exited chan struct{} // closed when the command has exited; it is not reaped yet
	status Exit          // set when exited is closed
	only   bool          // this process has no other children
	known  map[process]bool
	// sessions are those in which processes of the tree were found. They contain
	// no others, because a process cannot enter a session.
	sessions map[int]bool

	watched chan struct{} // closed when nothing watches the limits any more; nil if nothing did
	excess  string        // set when watched is closed
}

// Start starts a command in a session of its own. The kernel kills it when the
// calling thread ends, and the keeper, which may be nil, kills all that it started
// when this process ends.
func Start(cmd *exec.Cmd, k *Keeper) (*Tree, error) {
	k.start()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return start(cmd, k.commandMark())
}

// StartDetached is Start for a command that may outlive this process.
func StartDetached(cmd *exec.Cmd) (*Tree, error) { return start(cmd, randomMark()) }

func start(cmd *exec.Cmd, m mark) (*Tree, error) {
	// Without this, daemons become children of init: they are still found by
	// their mark, but not reaped here. So an error does not matter.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	t := &Tree{cmd: cmd, mark: m, exited: make(chan struct{}), known: map[process]bool{}, sessions: map[int]bool{}}
	cmd.Env = t.mark.env(cmd.Env)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	if err := t.mark.withLimit(cmd.Start); err != nil {
		return nil, err
	}
	t.pid = cmd.Process.Pid
	t.sessions[t.pid] = true
	t.outer, _ = unix.Getsid(0)
	if s, ok := ReadStatus(t.pid); ok {
		t.born = s.Born
	}
	go t.await()
	return t, nil
}

// PID returns the command's process number.
func (t *Tree) PID() int { return t.pid }

// ClaimChildren declares that this process has no other children, so that every
// process that becomes its child belongs to the tree.
func (t *Tree) ClaimChildren() { t.only = true }

// Exit returns how the command exited. It may be called after Exited is closed.
func (t *Tree) Exit() Exit { return t.status }

// The command stays a zombie, so that no other process gets its number or its group's.
func (t *Tree) await() {
	defer close(t.exited)
	info, err := waitid(unix.P_PID, t.pid)
	t.status = info.exit()
	if err != nil {
		t.status = Exit{Status: -1}
	}
}

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
	for _, s := range All() {
		if (s.Group == t.pid || s.PID == t.pid) && !s.Zombie {
			return true
		}
	}
	return false
}

// End ends all processes that the command left behind, and returns how it exited.
// The command must have exited.
func (t *Tree) End() Exit {
	t.Kill()
	<-t.exited
	t.Excess() // what watches the tree looks for the same processes
	t.Reap()
	deadline := time.Now().Add(SweepTime)
	for quiet := 0; quiet < 2 && !childless() && time.Now().Before(deadline); {
		if quiet++; t.sweep(t.candidates()) > 0 {
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
		pid, err := waitAny()
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

// Processes of others may be among them.
func (t *Tree) candidates() []Status {
	if all, complete := descendants(t.born); complete {
		return all
	}
	return All()
}

// Those that are now this process's children are reaped. It returns how many are left.
func (t *Tree) sweep(all []Status) int {
	left := 0
	for _, s := range t.members(all) {
		switch {
		case !s.Zombie:
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

// It remembers them, because a process that ends may lose what identifies it.
func (t *Tree) members(all []Status) []Status {
	byPID := make(map[int]Status, len(all))
	for _, s := range all {
		byPID[s.PID] = s
	}
	var found []Status
	for _, s := range all {
		if t.descends(s, byPID) {
			t.known[s.process], t.sessions[s.Session] = true, true
			found = append(found, s)
		}
	}
	return found
}

func (t *Tree) descends(s Status, byPID map[int]Status) bool {
	for range byPID { // the parents may form a loop if they changed while they were read
		if t.owns(s) {
			return true
		}
		parent, ok := byPID[s.Parent]
		if !ok || s.PID == os.Getpid() {
			return false
		}
		if parent.PID == os.Getpid() {
			return t.only
		}
		s = parent
	}
	return false
}

func (t *Tree) owns(s Status) bool {
	if s.Born < t.born || s.PID == os.Getpid() || s.Session == t.outer {
		return false
	}
	return t.known[s.process] || t.sessions[s.Session] || t.mark.isOn(s.PID)
}
