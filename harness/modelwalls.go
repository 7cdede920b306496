package harness

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"hone/sandbox"
	"hone/sandbox/wall"
)

// modelWalls are walls for the commands that a model asks for, where files of the user's
// own tools exist (ruling G26). They differ from those of the check, which is the
// user's and may write such files, only in that these are read-only.
type modelWalls struct {
	readOnly []string // absolute; if there are none, the commands are behind the check's walls
	keeper   *sandbox.Keeper

	mu    sync.Mutex
	walls *wall.Walls // nil before their first command
}

func (e *Enclosed) forModel(ctx context.Context) (*wall.Walls, error) {
	m := &e.guarded
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.walls != nil || len(m.readOnly) == 0 {
		return cmp.Or(m.walls, e.Walls), nil
	}
	p := e.policy
	p.Read = slices.Concat(p.Read, m.readOnly)
	p.Doors = slices.Clone(p.Doors)
	for i := range p.Doors {
		p.Doors[i].Addr = e.DoorAddr(i) // where the commands were told that it is
	}
	built, err := wall.Build(ctx, e.Grade().Wall, p)
	if err != nil {
		return nil, err
	}
	built.SetKeeper(m.keeper)
	m.walls = built
	return built, nil
}

// The next command is probably a model's.
func (e *Enclosed) prepare() {
	e.guarded.mu.Lock()
	defer e.guarded.mu.Unlock()
	cmp.Or(e.guarded.walls, e.Walls).Prepare()
}

func (m *modelWalls) close() error {
	if m.walls == nil {
		return nil
	}
	return m.walls.Close()
}
