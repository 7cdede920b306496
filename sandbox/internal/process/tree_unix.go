//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// Tree is a started command and its process group.
type Tree struct {
	cmd    *exec.Cmd
	pid    int
	keeper *Keeper       // nil if there is none
	exited chan struct{} // closed when the command has exited and was reaped
}

// Start starts a command in a session of its own. The keeper, which may be nil, kills
// its process group when this process ends.
func Start(cmd *exec.Cmd, k *Keeper) (*Tree, error) {
	k.start()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t := &Tree{cmd: cmd, pid: cmd.Process.Pid, keeper: k, exited: make(chan struct{})}
	k.add(t.pid)
	go func() {
		defer close(t.exited)
		_ = cmd.Wait() // a status other than 0 is not an error here
	}()
	return t, nil
}

// Exited returns a channel that is closed when the command has exited.
func (t *Tree) Exited() <-chan struct{} { return t.exited }

// Terminate asks the command's process group to end.
func (t *Tree) Terminate() { _ = syscall.Kill(-t.pid, syscall.SIGTERM) }

// Kill ends the command and its group.
func (t *Tree) Kill() { _ = syscall.Kill(-t.pid, syscall.SIGKILL) }

// GroupLives reports whether any process of the command's group still runs.
func (t *Tree) GroupLives() bool { return syscall.Kill(-t.pid, 0) == nil }

// End ends what is left of the command's group, and returns how the command
// exited.
func (t *Tree) End() Exit {
	t.Kill()
	<-t.exited
	t.keeper.remove(t.pid)
	return exitOf(t.cmd.ProcessState)
}
