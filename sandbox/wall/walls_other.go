//go:build !linux

package wall

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"

	"hone/sandbox"
	"hone/sandbox/putback"
)

// Helper does nothing here: walls are Linux's.
func Helper() {}

// Walls is the runner whose commands stand behind walls, of which there are
// none here.
type Walls struct {
	doors   []string // addresses
	host    []net.Listener
	guard   *putback.Guard
	settled []sandbox.Restored
}

// Build builds NoWall; every other wall is an error, as they are Linux's.
func Build(_ context.Context, wall sandbox.Wall, p sandbox.Policy) (*Walls, error) {
	if wall != sandbox.NoWall {
		return nil, &sandbox.WallError{Wall: wall, Reason: fmt.Sprintf("walls are Linux's, and this is %s", runtime.GOOS), Next: "--sandbox none lets commands do whatever you may do"}
	}
	entries, err := p.Entries()
	if err != nil {
		return nil, fmt.Errorf("the policy of the walls: %w", err)
	}
	w := &Walls{}
	if err := w.placeDoors(p.Doors); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if w.settled, err = putback.Settle(p.Aside); err != nil {
		return nil, err
	}
	w.guard, err = putback.New(entries, p.Aside)
	return w, err
}

// placeDoors opens the doors whose port the walls choose. Others stand where a
// command finds what there is at that port anyway.
func (w *Walls) placeDoors(doors []sandbox.Door) error {
	for _, d := range doors {
		if _, port, _ := net.SplitHostPort(d.Addr); port == "0" {
			l, err := openOutside(d)
			if err != nil {
				return err
			}
			w.host = append(w.host, l)
			d.Addr = l.Addr().String()
		}
		w.doors = append(w.doors, d.Addr)
	}
	return nil
}

// Run runs a command, and puts back what it must not have changed; see
// [Runner].
func (w *Walls) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return w.guard.Around(func() (sandbox.Result, error) { return sandbox.None{}.Run(ctx, c) })
}

// Start is Run for a command that is held open; see [Running]. The walls must
// not be closed before it has ended.
func (w *Walls) Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error) {
	return sandbox.Hold(func(started sandbox.Started) (sandbox.Result, error) {
		return w.guard.Around(func() (sandbox.Result, error) { return sandbox.None{}.RunNotify(ctx, c, started) })
	})
}

// Settled are the protected paths that commands of an earlier process had
// changed, which ended before it could put them back, and that Build put back.
func (w *Walls) Settled() []sandbox.Restored { return w.settled }

// Grade says that nothing is held back.
func (w *Walls) Grade() sandbox.Grade {
	return sandbox.Grade{Wall: sandbox.NoWall, Level: sandbox.LevelOpen, Net: "on"}
}

// DoorAddr is where commands find a door of the policy, by its index.
func (w *Walls) DoorAddr(i int) string { return w.doors[i] }

// Close closes the doors, and lets go of what is protected. No command may run
// any more.
func (w *Walls) Close() error {
	for _, l := range w.host {
		l.Close()
	}
	if w.guard == nil {
		return nil
	}
	return w.guard.Close()
}
