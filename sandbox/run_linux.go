package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Walls is the runner whose commands stand behind walls. It is safe for
// concurrent use.
type Walls struct {
	spec  spec
	grade Grade
	doors []Door
	host  []net.Listener // doors of walls without a network of their own

	guard   *guard
	settled []Restored
	grace   time.Duration // see [None.Grace]
}

var _ Runner = (*Walls)(nil)

// Build builds walls by a policy, and tries that they can be had: its error is
// a [*WallError] where they cannot, and never a silent step down to weaker
// ones. Only Auto chooses, and Grade says what it chose and why. [Helper] must
// be the first call of the program's main.
func Build(ctx context.Context, wall Wall, p Policy) (*Walls, error) {
	if wall == Auto {
		return strongest(ctx, p)
	}
	w, err := plan(wall, p)
	if err != nil {
		return nil, err
	}
	if err := w.try(ctx); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// strongest is the strongest of the walls that hide or guard.
func strongest(ctx context.Context, p Policy) (*Walls, error) {
	var why []string
	for _, wall := range []Wall{Hidden, Bubblewrap, Landlock} {
		w, err := Build(ctx, wall, p)
		if err == nil {
			w.grade.Why = strings.Join(why, "; ")
			return w, nil
		}
		var cannot *WallError
		if !errors.As(err, &cannot) {
			return nil, err
		}
		why = append(why, cannot.Error())
	}
	return nil, &WallError{Wall: Auto, Reason: strings.Join(why, "; ")}
}

// plan makes walls that nobody has tried yet.
func plan(wall Wall, p Policy) (*Walls, error) {
	entries, err := p.view()
	if err != nil {
		return nil, fmt.Errorf("the policy of the walls: %w", err)
	}
	if len(p.Doors) > maxDoors {
		return nil, fmt.Errorf("the policy of the walls: more than %d doors", maxDoors)
	}
	w := &Walls{doors: p.Doors}
	p.Doors = nil
	w.spec = spec{Wall: wall, Policy: p, Entries: entries, Outside: namespaceIDs()}
	switch wall {
	case Hidden, Landlock, NoWall:
	case Bubblewrap, Firejail:
		err = w.wrap()
	default:
		err = &WallError{Wall: wall, Reason: "there is none of that name", Next: "auto, hidden, bwrap, landlock, firejail or none"}
	}
	if err == nil {
		err = w.placeDoors()
	}
	if err == nil {
		err = w.protect(p.Aside)
	}
	if err != nil {
		_ = w.Close()
	}
	return w, err
}

// protect puts back what an earlier process could not, and readies what is put
// back after each command.
func (w *Walls) protect(aside string) (err error) {
	if w.settled, err = settle(aside); err != nil {
		return err
	}
	w.guard, err = newGuard(w.unheld(), aside)
	return err
}

// wrap finds the program that builds the walls.
func (w *Walls) wrap() error {
	keeper := []string{selfPath, helperName, "keeper"}
	find, args := findBwrap, bwrapArgs
	if w.spec.Wall == Firejail {
		find, args = findFirejail, firejailArgs
	}
	program, err := find()
	if err != nil {
		return err
	}
	w.spec.Wrapper, err = args(program, w.spec.Policy, w.spec.Entries, keeper)
	return err
}

// maxDoors is how many doors walls may have.
const maxDoors = 32

// firstDoor is the port of the first door whose port the wall chooses, where
// nobody else can have taken it.
const firstDoor = 20801

// placeDoors says where the doors stand, and opens those that are outside.
func (w *Walls) placeDoors() error {
	for i, d := range w.doors {
		host, port, err := net.SplitHostPort(d.Addr)
		if err != nil {
			return fmt.Errorf("the door %s: %w", d.Addr, err)
		}
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			return fmt.Errorf("the door %s: it must have a loopback address, such as 127.0.0.1", d.Addr)
		}
		if port == "0" && w.spec.ownNet() {
			d.Addr = net.JoinHostPort(host, fmt.Sprint(firstDoor+i))
		}
		if port == "0" && !w.spec.ownNet() {
			l, err := openOutside(d)
			if err != nil {
				return err
			}
			w.host = append(w.host, l)
			d.Addr = l.Addr().String()
		}
		w.spec.Doors = append(w.spec.Doors, d.Addr)
	}
	return nil
}

// Grade says what the walls reached.
func (w *Walls) Grade() Grade { return w.grade }

// DoorAddr is where commands find a door of the policy, by its index.
func (w *Walls) DoorAddr(i int) string { return w.spec.Doors[i] }

// Settled are the protected paths that commands of an earlier process had
// changed, which ended before it could put them back, and that Build put back.
func (w *Walls) Settled() []Restored { return w.settled }

