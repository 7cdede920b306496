//go:build unix && !linux

package sandbox

import (
	"os/exec"
	"syscall"
)

// tree is a started command and its process group.
type tree struct {
	cmd    *exec.Cmd
	pid    int
	exited chan struct{} // closed when the command has exited and was reaped
}

// start starts a command in a session of its own.
func start(cmd *exec.Cmd) (*tree, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t := &tree{cmd: cmd, pid: cmd.Process.Pid, exited: make(chan struct{})}
	go func() {
		defer close(t.exited)
		_ = cmd.Wait() // an exit that is not 0 is no error here
	}()
	return t, nil
}

// ask asks the command's group to end.
func (t *tree) ask() { _ = syscall.Kill(-t.pid, syscall.SIGTERM) }

// kill ends the command and its group.
func (t *tree) kill() { _ = syscall.Kill(-t.pid, syscall.SIGKILL) }

// groupLives reports whether a process of the group is left.
func (t *tree) groupLives() bool { return syscall.Kill(-t.pid, 0) == nil }

// end ends what is left of the group of a command that has exited, and says
// how it exited.
func (t *tree) end() Result {
	t.kill()
	<-t.exited
	return exitResult(t.cmd.ProcessState)
}
