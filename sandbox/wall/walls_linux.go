package wall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/kernel"
	"hone/sandbox/internal/process"
	"hone/sandbox/putback"
)

// Walls runs commands behind walls. It is safe for concurrent use.
type Walls struct {
	outside
	spec  spec
	grade sandbox.Grade
	grace time.Duration // see [None]

	overlays []sandbox.Overlay // those of the policy that commands find
}

// Build builds the walls of a policy and tries them once; NoWall, which cannot fail, is
// not tried. Its error is a [*sandbox.WallError] if they cannot be built here; it never
// falls back to a weaker wall. Only Auto and AutoMounts choose among walls, and Grade reports which one it
// chose and why. [Helper] must be the first call of the program's main.
func Build(ctx context.Context, p sandbox.Policy) (*Walls, error) {
	if p.Wall == sandbox.Auto || p.Wall == sandbox.AutoMounts {
		return buildAuto(ctx, p)
	}
	w, err := newWalls(p)
	if err != nil {
		return nil, err
	}
	if err = w.try(ctx); err == nil {
		return w, nil
	}
	w.Close()
	if len(w.overlays) > 0 && ctx.Err() == nil {
		p.Overlays = nil // perhaps only these cannot be mounted
		return Build(ctx, p)
	}
	return nil, err
}

// It never chooses Firejail.
func buildAuto(ctx context.Context, p sandbox.Policy) (*Walls, error) {
	auto := p.Wall
	var why []string
	for _, p.Wall = range Kinds() {
		if p.Wall == sandbox.Firejail || auto == sandbox.AutoMounts && !p.Wall.Mounts() {
			continue
		}
		w, err := Build(ctx, p)
		if err == nil {
			w.grade.Why = strings.Join(why, "; ")
			return w, nil
		}
		var unavailable *sandbox.WallError
		if !errors.As(err, &unavailable) {
			return nil, err
		}
		why = append(why, unavailable.Error())
	}
	return nil, &sandbox.WallError{Wall: auto, Reason: strings.Join(why, "; "), Next: "install bubblewrap, or use a kernel with user namespaces or Landlock"}
}

// They have not been tried yet.
func newWalls(p sandbox.Policy) (*Walls, error) {
	wall := p.Wall
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.wall == wall })
	if i < 0 {
		return nil, &sandbox.WallError{Wall: wall, Reason: "there is no wall of that name", Next: "use auto, hidden, bwrap, landlock, firejail or none"}
	}
	k := kinds[i]
	if k.args != nil && p.As != (sandbox.User{}) {
		return nil, &sandbox.WallError{Wall: wall, Reason: fmt.Sprintf("it cannot run commands as user %d, the owner of the project's folder", p.As.UID), Next: "run hone as that user, or use the hidden or landlock wall"}
	}
	program := ""
	if k.args != nil { // looked up once, before any command runs
		var err error
		if program, err = sandbox.FindProgram(string(wall), os.Environ(), slices.Concat(p.Write, []string{p.Tree})...); err != nil {
			return nil, &sandbox.WallError{Wall: wall, Reason: fmt.Sprintf("there is no program %s in PATH", wall), Next: k.install, Err: err}
		}
	}
	entries, err := p.Entries()
	if err != nil {
		return nil, fmt.Errorf("read the policy of the walls: %w", err)
	}
	if len(p.Doors) > maxDoors {
		return nil, fmt.Errorf("the policy of the walls has more than %d doors", maxDoors)
	}
	w := &Walls{spec: spec{program: program, Policy: p, Outside: kernel.NamespaceIDs()}}
	err = w.placeDoors(p.Doors, w.spec.ownNet())
	if err == nil {
		w.spec.Policy.Doors = w.doors
		w.guard, w.spec.Entries, err = putback.New(entries, p)
	}
	if err == nil && wall == sandbox.Hidden {
		err = w.overlay()
	}
	if err != nil {
		w.Close()
	}
	return w, err
}

// Grade describes what the walls hold back.
func (w *Walls) Grade() sandbox.Grade { return w.grade }

// trialTime is how long walls may take to be built on a very busy machine.
const trialTime = 30 * time.Second

