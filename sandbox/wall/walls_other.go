//go:build !linux

package wall

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"hone/sandbox"
	"hone/sandbox/putback"
)

// Helper is that of [sandbox.Keeper]: walls need Linux, and have no helpers here.
func Helper() { sandbox.Helper() }

// Kinds returns nil: this system has no walls.
func Kinds() []sandbox.Wall { return nil }

// Walls runs commands. On this system there are no walls around them.
type Walls struct {
	outside
	none sandbox.None
}

// Build builds NoWall. Every other wall is an error, because walls need Linux.
func Build(_ context.Context, wall sandbox.Wall, p sandbox.Policy) (*Walls, error) {
	if wall != sandbox.NoWall {
		return nil, &sandbox.WallError{Wall: wall, Reason: fmt.Sprintf("walls need Linux, and this is %s", runtime.GOOS), Next: "without walls (none) commands may do whatever you may do"}
	}
	entries, err := p.Entries()
	if err != nil {
		return nil, fmt.Errorf("read the policy of the walls: %w", err)
	}
	w := &Walls{}
	if err = w.placeDoors(p.Doors, false); err == nil {
		w.guard, err = putback.New(entries, p.Aside)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Early is empty: this system has no helpers.
type Early struct{}

// StartEarly returns nil.
func StartEarly(sandbox.Wall, sandbox.Policy) *Early { return nil }

// Build is [Build].
func (*Early) Build(ctx context.Context, wall sandbox.Wall, p sandbox.Policy) (*Walls, error) {
	return Build(ctx, wall, p)
}

// Close does nothing.
func (*Early) Close() {}

// Run runs a command and restores protected paths that it changed; see
// [sandbox.Runner].
func (w *Walls) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return w.protect(func() (sandbox.Result, error) { return w.none.Run(ctx, c) })
}

// Start starts a command that stays open; see [sandbox.Running]. Close the walls
// after it has ended.
func (w *Walls) Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error) {
	return sandbox.Start(func(started sandbox.Started) (sandbox.Result, error) {
		return w.protect(func() (sandbox.Result, error) { return w.none.RunNotify(ctx, c, started) })
	})
}

// SetKeeper sets what ends the commands if this process is killed; nil means that they may
// outlive it.
func (w *Walls) SetKeeper(k *sandbox.Keeper) { w.none.Keeper = k }

// Prepare does nothing.
func (w *Walls) Prepare() {}

// OverlayEnv returns nil: there are no overlays.
func (w *Walls) OverlayEnv() []string { return nil }

// Grade reports that nothing is held back.
func (w *Walls) Grade() sandbox.Grade {
	return sandbox.Grade{Wall: sandbox.NoWall, Level: sandbox.LevelOpen, Net: "on"}
}
