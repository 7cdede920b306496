package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sweeping is how long what a command left behind is looked for. Only a
// process that cannot be killed makes it last.
const sweeping = 5 * time.Second

// tree is a started command and all that it started.
type tree struct {
	cmd    *exec.Cmd
	pid    int
	born   uint64 // when the command began, in the kernel's ticks
	mark   mark
	exited chan struct{} // closed when the command has exited, which is not reaped yet
	status Result        // how it did; only once exited is closed
	// only says that this process has no other children, so that whatever
	// becomes one is the tree's.
	only  bool
	known map[process]bool
	// sessions are those that members of the tree were seen in. None of them
	// can be anyone else's, as nobody can enter a session.
	sessions map[int]bool
}

// start starts a command in a session of its own. It dies with the thread that
// called start.
func start(cmd *exec.Cmd) (*tree, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return startFree(cmd)
}

// startFree is start for a command that may outlive this process.
func startFree(cmd *exec.Cmd) (*tree, error) {
	// Without it daemons become children of init, are found by their mark
	// alone, and are not reaped here; so an error changes nothing.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	t := &tree{cmd: cmd, mark: newMark(), exited: make(chan struct{}), known: map[process]bool{}, sessions: map[int]bool{}}
	cmd.Env = t.mark.env(cmd.Env)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t.pid = cmd.Process.Pid
	t.sessions[t.pid] = true
	t.mark.limit = markLimit(t.pid)
	if s, ok := readStatus(t.pid); ok {
		t.born = s.born
	}
	go t.await()
	return t, nil
}

// await closes exited. The command stays a zombie meanwhile, so that its
// number, and its group's, is not given to another.
func (t *tree) await() {
	defer close(t.exited)
	info, err := waitid(unix.P_PID, t.pid)
	t.status = info.result()
	if err != nil {
		t.status = Result{Exit: -1}
	}
}

// ask asks the command's group to end.
func (t *tree) ask() { _ = unix.Kill(-t.pid, unix.SIGTERM) }

// kill ends the command and its group.
func (t *tree) kill() {
	_ = unix.Kill(-t.pid, unix.SIGKILL)
	_ = unix.Kill(t.pid, unix.SIGKILL)
}

// groupLives reports whether the command or another process of its group has
// not ended yet.
func (t *tree) groupLives() bool {
	for _, s := range processes() {
		if (s.group == t.pid || s.pid == t.pid) && !s.zombie {
			return true
		}
	}
	return false
}

// end ends all that a command which has exited left behind, and says how it
// exited.
func (t *tree) end() Result {
	t.kill()
	t.reap()
	deadline := time.Now().Add(sweeping)
	for quiet := 0; quiet < 2 && !childless() && time.Now().Before(deadline); {
		if t.sweep() == 0 {
			quiet++
			continue
		}
		quiet = 0
		time.Sleep(time.Millisecond)
	}
	return exitResult(t.cmd.ProcessState)
}

// reap takes away the command itself, which has exited.
func (t *tree) reap() { _ = t.cmd.Wait() } // an exit that is not 0 is no error here

// childless reports whether this process has no children at all, so that
// nothing can be left behind.
func childless() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD)
}

// sweep kills every process of the tree and reaps those that became this
// process's children. It returns how many it has to come back for.
func (t *tree) sweep() int {
	left := 0
	for _, s := range t.members(processes()) {
		switch {
		case !s.zombie:
			if err := unix.Kill(s.pid, unix.SIGKILL); !errors.Is(err, unix.EPERM) {
				left++
			}
		case s.parent == os.Getpid():
			if pid, _ := unix.Wait4(s.pid, nil, unix.WNOHANG, nil); pid != s.pid {
				left++
			}
		}
	}
	return left
}

// members are the processes of the tree. It remembers them, because a process
// may lose what it was known by when it ends.
func (t *tree) members(all []status) []status {
	byPID := make(map[int]status, len(all))
	for _, s := range all {
		byPID[s.pid] = s
	}
	var found []status
	for _, s := range all {
		if t.descends(s, byPID) {
			t.known[s.process], t.sessions[s.session] = true, true
			found = append(found, s)
		}
	}
	return found
}

// descends reports whether a process or one of its ancestors is the tree's.
func (t *tree) descends(s status, byPID map[int]status) bool {
	for range byPID { // an ancestry is no longer than this, even in a torn snapshot
		if t.owns(s) {
			return true
		}
		parent, ok := byPID[s.parent]
		if !ok || s.pid == os.Getpid() {
			return false
		}
		if parent.pid == os.Getpid() {
			return t.only
		}
		s = parent
	}
	return false
}

// owns reports whether a process itself shows that it is the tree's.
func (t *tree) owns(s status) bool {
	if s.born < t.born || s.pid == os.Getpid() {
		return false
	}
	return t.known[s.process] || t.sessions[s.session] || t.mark.on(s.pid)
}
