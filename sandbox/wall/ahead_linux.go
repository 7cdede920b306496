package wall

import (
	"os"
	"os/exec"
	"runtime"
	"sync"

	"hone/sandbox"
	"hone/sandbox/internal/kernel"
	"hone/sandbox/internal/process"
)

// helper is the process that runs one command; see [runHelper]. It first waits for the
// spec.
type helper struct {
	tree    *process.Tree // the helper and all below it
	cage    *kernel.Cage  // contains the tree; nil if there is none
	control control
}

// The helper is in the namespaces of the command if it is the keeper of the hidden wall.
func newHelper(s spec) (*helper, error) {
	h := &helper{}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel kills a keeper when the thread ends that started it
		defer runtime.UnlockOSThread()
		err := h.start(s)
		started <- err
		if err == nil {
			<-h.tree.Exited()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return h, nil
}

func (h *helper) start(s spec) error {
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
	begin := process.StartDetached
	build := s.kind().build
	if build != nil {
		cmd.SysProcAttr = kernel.Namespaces(s.Policy.Net, s.Policy.As)
		begin = func(cmd *exec.Cmd) (*process.Tree, error) { return process.Start(cmd, nil) }
	}
	if h.tree, err = begin(cmd); err != nil {
		ours.close()
		return err
	}
	h.control = ours
	if build == nil || !kernel.NumbersLimited() { // see [newRoot.limitProcesses]
		h.cage = kernel.NewCage(s.Policy.Limits.MaxProcesses(), h.tree.PID())
	}
	return nil
}

func (h *helper) dismiss() {
	h.tree.Kill()
	<-h.tree.Exited()
	h.tree.Reap()
	h.cage.Remove()
	h.control.close()
}

func (h *helper) ended() bool {
	select {
	case <-h.tree.Exited():
		return true
	default:
		return false
	}
}

// ahead starts the helper of the next command before there is one. The helper then is in
// its namespaces or its control group and has nothing to do. What the command may see is
// found when it starts. The zero value is ready to use.
type ahead struct {
	mu     sync.Mutex
	used   bool    // a helper was needed, so that more are likely to be
	idle   *helper // nil if there is none
	closed bool
}

func (a *ahead) take() *helper {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.idle
	a.idle, a.used = nil, true
	if h != nil && h.ended() {
		h.dismiss()
		return nil
	}
	return h
}

func (a *ahead) start(w *Walls) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || !a.used || a.idle != nil {
		return
	}
	if h, err := newHelper(w.spec); err == nil { // otherwise the next command says why
		a.idle = h
	}
}

// No other one starts.
func (a *ahead) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	if h := a.take(); h != nil {
		h.dismiss()
	}
}

// Early is the helper of a first command, which starts before the walls are built. A nil
// Early has no helper.
type Early struct {
	spec   spec
	helper chan *helper // nil if it was taken, or did not start
}

// StartEarly starts the helper of a first command, in the background. Only the policy's Net,
// Limits and As matter. For Auto, the helper is that of the strongest wall. Call Close, whether
// or not walls were built with the helper.
func StartEarly(wall sandbox.Wall, p sandbox.Policy) *Early {
	if _, ok := helperWork(os.Args); ok {
		return nil // this program does not call Helper, as Build will say
	}
	if wall == sandbox.Auto {
		wall = sandbox.Hidden
	}
	e := &Early{spec{Wall: wall, Policy: sandbox.Policy{Net: p.Net, Limits: p.Limits, As: p.As}}, make(chan *helper, 1)}
	go func() {
		h, _ := newHelper(e.spec) // without it the first command says why
		e.helper <- h
	}()
	return e
}

func (e *Early) take(s spec) *helper {
	if e == nil || e.spec.Wall != s.Wall || e.spec.Policy.Net != s.Policy.Net || e.spec.Policy.Limits != s.Policy.Limits || e.spec.Policy.As != s.Policy.As {
		return nil
	}
	h := <-e.helper
	e.helper <- nil
	return h
}

// Close ends the helper, unless walls took it.
func (e *Early) Close() {
	if e == nil {
		return
	}
	if h := e.take(e.spec); h != nil {
		h.dismiss()
	}
}

// SetKeeper does nothing: each command has a helper, which ends with this process.
func (w *Walls) SetKeeper(*sandbox.Keeper) {}

// Prepare starts the helper of the next command, in the background, if none waits and one
// was needed before. Call it when a command is likely but not yet known, such as while a
// model thinks.
func (w *Walls) Prepare() { go w.ahead.start(w) }