// Close closes the doors, and lets go of what is protected. No command may run
// any more.
func (w *Walls) Close() error {
	for _, l := range w.host {
		l.Close()
	}
	return w.guard.close()
}

// try builds the walls once around nothing.
func (w *Walls) try(ctx context.Context) error {
	l, err := w.start(Command{Dir: "/"}, nil)
	if err != nil {
		return &WallError{Wall: w.spec.Wall, Reason: "it cannot be started", Err: err}
	}
	stop := context.AfterFunc(ctx, l.control.hangUp)
	defer stop()
	select {
	case <-l.over:
	case <-time.After(trying):
	}
	l.end()
	l.streams.finish(lull)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.ready == nil {
		return w.cannot(l.excuse())
	}
	w.grade = w.spec.grade(*l.ready)
	return nil
}

// cannot says why the walls did not come up, and what to do about it.
func (w *Walls) cannot(reason string) error {
	next := w.spec.Wall.advice()
	if w.spec.Wall == Bubblewrap {
		var likely string
		likely, next = whyNoNamespaces(w.spec.Wrapper[0])
		reason = likely + "; " + reason
	}
	return &WallError{Wall: w.spec.Wall, Reason: reason, Next: next}
}

// trying is how long walls may take to come up on the busiest machine.
const trying = 30 * time.Second

// advice is what to do about a wall that did not come up.
func (wall Wall) advice() string {
	switch wall {
	case Hidden:
		return "user namespaces may be switched off here (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or this is a container that does not allow them; try --sandbox landlock"
	case Firejail:
		return "use the wall hidden or bwrap; firejail must be setuid, 0.9.72 or later, allow this user (man firejail-users), and not run in a sandbox already"
	case Landlock:
		return "Landlock needs Linux 5.13 and has to be switched on (lsm=landlock,… on the kernel's command line); try --sandbox hidden"
	}
	return ""
}

// Run runs a command behind the walls; see [Runner]. Its error is a
// [*StartError], the context's where that was done before the start, or one
// that says that the walls did not come up.
func (w *Walls) Run(ctx context.Context, c Command) (Result, error) {
	return w.run(ctx, c, func(underway, dialer) {})
}

// Start is Run for a command that is held open, such as a server: it returns
// when the command runs, or is over already, and what Run would have returned
// comes with [Running.Wait]. Its error is Run's where the command could not be
// started. The context, the command's time and the policy's end it as they do
// with Run, and so does the end of this process; the walls must not be closed
// before. While it runs, what is protected is put back, as it was at its start,
// after each command of the same walls.
func (w *Walls) Start(ctx context.Context, c Command) (*Running, error) {
	return hold(func(up starting) (Result, error) { return w.run(ctx, c, up) })
}

func (w *Walls) run(ctx context.Context, c Command, up starting) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, fmt.Errorf("start %s: %w", first(c.Argv), context.Cause(ctx))
	}
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return Result{}, &StartError{Program: "a command", Err: errNoProgram}
	}
	if c.Dir == "" {
		return Result{}, &StartError{Program: c.Argv[0], Err: errNoDir}
	}
	if err := checkStdin(c.Stdin); err != nil {
		return Result{}, &StartError{Program: c.Argv[0], Err: err}
	}
	c.Timeout = lower(c.Timeout, w.spec.Policy.Limits.Time)
	c.MaxOutput = lower(cmp.Or(c.MaxOutput, DefaultMaxOutput), w.spec.Policy.Limits.Output)
	return w.guard.around(func() (Result, error) {
		began := time.Now()
		result, err := w.oversee(ctx, c, up)
		result.Duration = time.Since(began)
		return result, err
	})
}

