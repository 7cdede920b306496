//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
)

// Helper does nothing here: walls are Linux's.
func Helper() {}

// Walls is the runner whose commands stand behind walls, of which there are
// none here.
type Walls struct {
	doors   []string // addresses
	host    []net.Listener
	guard   *guard
	settled []Restored
}

// Build builds NoWall; every other wall is an error, as they are Linux's.
func Build(_ context.Context, wall Wall, p Policy) (*Walls, error) {
	if wall != NoWall {
		return nil, &WallError{Wall: wall, Reason: fmt.Sprintf("walls are Linux's, and this is %s", runtime.GOOS), Next: "--sandbox none lets commands do whatever you may do"}
	}
	entries, err := p.view()
	if err != nil {
		return nil, fmt.Errorf("the policy of the walls: %w", err)
	}
	w := &Walls{}
	if err := w.placeDoors(p.Doors); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if w.settled, err = settle(p.Aside); err != nil {
		return nil, err
	}
	w.guard, err = newGuard(entries, p.Aside)
	return w, err
}

// placeDoors opens the doors whose port the walls choose. Others stand where a
// command finds what there is at that port anyway.
func (w *Walls) placeDoors(doors []Door) error {
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
func (w *Walls) Run(ctx context.Context, c Command) (Result, error) {
	return w.guard.around(func() (Result, error) { return None{}.Run(ctx, c) })
}

// Start is Run for a command that is held open; see [Running]. The walls must
// not be closed before it has ended.
func (w *Walls) Start(ctx context.Context, c Command) (*Running, error) {
	return hold(func(up starting) (Result, error) {
		return w.guard.around(func() (Result, error) {
			return None{}.run(ctx, c, func(t underway) { up(t, dialLoopback) })
		})
	})
}

// Settled are the protected paths that commands of an earlier process had
// changed, which ended before it could put them back, and that Build put back.
func (w *Walls) Settled() []Restored { return w.settled }

// Grade says that nothing is held back.
func (w *Walls) Grade() Grade { return Grade{Wall: NoWall, Level: LevelOpen, Net: "on"} }

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
	return w.guard.close()
}
