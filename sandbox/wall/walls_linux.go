package wall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"hone/sandbox"
	"hone/sandbox/internal/kernel"
	"hone/sandbox/internal/process"
	"hone/sandbox/putback"
)

// Walls is the runner whose commands stand behind walls. It is safe for
// concurrent use.
type Walls struct {
	spec  spec
	grade sandbox.Grade
	doors []sandbox.Door
	host  []net.Listener // doors of walls without a network of their own

	guard   *putback.Guard
	settled []sandbox.Restored
	grace   time.Duration // see [None.Grace]
}

var _ sandbox.Runner = (*Walls)(nil)

// Build builds walls by a policy, and tries that they can be had: its error is
// a [*WallError] where they cannot, and never a silent step down to weaker
// ones. Only Auto chooses, and Grade says what it chose and why. [Helper] must
// be the first call of the program's main.
func Build(ctx context.Context, wall sandbox.Wall, p sandbox.Policy) (*Walls, error) {
	if wall == sandbox.Auto {
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
func strongest(ctx context.Context, p sandbox.Policy) (*Walls, error) {
	var why []string
	for _, wall := range []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Landlock} {
		w, err := Build(ctx, wall, p)
		if err == nil {
			w.grade.Why = strings.Join(why, "; ")
			return w, nil
		}
		var cannot *sandbox.WallError
		if !errors.As(err, &cannot) {
			return nil, err
		}
		why = append(why, cannot.Error())
	}
	return nil, &sandbox.WallError{Wall: sandbox.Auto, Reason: strings.Join(why, "; ")}
}

// plan makes walls that nobody has tried yet.
func plan(wall sandbox.Wall, p sandbox.Policy) (*Walls, error) {
	entries, err := p.Entries()
	if err != nil {
		return nil, fmt.Errorf("the policy of the walls: %w", err)
	}
	if len(p.Doors) > maxDoors {
		return nil, fmt.Errorf("the policy of the walls: more than %d doors", maxDoors)
	}
	w := &Walls{doors: p.Doors}
	p.Doors = nil
	w.spec = spec{Wall: wall, Policy: p, Entries: entries, Outside: kernel.NamespaceIDs()}
	switch wall {
	case sandbox.Hidden, sandbox.Landlock, sandbox.NoWall:
	case sandbox.Bubblewrap, sandbox.Firejail:
		err = w.wrap()
	default:
		err = &sandbox.WallError{Wall: wall, Reason: "there is none of that name", Next: "auto, hidden, bwrap, landlock, firejail or none"}
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
	if w.settled, err = putback.Settle(aside); err != nil {
		return err
	}
	w.guard, err = putback.New(w.unheld(), aside)
	return err
}

// wrap finds the program that builds the walls.
func (w *Walls) wrap() error {
	keeper := []string{selfPath, helperName, "keeper"}
	find, args := findBwrap, bwrapArgs
	if w.spec.Wall == sandbox.Firejail {
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
func (w *Walls) Grade() sandbox.Grade { return w.grade }

// DoorAddr is where commands find a door of the policy, by its index.
func (w *Walls) DoorAddr(i int) string { return w.spec.Doors[i] }

// Settled are the protected paths that commands of an earlier process had
// changed, which ended before it could put them back, and that Build put back.
func (w *Walls) Settled() []sandbox.Restored { return w.settled }

// Close closes the doors, and lets go of what is protected. No command may run
// any more.
func (w *Walls) Close() error {
	for _, l := range w.host {
		l.Close()
	}
	return w.guard.Close()
}

// try builds the walls once around nothing.
func (w *Walls) try(ctx context.Context) error {
	l, err := w.start(sandbox.Command{Dir: "/"}, nil)
	if err != nil {
		return &sandbox.WallError{Wall: w.spec.Wall, Reason: "it cannot be started", Err: err}
	}
	stop := context.AfterFunc(ctx, l.control.hangUp)
	defer stop()
	select {
	case <-l.over:
	case <-time.After(trying):
	}
	l.End()
	l.streams.Finish(process.Lull)
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
	next := advice(w.spec.Wall)
	if w.spec.Wall == sandbox.Bubblewrap {
		var likely string
		likely, next = whyNoNamespaces(w.spec.Wrapper[0])
		reason = likely + "; " + reason
	}
	return &sandbox.WallError{Wall: w.spec.Wall, Reason: reason, Next: next}
}

// trying is how long walls may take to come up on the busiest machine.
const trying = 30 * time.Second

// advice is what to do about a wall that did not come up.
func advice(wall sandbox.Wall) string {
	switch wall {
	case sandbox.Hidden:
		return "user namespaces may be switched off here (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or this is a container that does not allow them; try --sandbox landlock"
	case sandbox.Firejail:
		return "use the wall hidden or bwrap; firejail must be setuid, 0.9.72 or later, allow this user (man firejail-users), and not run in a sandbox already"
	case sandbox.Landlock:
		return kernel.LandlockAdvice
	}
	return ""
}

// Run runs a command behind the walls; see [Runner]. Its error is a
// [*StartError], the context's where that was done before the start, or one
// that says that the walls did not come up.
func (w *Walls) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return w.run(ctx, c, func(<-chan struct{}, sandbox.Dialer) {})
}

// Start is Run for a command that is held open, such as a server: it returns
// when the command runs, or is over already, and what Run would have returned
// comes with [Running.Wait]. Its error is Run's where the command could not be
// started. The context, the command's time and the policy's end it as they do
// with Run, and so does the end of this process; the walls must not be closed
// before. While it runs, what is protected is put back, as it was at its start,
// after each command of the same walls.
func (w *Walls) Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error) {
	return sandbox.Hold(func(up sandbox.Started) (sandbox.Result, error) { return w.run(ctx, c, up) })
}

func (w *Walls) run(ctx context.Context, c sandbox.Command, up sandbox.Started) (sandbox.Result, error) {
	if err := c.Check(ctx); err != nil {
		return sandbox.Result{}, err
	}
	if err := checkStdin(c.Stdin); err != nil {
		return sandbox.Result{}, &sandbox.StartError{Program: c.Argv[0], Err: err}
	}
	c.Timeout = lower(c.Timeout, w.spec.Policy.Limits.Time)
	c.MaxOutput = lower(cmp.Or(c.MaxOutput, process.DefaultMaxOutput), w.spec.Policy.Limits.Output)
	return w.guard.Around(func() (sandbox.Result, error) {
		began := time.Now()
		result, err := w.oversee(ctx, c, up)
		result.Duration = time.Since(began)
		return result, err
	})
}

// checkStdin refuses what would lead a command out of its walls.
func checkStdin(from io.Reader) error {
	file, ok := from.(*os.File)
	if !ok {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return errors.New("its standard input is a folder, which would lead out of its walls")
	}
	return nil
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
func (w *Walls) unheld() []sandbox.Entry {
	if !w.spec.mounted() {
		return w.spec.Entries
	}
	return slices.DeleteFunc(slices.Clone(w.spec.Entries), func(e sandbox.Entry) bool { return e.Access != sandbox.AccessWrite && !e.Absent && e.Link == "" })
}

// oversee starts a command and stays with it to its end.
func (w *Walls) oversee(ctx context.Context, c sandbox.Command, up sandbox.Started) (sandbox.Result, error) {
	l, err := w.start(c, up)
	if err != nil {
		return sandbox.Result{}, &sandbox.StartError{Program: c.Argv[0], Reason: "its walls cannot be built", Err: err}
	}
	o := process.Supervise(ctx, l, l.streams, c.Timeout, w.grace)
	if start, ok := errors.AsType[*sandbox.StartError](l.failed); ok {
		return sandbox.Result{}, start
	}
	if l.failed != nil && ctx.Err() == nil {
		return sandbox.Result{}, w.cannot(l.failed.Error())
	}
	return sandbox.Result{
		Exit: o.Status, Signal: o.Signal, TimedOut: o.TimedOut, OverLimit: l.result.Over,
		Stdout: o.Stdout, Stderr: o.Stderr, Lost: o.Lost,
	}, nil
}