// lower is the lower of two limits, of which 0 is none.
func lower[T int64 | time.Duration](a, b T) T {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// unheld are the entries that these walls cannot hold against a command, so
// that what it did to them has to be undone.
func (w *Walls) unheld() []entry {
	if !w.spec.mounted() {
		return w.spec.Entries
	}
	return slices.DeleteFunc(slices.Clone(w.spec.Entries), func(e entry) bool { return e.Access != write && !e.Absent && e.Link == "" })
}

// oversee starts a command and stays with it to its end.
func (w *Walls) oversee(ctx context.Context, c Command, up starting) (Result, error) {
	l, err := w.start(c, up)
	if err != nil {
		return Result{}, &StartError{Program: c.Argv[0], Reason: "its walls cannot be built", Err: err}
	}
	result := None{Grace: w.grace}.supervise(ctx, c, l, l.streams)
	if start, ok := errors.AsType[*StartError](l.failed); ok {
		return Result{}, start
	}
	if l.failed != nil && ctx.Err() == nil {
		return Result{}, w.cannot(l.failed.Error())
	}
	result.OverLimit = l.result.Over
	return result, nil
}

// walled is a command behind walls, as seen from outside.
type walled struct {
	*tree    // the outer helper and all below it
	control  control
	streams  *streams
	doors    []net.Listener
	requests requests // for sockets of its network

	apart  bool          // the command's processes cannot outlive their namespace
	over   chan struct{} // closed when there is nothing more to wait for
	ready  *reached
	result ended
	failed error
	told   bool // the helper said how the command ended
	once   sync.Once
}

// apart reports whether commands have a process namespace of their own, with
// which the kernel ends all of them.
func (s spec) apart() bool { return s.Wall == Hidden || s.Wall == Bubblewrap || s.Wall == Firejail }

// start starts the helper that builds the walls and runs a command, or none. Up
// may be nil where there is none.
func (w *Walls) start(c Command, up starting) (*walled, error) {
	s := w.spec
	s.Argv, s.Dir, s.Env, s.Stdin = c.Argv, c.Dir, c.Env, c.Stdin != nil
	file, err := specFile(s)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	defer self.Close()
	ours, theirs, err := newControl()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{helperName, "outer"}, Dir: "/", Env: []string{}, ExtraFiles: []*os.File{file, theirs, self}}
	l := &walled{control: ours, apart: s.apart(), over: make(chan struct{})}
	if l.streams, err = newStreams(cmd, c); err != nil {
		ours.close()
		return nil, err
	}
	l.tree, err = startFree(cmd)
	l.streams.started(err)
	if err != nil {
		l.streams.finish(0)
		ours.close()
		return nil, err
	}
	reach := dialLoopback
	if s.ownNet() {
		reach = l.dial
	}
	go l.listen(w.doors, sync.OnceFunc(func() { up(l, reach) }))
	return l, nil
}

// listen hears what the helper says until there is nothing more to hear.
func (l *walled) listen(doors []Door, runs func()) {
	defer close(l.over)
	for {
		m, fds, err := l.control.receive()
		switch {
		case err != nil:
			return
		case m.Doors > 0:
			l.openDoors(doors, fds)
		case m.Runs:
			runs()
		case m.Given != nil:
			l.requests.answer(*m.Given, fds)
		case m.Ready != nil:
			l.ready = m.Ready
			return
		case m.Fail != nil:
			l.failed = m.Fail.err()
			return
		case m.Exit != nil:
			l.result, l.told = *m.Exit, true
			return
		}
	}
}

// openDoors answers at the doors that the keeper opened inside.
func (l *walled) openDoors(doors []Door, fds []int) {
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "door")
		listener, err := net.FileListener(f)
		f.Close()
		if err != nil || i >= len(doors) {
			continue
		}
		l.doors = append(l.doors, listener)
		go serve(listener, doors[i].Serve)
	}
}

// excuse is why the walls did not come up.
func (l *walled) excuse() string {
	if l.failed != nil {
		return l.failed.Error()
	}
	said := strings.TrimSpace(string(l.streams.stderr.kept))
	if said == "" {
		return "its helper ended without a word"
	}
	return said
}

// exits is closed when the command has ended.
func (l *walled) exits() <-chan struct{} { return l.over }

// ask asks the command's group to end.
func (l *walled) ask() { _ = l.control.send(message{Ask: true}) }

// kill ends everything behind the walls.
func (l *walled) kill() { l.control.hangUp() }

// groupLives reports whether the command or another process of its group has
// not ended yet.
func (l *walled) groupLives() bool {
	select {
	case <-l.over:
		return false
	default:
		return true
	}
}

// end ends everything behind the walls, the helpers too, and says how the
// command ended.
func (l *walled) end() Result {
	l.control.hangUp()
	timer := time.NewTimer(sweeping)
	defer timer.Stop()
	select {
	case <-l.tree.exited:
	case <-timer.C:
	}
	if l.apart && l.clean() {
		l.tree.reap()
	} else {
		l.tree.end()
	}
	<-l.over
	l.requests.end()
	for _, d := range l.doors {
		d.Close()
	}
	l.once.Do(l.control.close)
	if !l.told {
		return Result{Exit: -1, Signal: unix.SIGKILL.String()}
	}
	return Result{Exit: l.result.Exit, Signal: l.result.Signal}
}

// clean reports whether the helper ended in order, having ended all the others.
func (l *walled) clean() bool {
	select {
	case <-l.tree.exited:
		return l.tree.status.Exit == 0 && l.tree.status.Signal == ""
	default:
		return false
	}
}
