//go:build !linux

package wall

import (
	"context"
	"fmt"
	"runtime"

	"hone/sandbox"
	"hone/sandbox/internal/process"
	"hone/sandbox/putback"
)

// Helper is that of [Keeper]: walls need Linux, and have no helpers here.
func Helper() { process.Helper() }

// Kinds returns nil: this system has no walls.
func Kinds() []sandbox.Wall { return nil }

// Walls runs commands. On this system there are no walls around them.
type Walls struct {
	outside
	none None
	env  []string
}

// Build builds NoWall. Every other wall is an error, because walls need Linux.
func Build(_ context.Context, p sandbox.Policy) (*Walls, error) {
	if p.Wall != sandbox.NoWall {
		return nil, &sandbox.WallError{Wall: p.Wall, Reason: fmt.Sprintf("walls need Linux, and this is %s", runtime.GOOS), Next: "without walls (none) commands may do whatever you may do"}
	}
	entries, err := p.Entries()
	if err != nil {
		return nil, fmt.Errorf("read the policy of the walls: %w", err)
	}
	w := &Walls{env: p.Env}
	if err = w.placeDoors(p.Doors, false); err == nil {
		w.guard, _, err = putback.New(entries, p)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Walls) run(ctx context.Context, c sandbox.Command, up sandbox.Started) (sandbox.Result, error) {
	return w.guard.Around(func() (sandbox.Result, error) { return w.none.run(ctx, c, up) })
}

// SetKeeper sets what ends the commands if this process is killed; nil means that they may
// outlive it.
func (w *Walls) SetKeeper(k *Keeper) { w.none.Keeper = k }

// Env returns the environment of the policy.
func (w *Walls) Env() []string { return w.env }

// Grade reports that nothing is held back.
func (w *Walls) Grade() sandbox.Grade {
	return sandbox.Grade{Wall: sandbox.NoWall, Net: "on"}
}

func (n None) run(ctx context.Context, c sandbox.Command, started sandbox.Started) (sandbox.Result, error) {
	if err := c.Check(ctx); err != nil {
		return sandbox.Result{}, err
	}
	cmd, err := c.Exec()
	if err != nil {
		return sandbox.Result{}, err
	}
	streams, err := process.NewStreams(cmd, c)
	if err != nil {
		return sandbox.Result{}, &sandbox.StartError{Program: c.Argv[0], Reason: "cannot make its streams", Err: err}
	}
	t, err := process.Start(cmd, n.Keeper)
	streams.Started(err)
	if err != nil {
		streams.Finish(0)
		return sandbox.Result{}, sandbox.NewStartError(c.Argv[0], cmd.Path, err)
	}
	started(t.Exited(), dialLoopback)
	return process.Supervise(ctx, t, streams, c.Timeout, n.Grace), nil
}
