package wall

import (
	"cmp"
	"context"
	"path/filepath"

	"hone/sandbox"
)

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
