//go:build unix && !linux

package process

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"

	"hone/sandbox"
)

// Tree is a started command and its process group.
type Tree struct {
	cmd     *exec.Cmd
	pid     int
	watcher *os.File      // the pipe to the process that watches it; nil if none does
	exited  chan struct{} // closed when the command has exited and was reaped
}

// Start starts a command in a session of its own. If there is a keeper, a second process of this
// program kills the command's process group when this process ends before the command.
func Start(cmd *exec.Cmd, k *Keeper) (*Tree, error) {
	t := &Tree{cmd: cmd, exited: make(chan struct{})}
	if k != nil && dispatches.Load() {
		t.watcher = startWatcher()
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_ = t.watcher.Close() // it ends without a group
		return nil, err
	}
	t.pid = cmd.Process.Pid
	_, _ = fmt.Fprintln(t.watcher, t.pid) // fails if there is none
	go func() {
		defer close(t.exited)
		_ = cmd.Wait() // a status other than 0 is not an error here
	}()
	return t, nil
}

const watcherName = "hone-watcher"

// dispatches is set by [Helper]. A program that does not call it would run all of its
// main in the watcher, so it gets none.
var dispatches atomic.Bool

// Helper does a watcher's work and exits if this process was started as one;
// otherwise it returns at once.
func Helper() {
	dispatches.Store(true)
	if len(os.Args) == 0 || os.Args[0] != watcherName {
		return
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	var group int
	var over string
	if n, _ := fmt.Fscan(os.Stdin, &group, &over); n == 1 { // the process that wrote the number has ended
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
	syscall.Exit(0) // at once: under the race detector os.Exit waits a second
}

// It is nil if it cannot be started.
func startWatcher() *os.File {
	program, err := os.Executable()
	if err != nil {
		return nil
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer theirs.Close()
	cmd := &exec.Cmd{Path: program, Args: []string{watcherName}, Dir: "/", Env: []string{},
		Stdin: theirs, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return nil
	}
	go func() { _ = cmd.Wait() }()
	return ours
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
func (t *Tree) End() sandbox.Result {
	t.Kill()
	<-t.exited
	_, _ = fmt.Fprintln(t.watcher, "over")
	_ = t.watcher.Close()
	return exitOf(t.cmd.ProcessState)
}
