package wall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone/sandbox"
	"hone/sandbox/internal/kernel"
	"hone/sandbox/internal/process"
	"hone/sandbox/placeholder"
	"hone/sandbox/putback"
)

// Walls runs commands behind walls. It is safe for concurrent use.
type Walls struct {
	outside
	spec  spec
	serve []sandbox.Door // those of the policy
	grade sandbox.Grade
	grace time.Duration // see [sandbox.None]

	filled   []string          // the paths that did not exist when the walls were built, and have placeholders
	overlays []sandbox.Overlay // those of the policy that commands find
	ahead    ahead
	soon     bool // a command follows, whose helper starts while the walls are tried
}

var _ sandbox.Runner = (*Walls)(nil)

// Build builds walls from a policy and tries them once; NoWall, which cannot fail, is
// not tried. Its error is a [*sandbox.WallError] if they cannot be built here; it never
// falls back to a weaker wall. Only Auto chooses among walls, and Grade reports which one it
// chose and why. [Helper] must be the first call of the program's main.
func Build(ctx context.Context, wall sandbox.Wall, p sandbox.Policy) (*Walls, error) {
	return (*Early)(nil).Build(ctx, wall, p)
}

// Build is [Build] of walls whose first command uses the helper.
func (e *Early) Build(ctx context.Context, wall sandbox.Wall, p sandbox.Policy) (*Walls, error) {
	// A program without Helper would otherwise start itself without end.
	if _, ok := helperWork(os.Args); ok {
		return nil, errors.New("this program cannot build walls, because it does not call wall.Helper first in main")
	}
	if wall == sandbox.Auto {
		return e.buildAuto(ctx, p)
	}
	w, err := newWalls(wall, p)
	if err != nil {
		return nil, err
	}
	w.ahead.idle, w.soon = e.take(w.spec), e != nil
	err = w.try(ctx)
	if err == nil {
		return w, nil
	}
	w.Close()
	if len(w.overlays) > 0 && ctx.Err() == nil {
		p.Overlays = nil // perhaps only these cannot be mounted
		return e.Build(ctx, wall, p)
	}
	return nil, err
}

// It never chooses Firejail.
func (e *Early) buildAuto(ctx context.Context, p sandbox.Policy) (*Walls, error) {
	var why []string
	for _, wall := range []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap, sandbox.Landlock} {
		w, err := e.Build(ctx, wall, p)
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
	return nil, &sandbox.WallError{Wall: sandbox.Auto, Reason: strings.Join(why, "; "), Next: "install bubblewrap, or use a kernel with user namespaces or Landlock"}
}

// They have not been tried yet.
func newWalls(wall sandbox.Wall, p sandbox.Policy) (*Walls, error) {
	k, ok := kindOf(wall)
	if !ok {
		return nil, &sandbox.WallError{Wall: wall, Reason: "there is no wall of that name", Next: "use auto, hidden, bwrap, landlock, firejail or none"}
	}
	if k.args != nil && p.As != (sandbox.User{}) {
		return nil, &sandbox.WallError{Wall: wall, Reason: fmt.Sprintf("it cannot run commands as user %d, the owner of the project's folder", p.As.UID), Next: "run hone as that user, or use the hidden or landlock wall"}
	}
	entries, err := p.Entries()
	if err != nil {
		return nil, fmt.Errorf("read the policy of the walls: %w", err)
	}
	if len(p.Doors) > maxDoors {
		return nil, fmt.Errorf("the policy of the walls has more than %d doors", maxDoors)
	}
	w := &Walls{serve: p.Doors}
	p.Doors = nil
	w.spec = spec{Wall: wall, Policy: p, Entries: entries, Outside: kernel.NamespaceIDs()}
	if k.build != nil && os.Geteuid() == 0 {
		w.spec.Hidden = hiddenFrom(p.Records)
	}
	placeholders := w.cover()
	if k.args != nil {
		w.spec.Wrapper, err = wrapper(w.spec)
	}
	if err == nil {
		err = w.placeDoors(w.serve, w.spec.ownNet())
	}
	if err == nil {
		w.spec.Doors = w.doors
		w.placeholders, err = placeholder.New(p.Records, placeholders)
	}
	if err == nil {
		w.guard, err = putback.New(w.unprotected(), p.Aside)
	}
	if err == nil && k.overlays {
		err = w.overlay()
	}
	if err != nil {
		_ = w.Close()
	}
	return w, err
}

func wrapper(s spec) ([]string, error) {
	program, err := exec.LookPath(string(s.Wall))
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return nil, &sandbox.WallError{Wall: s.Wall, Reason: fmt.Sprintf("there is no program %s in PATH", s.Wall), Next: s.kind().install, Err: err}
	}
	return s.kind().args(program, s.Policy, s.Entries, []string{selfPath, helperName, "wrapped"})
}

// Close ends the helper that waits for a command, closes the doors and removes the
// records of placeholders. No command may be running.
func (w *Walls) Close() error {
	w.ahead.close()
	return w.outside.Close()
}

// Grade describes what the walls hold back.
func (w *Walls) Grade() sandbox.Grade { return w.grade }

// trialTime is how long walls may take to be built on a very busy machine.
const trialTime = 30 * time.Second

