package wall

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/kernel"
	"hone/sandbox/internal/loopback"
	"hone/sandbox/internal/process"
)

// keeper starts the command behind the walls and stays until it ends: it reaps
// the processes that the command leaves behind, enforces the limits, and ends
// everything when the caller asks for it or ends. The last restraint holds only
// the thread that starts the command, not the rest of the keeper.
type keeper struct {
	spec
	control
	tree    *process.Tree // the command; only once started is closed
	started chan struct{} // closed when the command runs
	start   sync.Mutex    // held while the command is started, since it may write before started is closed
	asked   atomic.Bool   // the command was asked to end
	held    bool          // the kernel limits the command's processes
	gone    chan struct{} // closed when the caller has ended
}

func runKeeper(s spec, c control) error {
	k := &keeper{spec: s, control: c, started: make(chan struct{}), gone: make(chan struct{})}
	go k.listen()
	if build := s.kind().build; build != nil {
		if err := build(s); err != nil {
			return err
		}
	}
	if same := s.sharedNamespaces(); len(same) > 0 {
		return fmt.Errorf("the command would run without walls: it shares the namespaces %s with its caller", strings.Join(same, ", "))
	}
	if err := k.openDoors(); err != nil {
		return err
	}
	// The command must not read the memory of this process.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM)
	reserveThreads()
	if err := k.startCommand(); err != nil || k.tree == nil {
		return err
	}
	kernel.TakeSpare(k.Policy.Limits, k.tree.PID())
	releaseStreams()
	k.supervise()
	return nil
}

// The Go runtime ends a process that cannot start a thread, and the command may use up the limit of tasks as soon as it runs.
func reserveThreads() {
	const enough = 8
	var up sync.WaitGroup
	up.Add(enough)
	for range enough {
		go func() {
			runtime.LockOSThread() // otherwise one thread could run them all
			defer runtime.UnlockOSThread()
			up.Done()
			up.Wait()
		}()
	}
	up.Wait()
}

// Before the command runs, any message means that it must not start.
func (k *keeper) listen() {
	for {
		m, _, err := k.receive()
		k.start.Lock()
		select {
		case <-k.started:
		default:
			syscall.Exit(1)
		}
		k.start.Unlock()
		switch {
		case err != nil:
			close(k.gone)
			return
		case m.Give != 0:
			k.sendSockets(m.Give)
		default:
			k.asked.Store(true)
			k.tree.Terminate()
		}
	}
}

func (k *keeper) openDoors() error {
	if len(k.Doors) == 0 || !k.ownNet() {
		return nil
	}
	var fds []int
	for _, addr := range k.Doors {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return fmt.Errorf("open a door: %w", err)
		}
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			return fmt.Errorf("open a door: %w", err)
		}
		defer f.Close() // after it is sent: the garbage collector might close it before
		defer l.Close()
		fds = append(fds, int(f.Fd()))
	}
	return k.send(message{Doors: len(fds)}, fds...)
}

func (k *keeper) sendSockets(request int) {
	fds, err := loopback.Sockets()
	reply := &given{To: request}
	if err != nil {
		reply.Fail = failureOf(err)
	}
	_ = k.send(message{Given: reply}, fds...) // fails only if the caller has ended
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// The thread is restrained and lives as long as this process.
func (k *keeper) startCommand() error {
	var err error
	kernel.OnOwnThread(func() { err = k.startRestrained() })
	return err
}

func (k *keeper) startRestrained() error {
	stdin, err := k.stdin()
	if err != nil {
		return err
	}
	r, err := k.kind().restrain(k.spec).Apply()
	if err != nil {
		return fmt.Errorf("restrain the command: %w", err)
	}
	k.held = k.Caged || r.Processes > 0 || numbersLimited(k.Policy.Limits)
	if len(k.Argv) == 0 {
		return k.send(message{Ready: &r})
	}
	c := sandbox.Command{Argv: k.Argv, Dir: k.Dir, Env: k.Env}
	cmd, err := c.Exec()
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, os.Stdout, os.Stderr
	k.start.Lock()
	defer k.start.Unlock()
	if err := k.send(message{Start: true}); err != nil {
		return err
	}
	t, err := process.Start(cmd, nil)
	if err != nil {
		return sandbox.NewStartError(c.Argv[0], cmd.Path, err)
	}
	t.ClaimChildren()
	k.tree = t
	close(k.started)
	return nil
}

// The null device is that of the command's own file system, because the caller's lies outside.
func (k *keeper) stdin() (*os.File, error) {
	if k.Stdin {
		return os.Stdin, nil
	}
	return os.Open(os.DevNull)
}

// When the caller hangs up, all other processes are ended.
func (k *keeper) supervise() {
	go k.tree.ReapOthers()
	k.tree.Watch(k.Policy.Limits.MaxProcesses(), k.Policy.Limits.Memory, k.held)
	_ = k.send(message{Runs: true}) // fails only if the caller has ended
	over := ""
	select {
	case <-k.tree.Exited():
		over = k.tree.Excess()
	case <-k.gone:
	}
	k.awaitGroup()
	how := k.tree.Exit()
	_ = k.send(message{Exit: &ended{Exit: how.Status, Signal: how.Signal, Over: over}})
	if over == "" {
		<-k.gone
	}
	if os.Getpid() != 1 { // otherwise the kernel ends them
		k.tree.End()
	}
}

// All of a group that was asked to end has the grace period.
func (k *keeper) awaitGroup() {
	for k.asked.Load() && k.tree.GroupLives() {
		select {
		case <-k.gone:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}
