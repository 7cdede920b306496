package harness

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"hone"
	"hone/check"
	"hone/internal/config"
	"hone/loop"
	"hone/sandbox"
	"hone/workspace"
	"hone/workspace/secret"
)

// OneCheck is a check that runs once and without a run: nothing is recorded or locked.
// Root, Command and Guard are required.
type OneCheck struct {
	Root    string // absolute path of the directory that is checked
	Command string
	Values  config.Values // of the settings
	Timeout time.Duration // 0 means that of [check.Program]
	Env     []string      // names of variables that the command gets although they contain keys
	Walls   loop.WallSettings
	Guard   *secret.Guard
	Live    io.Writer // receives the output as it is printed; may be nil
	// Walled is called before the command runs, with what the user should know of the
	// walls; nil ignores it.
	Walled func(g sandbox.Grade, notes []string)
}

// CheckOnce runs a check behind the walls of a loop, and returns all findings, also those
// that a model would not be sent. hints say what the command seems to have missed behind
// the walls; nil if it passed.
func (h Host) CheckOnce(ctx context.Context, o OneCheck) (found []check.Finding, hints []hone.Notice, err error) {
	walls := &Walls{Settings: o.Walls, Plan: loop.WallPlan{Env: o.Env}, Root: o.Root, ID: "check", Guard: o.Guard}
	if o.Walls.Absent {
		walls.Settings.Wall = sandbox.NoWall
	}
	if o.Walls.None() {
		walls.Settings.Policy.Env = sandbox.CleanEnv(h.environ(), exceptNames(KeyVariables(), slices.Concat(o.Walls.Env, o.Env)))
	}
	tree, err := workspace.Open(o.Root, workspace.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer tree.Close()
	if err := h.Enclose(ctx, walls); err != nil {
		return nil, nil, NoWalls(ctx, err)
	}
	defer func() { err = errors.Join(err, walls.Close()) }()
	if o.Walled != nil {
		o.Walled(walls.Grade(), walls.Notes())
	}
	walls.Advise = func(n hone.Notice) error {
		hints = append(hints, n)
		return nil
	}
	found, err = check.Command(walls, CheckConfig(check.CommandConfig{
		Command: o.Command, Program: check.Program{Timeout: o.Timeout, Live: o.Live}}, o.Values, tree, o.Guard))(ctx)
	if ctx.Err() != nil {
		err = &hone.Stop{Kind: hone.KindInterrupted, Why: "interrupted"}
	}
	return found, hints, err
}
