package prove

import (
	"context"
	"slices"

	"hone/sandbox"
	"hone/sandbox/prove/internal/stage"
)

// Helper does the work of a helper and exits if this process was started as one;
// otherwise it returns at once. Every program that proves walls must call it in
// main, right after Helper of the package wall.
func Helper() { stage.Helper(Attempts) }

// Wall tries to cross a wall, which takes about a second. The report contains the
// results, including holes. The error means that the wall cannot be built, or
// that no attempt could be made. tree is what commands may write, see Tree of
// [sandbox.Policy]; it is not touched.
func Wall(ctx context.Context, wall sandbox.Wall, tree string) (Report, error) {
	return try(ctx, wall, tree, Attempts())
}

// Short is like [Wall] without the attempts that need a process each, those on the limits,
// because a user waits for it before the first run.
func Short(ctx context.Context, wall sandbox.Wall, tree string) (Report, error) {
	return try(ctx, wall, tree, slices.DeleteFunc(Attempts(), func(a stage.Attempt) bool { return a.Alone }))
}

func try(ctx context.Context, wall sandbox.Wall, tree string, all []stage.Attempt) (Report, error) {
	grade, made, err := stage.Run(ctx, wall, tree, all)
	if err != nil {
		return Report{}, err
	}
	r := Report{Grade: grade}
	for i, a := range all {
		r.Results = append(r.Results, Result{a.Name, a.About, a.OpenBehind(grade), made[i].Got, made[i].Text})
	}
	return r, nil
}
