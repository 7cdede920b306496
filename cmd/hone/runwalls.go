package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"hone"
	"hone/check"
	"hone/sandbox"
)

// runWalls are the walls of a run. They are built when the first round begins
// or the first command needs them, whichever comes first: a run that only
// tells its end needs none.
type runWalls struct {
	app  *app
	want wanted
	run  *hone.Run
	// prepare makes what the walls need to find in the tree; nil makes nothing.
	prepare func() error
	// stood is told of the walls when they stand; may be nil.
	stood func(*enclosed)
	// review are walls of the same run behind which the tree is read-only;
	// nil where there are none.
	review *runWalls

	once sync.Once
	up   *enclosed
	err  error
}

// runWalls are the walls of a run's settings; nil where there are none.
func (a *app) runWalls(o session, r *hone.Run, s runSettings, keep, protect []string) *runWalls {
	if s.Walls.none() {
		return nil
	}
	return &runWalls{app: a, run: r, want: a.wanted(o, r, s, keep, protect)}
}

// wanted are the walls of a run's settings.
func (a *app) wanted(o session, r *hone.Run, s runSettings, keep, protect []string) wanted {
	return wanted{wallSettings: s.Walls, root: o.root, id: r.Journal.Run(), keep: keep, protect: protect, guard: a.guard(s)}
}

// runner is what starts build.sh and --check.
func (w *runWalls) runner() sandbox.Runner {
	if w == nil {
		return sandbox.None{}
	}
	return w
}

// stand builds the walls, once, and tells the journal what they reached.
func (w *runWalls) stand(ctx context.Context) error {
	w.once.Do(func() {
		if w.prepare != nil {
			if w.err = w.prepare(); w.err != nil {
				return
			}
		}
		if w.up, w.err = w.app.walls(ctx, w.want); w.err != nil {
			w.err = noWalls(ctx, w.err)
			return
		}
		if w.stood != nil {
			w.stood(w.up)
		}
		if w.want.reading {
			w.err = w.tellReading()
		}
		if w.want.proved {
			return
		}
		w.err = w.run.Walled(graded(w.up.Grade()))
		if said := w.up.secrets.told(w.up.Grade().Wall); said != "" && w.err == nil {
			w.err = w.run.Notice(said)
		}
	})
	return w.err
}

// tellReading says where the tree is not read-only though it should be. What
// the walls reach otherwise is on record by those that stood before.
func (w *runWalls) tellReading() error {
	if w.up.Grade().Level != sandbox.LevelOpen {
		return nil
	}
	return w.run.Notice("there are no walls, so what the reviewer runs could change files; only the list of its commands is against that")
}

// noWalls is the end of a run whose walls cannot be had.
func noWalls(ctx context.Context, err error) error {
	if _, ok := explained(err); ok || ctx.Err() != nil {
		return err
	}
	stop := &hone.Stop{Kind: hone.KindFailed, Why: err.Error(), Next: hone.Next{Verb: hone.Doctor}}
	var h hinter
	var none *sandbox.WallError
	switch {
	case errors.As(err, &none) && none.Wall == sandbox.Auto:
		stop.Next.Or = "use --sandbox none, which lets commands do whatever you may do"
	case errors.As(err, &h) && h.Hint() != "":
		stop.Next = hone.Next{First: h.Hint()}
	}
	return stop
}

// round is a round that begins with the walls standing, so that no model is
// asked for what then could not be checked.
func (w *runWalls) round(next hone.Round) hone.Round {
	if w == nil {
		return next
	}
	return func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		if err := w.stand(ctx); err != nil {
			return nil, err
		}
		return next(ctx, r, prior)
	}
}

// Run runs a command behind the walls, and tells a person what it did to
// protected files, and what it may have missed.
func (w *runWalls) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return w.runWith(ctx, c, nil)
}

// runWith runs a command with variables beside those that all commands have.
func (w *runWalls) runWith(ctx context.Context, c sandbox.Command, vars []string) (sandbox.Result, error) {
	if err := w.stand(ctx); err != nil {
		return sandbox.Result{}, err
	}
	c.Env = slices.Concat(w.up.env, vars)
	result, err := w.up.Walls.Run(ctx, c)
	for _, text := range aftermath(result, w.want.Net) {
		err = errors.Join(err, w.run.Notice(text))
	}
	return result, err
}

// Start is Run for a command that is held open; see [sandbox.Walls.Start].
func (w *runWalls) Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error) {
	if err := w.stand(ctx); err != nil {
		return nil, err
	}
	c.Env = w.up.env
	return w.up.Walls.Start(ctx, c)
}

// close takes the walls down, where they stand.
func (w *runWalls) close() error {
	if w == nil {
		return nil
	}
	err := w.review.close()
	if w.up != nil {
		err = errors.Join(err, w.up.Close())
	}
	return err
}

// privileged is a runner behind the same walls whose commands are given
// variables that those of a model are not.
type privileged struct {
	walls *runWalls
	vars  []string // KEY=VALUE
}

// Run runs a command with the variables.
func (p privileged) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return p.walls.runWith(ctx, c, p.vars)
}

// aftermath is what there is to say of a command that has ended.
func aftermath(r sandbox.Result, net bool) []string {
	var texts []string
	for _, p := range r.Restored {
		texts = append(texts, restored(p))
	}
	if r.OverLimit != "" {
		texts = append(texts, fmt.Sprintf("a command went over its limit of %s", r.OverLimit))
	}
	failed := r.Exit != 0 || r.TimedOut
	if failed && !net && sandbox.WantsNetwork(tail(r.Stdout)+"\n"+tail(r.Stderr)) {
		texts = append(texts, wantsNet)
	}
	return texts
}

// wantsNet is the hint of a command that failed for want of the network.
const wantsNet = "the command seems to have missed the network, which is off behind the walls; --net lets it through"

// tail is the end of an output, where errors stand.
func tail(b []byte) string { return string(b[max(0, len(b)-64<<10):]) }

// restored says what became of a protected file that a command changed.
func restored(r sandbox.Restored) string {
	text := r.Path + " is protected: a command changed it, and it is as it was"
	if r.Lost != "" {
		text = r.Path + " is protected: a command changed it, and it is NOT as it was: " + r.Lost
	}
	if r.Kept != "" {
		text += "; what the command left is in " + r.Kept
	}
	return text
}
