package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"hone"
	"hone/check"
	"hone/loop/phase"
	"hone/sandbox"
)

// phaseWalls are the walls of a phase: each role behind its own, and the hooks
// behind others, so that nobody sees what is another's (rulings A7 to A10).
type phaseWalls struct {
	run                              *hone.Run
	server                           *phase.Server
	builder, writer, verifier, hooks *runWalls
	trees                            seats
	prepare                          func(context.Context) error
	told                             []string // of weaker walls and of agents
}

var _ standing = (*phaseWalls)(nil)

// phaseWalls says what walls are to be built; nothing is built yet.
func (a *app) phaseWalls(o session, r *hone.Run, s phaseSettings, l phase.Loop) (*phaseWalls, error) {
	src, tests := filepath.Join(o.root, phase.Src), filepath.Join(o.root, phase.Tests)
	one := func(root string, change func(*wanted)) *runWalls {
		w := &runWalls{app: a, run: r, want: a.wanted(o, r, s.runSettings, nil, nil)}
		w.want.root, w.want.guard, w.want.hides = root, l.Guard, true
		change(&w.want)
		return w
	}
	p := &phaseWalls{run: r, server: l.Server,
		builder: one(src, func(*wanted) {}),
		hooks: one(src, func(w *wanted) {
			w.proved, w.Net, w.keep = true, s.Hooks.Net, s.Hooks.Env
			w.Write = append(slices.Clone(w.Write), filepath.Join(o.root, phase.Results))
			w.Read = slices.Concat(w.Read, []string{filepath.Join(o.root, phase.ConfigName)}, s.Hooks.Read)
			w.protect = []string{".git"}
		}),
	}
	tester := func(w *wanted) {
		w.proved = true
		w.Hide = append(slices.Clone(w.Hide), filepath.Join(o.root, phase.Results))
	}
	p.writer = one(tests, func(w *wanted) {
		tester(w)
		w.vars = []string{"DEV_URL=" + s.DevURL}
	})
	p.verifier = one(tests, func(w *wanted) {
		tester(w)
		w.doors = []sandbox.Door{l.Server.Door(true)}
	})
	p.verifier.stood = func(e *enclosed) {
		l.Server.Found(e.DoorAddr(0))
		e.env = append(slices.Clone(e.env), "DEV_URL="+l.Server.Address())
	}
	p.prepare = func(ctx context.Context) error { return phase.Prepare(ctx, l.Git, o.root) }
	return p, nil
}

// ownNet reports whether commands behind a wall have a network of their own.
func ownNet(wall sandbox.Wall, net bool) bool {
	return wall != sandbox.Landlock && wall != sandbox.NoWall && !net
}

// round is a round that begins with all walls standing.
func (p *phaseWalls) round(next hone.Round) hone.Round {
	return func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		if err := p.stand(ctx); err != nil {
			return nil, err
		}
		return next(ctx, r, prior)
	}
}

// standing is a check that begins with all walls standing: it may come before the
// first round. Nil stays nil.
func (p *phaseWalls) standing(next check.Func) check.Func {
	if next == nil {
		return nil
	}
	return func(ctx context.Context) ([]check.Finding, error) {
		if err := p.stand(ctx); err != nil {
			return nil, err
		}
		return next(ctx)
	}
}

// stand builds all walls, of the kind that the first could be built of.
func (p *phaseWalls) stand(ctx context.Context) error {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	if err := p.builder.stand(ctx); err != nil {
		return err
	}
	grade := p.builder.up.Grade()
	// An agent may have been given the network meanwhile.
	p.verifier.want.doors[0] = p.server.Door(ownNet(grade.Wall, p.verifier.want.Net))
	for _, w := range []*runWalls{p.hooks, p.writer, p.verifier} {
		w.want.Wall = string(grade.Wall)
		if err := w.stand(ctx); err != nil {
			return err
		}
	}
	if grade.Level != sandbox.LevelHidden {
		p.told = append(p.told, fmt.Sprintf("the wall %s does not hide what it does not allow: the roles can find out what the rest of the project holds, as far as %s", grade.Wall, openOf(grade)))
	}
	for _, text := range p.told {
		if err := p.run.Notice(text); err != nil {
			return err
		}
	}
	return nil
}

// openOf says what stays open behind a weaker wall.
func openOf(g sandbox.Grade) string {
	if g.Level == sandbox.LevelOpen {
		return "you could yourself"
	}
	return "looking at names goes; its hidden files stay readable in folders that may be written (hone doctor has the list)"
}

// close takes all walls down.
func (p *phaseWalls) close() error {
	return errors.Join(p.verifier.close(), p.writer.close(), p.builder.close(), p.hooks.close())
}
