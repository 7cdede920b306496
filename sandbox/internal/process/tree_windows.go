package process

import (
	"fmt"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"hone/sandbox"
)

// Tree is a running command and its job, which contains all that it starts.
type Tree struct {
	cmd    *exec.Cmd
	job    windows.Handle
	exited chan struct{} // closed when the command has exited
}

// Start starts a command in a job that ends with this process, so that it needs no
// keeper.
func Start(cmd *exec.Cmd, _ *Keeper) (*Tree, error) {
	job, err := newJob()
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
	if err := cmd.Start(); err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	t := &Tree{cmd: cmd, job: job, exited: make(chan struct{})}
	go func() {
		defer close(t.exited)
		_ = cmd.Wait() // a status other than 0 is not an error here
	}()
	if err := t.join(); err != nil {
		_ = cmd.Process.Kill()
		<-t.exited
		_ = windows.CloseHandle(job)
		return nil, err
	}
	return t, nil
}

// The processes of the job end when its last handle is closed.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("create a job: %w", err)
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, fmt.Errorf("limit a job: %w", err)
	}
	return job, nil
}

// That the command has already exited is not an error.
func (t *Tree) join() error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(t.cmd.Process.Pid))
	if err != nil {
		return t.unlessExited(fmt.Errorf("open the process: %w", err))
	}
	defer windows.CloseHandle(process)
	if err := windows.AssignProcessToJobObject(t.job, process); err != nil {
		return t.unlessExited(fmt.Errorf("put the process into a job: %w", err))
	}
	return nil
}

func (t *Tree) unlessExited(err error) error {
	select {
	case <-t.exited:
		return nil
	default:
		return err
	}
}

// Exited returns a channel that is closed when the command has exited.
func (t *Tree) Exited() <-chan struct{} { return t.exited }

// Terminate does nothing: Windows has no signal that every program handles.
func (t *Tree) Terminate() {}

// Kill ends every process of the job.
func (t *Tree) Kill() { _ = windows.TerminateJobObject(t.job, 1) }

// GroupLives reports whether the command still runs, and kills its job, because
// Terminate asks nothing.
func (t *Tree) GroupLives() bool {
	select {
	case <-t.exited:
		return false
	default:
		t.Kill()
		return true
	}
}

// End ends what the command left behind, and returns how it exited.
func (t *Tree) End() sandbox.Result {
	t.Kill()
	<-t.exited
	_ = windows.CloseHandle(t.job)
	return sandbox.Result{Exit: t.cmd.ProcessState.ExitCode()}
}

// Helper does nothing: a job needs no second process.
func Helper() {}
