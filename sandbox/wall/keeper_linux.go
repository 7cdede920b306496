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
	"hone/sandbox/internal/process"
)

// keeper starts the command behind the walls and stays with it: it reaps what
// the command leaves behind, watches the limits, and ends everything when it
// is told to or when the caller is gone. It is not behind the last walls
// itself, which hold only for the thread that starts the command.
type keeper struct {
	spec
	control
	tree    *process.Tree // the command; only once started is closed
	started chan struct{} // closed when the command runs
	asked   atomic.Bool   // the command was asked to end
	gone    chan struct{} // closed when the caller is gone
	over    chan string   // the limit that was passed
}

// keep is a keeper's work.
func keep(s spec, c control) error {
	k := &keeper{spec: s, control: c, started: make(chan struct{}), gone: make(chan struct{}), over: make(chan string, 1)}
	go k.listen()
	switch {
	case len(s.Wrapper) > 0:
		if err := takeStreams(); err != nil {
			return err
		}
	case s.Wall == sandbox.Hidden:
		if err := buildHidden(s); err != nil {
			return err
		}
	}
	if same := s.shared(); len(same) > 0 {
		return fmt.Errorf("the command would not be walled in: it shares the namespaces %s with its caller", strings.Join(same, ", "))
	}
	if err := k.openDoors(); err != nil {
		return err
	}
	// What runs behind the walls must not look into this process.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	drained := make(chan os.Signal, 1)
	signal.Notify(drained, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM)
	readyThreads()
	if err := k.startCommand(); err != nil || k.tree == nil {
		return err
	}
	kernel.TakeSpare(k.Policy.Limits, k.tree.PID())
	letGo()
	k.attend()
	return nil
}

// readyThreads makes the threads that a keeper waits and works on. The runtime
// ends a process that can have no more of them, and a command may take all
// tasks that are left as soon as it runs.
func readyThreads() {
	const enough = 8
	var up sync.WaitGroup
	up.Add(enough)
	for range enough {
		go func() {
			runtime.LockOSThread() // else one thread would do for all
			defer runtime.UnlockOSThread()
			up.Done()
			up.Wait()
		}()
	}
	up.Wait()
}

// listen hears what the caller says. Before the command runs, any word of it
// means that it need not be started any more.
func (k *keeper) listen() {
	for {
		m, _, err := k.receive()
		select {
		case <-k.started:
		default:
			syscall.Exit(1)
		}
		switch {
		case err != nil:
			close(k.gone)
			return
		case m.Give != 0:
			k.give(m.Give)
		default:
			k.asked.Store(true)
			k.tree.Terminate()
		}
	}
}

// openDoors opens the doors inside and hands them to the caller.
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
		defer f.Close() // not before it is sent, and the collector would close it
		defer l.Close()
		fds = append(fds, int(f.Fd()))
	}
	return k.send(message{Doors: len(fds)}, fds...)
}

// startCommand starts the command from a thread that has given up everything
// that the command must not have, and that lives as long as this process.
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
	r, err := k.restraint().Apply()
	if err != nil {
		return fmt.Errorf("give up what the command must not have: %w", err)
	}
	if len(k.Argv) == 0 {
		return k.send(message{Ready: &r})
	}
	c := sandbox.Command{Argv: k.Argv, Dir: k.Dir, Env: k.Env}
	cmd, err := c.Exec()
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, os.Stdout, os.Stderr
	t, err := process.Start(cmd)
	if err != nil {
		return sandbox.NewStartError(c.Argv[0], cmd.Path, err)
	}
	t.ClaimChildren()
	k.tree = t
	close(k.started)
	return nil
}

// stdin is what the command reads. Nothing is the device of its own file
// system: the caller's would lie outside.
func (k *keeper) stdin() (*os.File, error) {
	if k.Stdin {
		return os.Stdin, nil
	}
	return os.Open(os.DevNull)
}

// attend tells that the command runs, waits for its end, tells that as well, and
// ends what is left when the caller has all that it wants.
func (k *keeper) attend() {
	go k.tree.ReapOthers()
	go k.watch()
	_ = k.send(message{Runs: true}) // who does not hear it any more is gone
	over := ""
	select {
	case <-k.tree.Exited():
	case <-k.gone:
	case over = <-k.over:
		k.tree.Kill()
		<-k.tree.Exited()
	}
	k.awaitGroup()
	how := k.tree.Exit()
	_ = k.send(message{Exit: &ended{Exit: how.Status, Signal: how.Signal, Over: over}})
	if over == "" {
		<-k.gone
	}
	if os.Getpid() != 1 { // else the kernel ends all the others
		k.tree.End()
	}
}

// awaitGroup waits for the rest of a group that was asked to end: it has its
// grace too.
func (k *keeper) awaitGroup() {
	for k.asked.Load() && k.tree.GroupLives() {
		select {
		case <-k.gone:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// watch looks at what cannot be limited for a whole tree otherwise. How many
// tasks the machine has is cheap to ask, and tells when to count the command's.
func (k *keeper) watch() {
	const look, count = 10 * time.Millisecond, 100 * time.Millisecond
	limit, most := k.Policy.Limits, k.Policy.Limits.MaxProcesses()
	others, counted := process.MachineTasks(), time.Now()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-k.tree.Exited():
			return
		}
		now := process.MachineTasks()
		crowded, due := most > 0 && now > others+most/2, limit.Memory > 0 && time.Since(counted) >= count
		if !crowded && !due {
			continue
		}
		tasks, memory := k.tree.Usage()
		others, counted = now-tasks, time.Now()
		if what := passed(limit, tasks, memory); what != "" {
			k.over <- what
			return
		}
	}
}

// passed is the limit that so many tasks and so much memory pass; empty where
// they do not.
func passed(l sandbox.Limits, tasks int, memory int64) string {
	switch most := l.MaxProcesses(); {
	case most > 0 && tasks > most:
		return "processes"
	case l.Memory > 0 && memory > l.Memory:
		return "memory"
	}
	return ""
}
