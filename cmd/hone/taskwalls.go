package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"hone"
	"hone/sandbox"
)

// taskFolder is where the loop's own files are; commands can read it and not
// change it (ruling S6).
const taskFolder = ".codescribe"

// taskWalls are the walls of a task's commands: those of an execution, and
// beside them those of a review, behind which nothing of the tree can be
// changed. Also without walls commands are bounded, and protected files are
// put back; then they have the person's environment, but for the providers'
// keys.
func (a *app) taskWalls(o session, r *hone.Run, s taskSettings) *runWalls {
	protect := []string{taskFolder}
	if s.File != "" {
		protect = append(protect, s.File)
	}
	execution := &runWalls{app: a, run: r, want: a.wanted(o, r, s.runSettings, nil, protect),
		// What is not there when walls are built could not be mounted read-only.
		prepare: func() error { return makeFolder(o.root, taskFolder) }}
	if s.Walls.none() {
		execution.want.environ = sandbox.CleanEnv(a.environ, without(keyVariables(), s.Walls.Env))
	}
	review := execution.want
	review.reading, review.proved = true, true
	execution.review = &runWalls{app: a, run: r, want: review}
	return execution
}

// makeFolder makes a folder below a root, where nothing else is in its place.
func makeFolder(root, name string) error {
	at, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer at.Close()
	err = at.Mkdir(name, 0o755)
	info, statErr := at.Lstat(name)
	if statErr == nil && info.IsDir() {
		return nil
	}
	return &hone.Stop{Exit: hone.ExitEnvironment, Result: "failed", Why: fmt.Sprintf("%s is no folder that hone could write to", name),
		Err: errors.Join(err, statErr), Hint: "move it away, then: hone resume last"}
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
