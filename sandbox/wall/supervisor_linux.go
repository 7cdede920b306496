package wall

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/kernel"
	"hone/sandbox/internal/process"
)

// supervisor starts a command, behind walls or without, and stays until it ends: it reaps
// the processes that the command leaves behind, enforces the limits, and ends
// everything when the caller asks for it or ends. The last restraint holds only
// the thread that starts the command, not the rest of the supervisor.
type supervisor struct {
	spec
	control
	tree    *process.Tree // the command; only once started is closed
	started chan struct{} // closed when the command runs
	start   sync.Mutex    // held while the command is started, since it may write before started is closed
	asked   atomic.Bool   // the command was asked to end
	gone    chan struct{} // closed when the caller has ended
}

func runSupervisor(c control) error {
	s, err := readSpec()
	if err == nil {
		err = c.receiveAs(unix.Stdin, unix.Stdout, unix.Stderr)
	}
	if err != nil {
		return err
	}
	k := &supervisor{spec: s, control: c, started: make(chan struct{}), gone: make(chan struct{})}
	go k.listen()
	if s.Policy.Wall == sandbox.Hidden {
		if err := buildHidden(s); err != nil {
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
	sandbox.Notify(ignored, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM)
	reserveThreads()
	kernel.OnOwnThread(func() { err = k.startRestrained() }) // the thread lives as long as this process
	if err != nil || k.tree == nil {
		return err
	}
	kernel.TakeSpare(k.tree.PID())
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
func (k *supervisor) listen() {
	for {
		m, fds, err := k.receive()
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
		case m.Dial > 0:
			for _, fd := range fds { // one, unless this process has too many open files
				go connect(control{fd}, m.Dial)
			}
		default:
			k.asked.Store(true)
			k.tree.Terminate()
		}
	}
}

func (k *supervisor) openDoors() error {
	if len(k.Policy.Doors) == 0 || !k.ownNet() {
		return nil
	}
	var fds []int
	for _, door := range k.Policy.Doors {
		l, err := net.Listen("tcp", door.Addr)
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

func (k *supervisor) startRestrained() error {
	stdin := os.Stdin
	if !k.Stdin { // the null device is that of the command's own file system, because the caller's lies outside
		var err error
		if stdin, err = os.Open(os.DevNull); err != nil {
			return err
		}
	}
	g, err := kernel.Restrain(k.Policy, k.Entries)
	if err != nil {
		return fmt.Errorf("restrain the command: %w", err)
	}
	if len(k.Command.Argv) == 0 {
		return k.send(message{Ready: &g})
	}
	cmd, err := k.Command.Exec()
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, os.Stdout, os.Stderr
	if err := k.send(message{Start: true}); err != nil {
		return err
	}
	k.start.Lock()
	defer k.start.Unlock()
	t, err := process.Start(cmd)
	if err != nil {
		return sandbox.NewStartError(k.Command.Argv[0], cmd.Path, err)
	}
	k.tree = t
	close(k.started)
	return nil
}

// When the caller hangs up, all other processes are ended.
func (k *supervisor) supervise() {
	go k.tree.ReapOthers()
	k.tree.Watch(k.Policy.Limits.MaxProcesses(), k.Policy.Limits.Memory)
	_ = k.send(message{Runs: true}) // fails only if the caller has ended
	over := ""
	select {
	case <-k.tree.Exited():
		over = k.tree.Excess()
	case <-k.gone:
	}
	for k.asked.Load() && k.tree.GroupLives() { // all of a group that was asked to end has the grace period
		select {
		case <-k.gone:
			k.asked.Store(false)
		case <-time.After(5 * time.Millisecond):
		}
	}
	how := k.tree.Exit()
	how.OverLimit = over
	_ = k.send(message{Exit: &how})
	if over == "" {
		<-k.gone
	}
	if os.Getpid() != 1 { // otherwise the kernel ends them
		k.tree.End()
	}
}

// The streams then end when the command's processes do, and a process that writes to the command learns that it stopped
// reading.
func releaseStreams() {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := unix.Stdin; fd <= unix.Stderr; fd++ {
		if err != nil || unix.Dup3(null, fd, 0) != nil {
			_ = unix.Close(fd)
		}
	}
}