// Building walls without advice cannot fail.
func (w *Walls) try(ctx context.Context) error {
	if w.spec.kind().advice == nil {
		w.grade = w.spec.grade(kernel.Reached{})
		return ctx.Err()
	}
	_, err := w.protect(func() (sandbox.Result, error) { return sandbox.Result{}, w.tryOnce(ctx) })
	return err
}

func (w *Walls) tryOnce(ctx context.Context) error {
	s, unlock, err := w.lockLayers(w.spec)
	if err != nil {
		return &sandbox.WallError{Wall: w.spec.Wall, Reason: "there is no place for its overlays", Err: err}
	}
	defer unlock()
	l, err := retryKilled(ctx, func() (*walled, error) {
		l, err := w.start(s, sandbox.Command{Dir: "/"}, nil, nil)
		if err != nil {
			return nil, &sandbox.WallError{Wall: w.spec.Wall, Reason: "it cannot be started", Err: err}
		}
		stop := context.AfterFunc(ctx, l.control.hangUp)
		defer stop()
		if w.soon {
			w.Prepare()
		}
		select {
		case <-l.over:
		case <-time.After(trialTime):
		}
		l.End()
		l.streams.Finish(process.Lull)
		return l, nil
	})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.ready == nil {
		return w.unavailableError(l.failure())
	}
	w.grade = w.spec.grade(*l.ready)
	return nil
}

func (w *Walls) unavailableError(err error) error {
	e := &sandbox.WallError{Wall: w.spec.Wall, Err: err}
	if w.spec.kind().advice != nil {
		e.Reason, e.Next = w.spec.kind().advice(w.spec)
	}
	return e
}

// Run runs a command behind the walls; see [sandbox.Runner]. Its error is a
// [*sandbox.StartError], the context's if that was done before the start, or
// says that the walls could not be built.
func (w *Walls) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return w.run(ctx, c, func(<-chan struct{}, sandbox.Dialer) {})
}

// Start starts a command that stays open, such as a server. It returns when the
// command runs or has already ended; [sandbox.Running] then returns what Run
// would have returned. Its error is Run's if the command could not be started.
// The context, the time limits of the command and the policy, and the end of
// this process stop the command. Close the walls after it has ended. While it
// runs, each command of the same walls restores the protected paths to their
// state at its start.
func (w *Walls) Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error) {
	return sandbox.Start(func(up sandbox.Started) (sandbox.Result, error) { return w.run(ctx, c, up) })
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
	return w.protect(func() (sandbox.Result, error) {
		began := time.Now()
		result, err := w.supervise(ctx, c, up)
		result.Duration = time.Since(began)
		return result, err
	})
}

// A command could leave its walls through such an input.
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
		return errors.New("its standard input is a directory, through which it could leave its walls")
	}
	return nil
}

// 0 means no limit.
func lower[T int64 | time.Duration](a, b T) T {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Changes to these must be undone after a command, because the walls cannot protect them.
func (w *Walls) unprotected() []sandbox.Entry {
	return slices.DeleteFunc(slices.Clone(w.spec.Entries), func(e sandbox.Entry) bool {
		mounted := w.spec.kind().mounted && e.Access != sandbox.AccessWrite && !e.Absent && e.Link == ""
		return mounted || slices.Contains(w.filled, e.Path)
	})
}

func (w *Walls) start(s spec, c sandbox.Command, doors []sandbox.Door, up sandbox.Started) (*walled, error) {
	h := w.ahead.take()
	if h == nil {
		var err error
		if h, err = newHelper(s); err != nil {
			return nil, err
		}
	}
	return start(h, s, c, doors, up)
}

// once runs a helper to its end. It is called again if something killed the helper before the command began.
func retryKilled(ctx context.Context, once func() (*walled, error)) (*walled, error) {
	l, err := once()
	if err == nil && l.wasKilled() && ctx.Err() == nil {
		l, err = once()
	}
	return l, err
}

func (w *Walls) supervise(ctx context.Context, c sandbox.Command, up sandbox.Started) (sandbox.Result, error) {
	s, err := w.currentSpec()
	if err != nil {
		return sandbox.Result{}, err
	}
	s, unlock, err := w.lockLayers(s)
	if err != nil {
		return sandbox.Result{}, w.unavailableError(err)
	}
	defer unlock()
	var o process.Outcome
	l, err := retryKilled(ctx, func() (*walled, error) {
		l, err := w.start(s, c, w.serve, up)
		if err != nil {
			return nil, w.unavailableError(err)
		}
		o = process.Supervise(ctx, l, l.streams, c.Timeout, w.grace)
		return l, nil
	})
	if err != nil {
		return sandbox.Result{}, err
	}
	if start, ok := errors.AsType[*sandbox.StartError](l.failed); ok {
		return sandbox.Result{}, start
	}
	if (l.failed != nil || !l.starts && !o.TimedOut) && ctx.Err() == nil {
		return sandbox.Result{}, w.unavailableError(l.failure())
	}
	return sandbox.Result{
		Exit: o.Status, Signal: o.Signal, TimedOut: o.TimedOut, OverLimit: l.result.Over,
		Stdout: o.Stdout, Stderr: o.Stderr, Discarded: o.Discarded,
	}, nil
}