// Without walls nothing can fail.
func (w *Walls) try(ctx context.Context) error {
	if w.spec.Policy.Wall == sandbox.NoWall {
		w.grade = w.spec.grade(sandbox.Grade{})
		return ctx.Err()
	}
	_, err := w.guard.Around(again(func() (sandbox.Result, error) {
		l, unlock, err := w.start(sandbox.Command{Dir: "/"}, nil)
		if err != nil {
			return sandbox.Result{}, err
		}
		defer unlock()
		stop := context.AfterFunc(ctx, l.control.hangUp)
		defer stop()
		select {
		case <-l.over:
		case <-time.After(trialTime):
		}
		l.End()
		l.streams.Finish(process.Lull)
		switch {
		case ctx.Err() != nil:
			return sandbox.Result{}, context.Cause(ctx)
		case l.ready == nil:
			return sandbox.Result{}, w.spec.unavailable(l.failure())
		}
		w.grade = w.spec.grade(*l.ready)
		return sandbox.Result{}, nil
	}))
	return err
}

// again wraps f so that it is retried once if the supervisor was killed before it started the command.
func again(f func() (sandbox.Result, error)) func() (sandbox.Result, error) {
	return func() (sandbox.Result, error) {
		result, err := f()
		if errors.Is(err, errSilent) {
			return f()
		}
		return result, err
	}
}

// Its layers are the command's until unlock is called, which must be after all its processes have ended.
func (w *Walls) start(c sandbox.Command, up sandbox.Started) (l *walled, unlock func(), err error) {
	s, err := w.spec.current()
	if err != nil {
		return nil, nil, err
	}
	if s, unlock, err = w.lockLayers(s); err == nil {
		if l, err = start(s, c, up); err == nil {
			return l, unlock, nil
		}
		unlock()
	}
	return nil, nil, w.spec.unavailable(err)
}

func (w *Walls) run(ctx context.Context, c sandbox.Command, up sandbox.Started) (sandbox.Result, error) {
	if err := c.Check(ctx); err != nil {
		return sandbox.Result{}, err
	}
	if file, ok := c.Stdin.(*os.File); ok {
		info, err := file.Stat()
		if err == nil && info.IsDir() {
			err = errors.New("its standard input is a directory, through which it could leave its walls")
		}
		if err != nil {
			return sandbox.Result{}, &sandbox.StartError{Program: c.Argv[0], Err: err}
		}
	}
	supervise := func() (sandbox.Result, error) { return w.supervise(ctx, c, up) }
	if c.Stdin == nil { // otherwise the first supervisor may have read some of it
		supervise = again(supervise)
	}
	return w.guard.Around(supervise)
}

func (w *Walls) supervise(ctx context.Context, c sandbox.Command, up sandbox.Started) (sandbox.Result, error) {
	l, unlock, err := w.start(c, up)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer unlock()
	r := process.Supervise(ctx, l, l.streams, c.Timeout, w.grace)
	if start, ok := errors.AsType[*sandbox.StartError](l.failed); ok {
		return sandbox.Result{}, start
	}
	if (l.failed != nil || !l.starts && !r.TimedOut) && ctx.Err() == nil {
		return sandbox.Result{}, w.spec.unavailable(l.failure())
	}
	return r, nil
}

// SetKeeper sets what marks the commands; nil means that nothing does. Call it before the first one.
func (w *Walls) SetKeeper(k *Keeper) { w.spec.Place = k.Place() }

func (n None) run(ctx context.Context, c sandbox.Command, started sandbox.Started) (sandbox.Result, error) {
	if err := cmp.Or(n.As.Check(), c.Check(ctx)); err != nil {
		return sandbox.Result{}, err
	}
	dir, err := filepath.Abs(c.Dir) // the supervisor starts in another directory
	if err != nil {
		return sandbox.Result{}, err
	}
	c.Dir = dir
	w := Walls{grace: n.Grace, spec: spec{Place: n.Keeper.Place(), Policy: sandbox.Policy{Wall: sandbox.NoWall, As: n.As, Limits: sandbox.Limits{Processes: -1}}}}
	return w.run(ctx, c, started)
}

// maxDial is how long a server whose queue is full keeps a connection waiting.
const maxDial = 30 * time.Second

// connect connects to a port of this process's network, and sends the connection.
func connect(answer control, port int) {
	defer answer.close()
	ctx, cancel := context.WithTimeout(context.Background(), maxDial)
	defer cancel()
	conn, err := dialLoopback(ctx, port)
	var socket *os.File
	if err == nil {
		defer conn.Close()
		socket, err = conn.(*net.TCPConn).File()
	}
	if err != nil {
		_ = answer.send(message{Fail: failureOf(err)})
		return
	}
	defer socket.Close()
	_ = answer.send(message{}, int(socket.Fd())) // fails only if the caller no longer waits
}

// raiseLoopback raises the loopback interface of this process's network namespace.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
