package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"hone"
	"hone/check"
	"hone/internal/artifact"
	"hone/sandbox"
)

// taskFolder is where the loop's own files are; commands can read it and not
// change it (ruling S6).
const taskFolder = ".codescribe"

// taskWalls are the walls of a task.
type taskWalls struct {
	// commands are those of what a model runs and of the check, and beside them
	// those of a review, behind which nothing of the tree can be changed.
	commands *runWalls
	agent    *runWalls // an executing agent's own; nil where there is none
	exposed  string    // what the agent could do with its key, or with the network
}

var _ standing = (*taskWalls)(nil)

// taskWalls says what walls are to be built; nothing is built yet. Also without
// walls commands are bounded, and protected files are put back; then they have
// the person's environment, but for the providers' keys. An agent has a home of
// its own in any case: it may write its settings there.
func (a *app) taskWalls(o session, r *hone.Run, s taskSettings) *taskWalls {
	protect := []string{taskFolder}
	if s.File != "" {
		protect = append(protect, s.File)
	}
	one := func() *runWalls {
		return &runWalls{app: a, run: r, want: a.wanted(o, r, s.runSettings, nil, protect),
			// What is not there when walls are built could not be mounted read-only.
			prepare: func() error { return makeFolder(o.root, taskFolder) }}
	}
	w := &taskWalls{commands: one()}
	if s.Model.Agent != nil {
		w.agent, w.exposed = one(), s.Model.exposed()
		w.commands.want.proved = true
	}
	if s.Walls.none() {
		w.commands.want.environ = sandbox.CleanEnv(a.environ, without(keyVariables(), s.Walls.Env))
	}
	review := w.commands.want
	review.reading, review.proved = true, true
	w.commands.review = &runWalls{app: a, run: r, want: review}
	return w
}

// round is a round that begins with the walls standing: the agent's, if there
// are any, and those of the check of the same kind.
func (w *taskWalls) round(next hone.Round) hone.Round {
	if w.agent == nil {
		return w.commands.round(next)
	}
	return func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		if err := w.agent.stand(ctx); err != nil {
			return nil, err
		}
		wall := string(w.agent.up.Grade().Wall)
		w.commands.want.Wall, w.commands.review.want.Wall = wall, wall
		if w.exposed != "" {
			if err := r.Notice(w.exposed); err != nil {
				return nil, err
			}
		}
		return w.commands.round(next)(ctx, r, prior)
	}
}

// close takes the walls down.
func (w *taskWalls) close() error { return errors.Join(w.agent.close(), w.commands.close()) }

// makeFolder makes a folder below a root, where nothing else is in its place.
func makeFolder(root, name string) error {
	if err := artifact.MakeDir(root, name); err != nil {
		return &hone.Stop{Exit: hone.ExitEnvironment, Result: "failed", Why: err.Error(), Hint: "move it away, then: hone resume last"}
	}
	return nil
}

// with is a runner behind the walls whose commands have variables beside the
// usual ones, by their names.
func (w *runWalls) with(names []string) sandbox.Runner {
	var vars []string
	for _, kv := range w.app.environ {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(names, name) && !slices.Contains([]string{"HOME", "PATH", "TMPDIR"}, name) {
			vars = append(vars, kv)
		}
	}
	return privileged{w, vars}
}
