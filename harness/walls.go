package harness

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"hone"
	"hone/check"
	"hone/loop"
	"hone/sandbox"
)

// walls are walls of a run. They are built when a round begins or the first
// command needs them, whichever comes first: a run that only tells its end
// needs none.
type walls struct {
	session *Session
	plan    loop.WallPlan
	want    Enclosure
	bare    bool   // no walls are wanted, and commands are not bounded either
	after   *walls // stand before these; nil: there are none
	exposed string // what an agent could do with its key or the network; empty: nothing to say

	once sync.Once
	up   *Enclosed
	err  error
}

var _ loop.Walls = (*walls)(nil)

// Walls plans walls; see [loop.Session].
func (s *Session) Walls(p loop.WallPlan) loop.Walls {
	w := s.newWalls(p)
	s.walls = append(s.walls, w)
	return w
}

func (s *Session) newWalls(p loop.WallPlan) *walls {
	settings := s.loop.Shared().Walls
	w := &walls{session: s, plan: p, bare: settings.None() && !p.Bounded}
	if p.After != nil {
		w.after = p.After.(*walls)
	}
	w.want = Enclosure{Settings: settings, Root: p.Root, ID: s.journal.Run(), Guard: s.guard,
		keep: p.Env, vars: p.Vars, protect: p.Protect, readOnly: p.ReadOnly, hides: p.Hides, proved: w.after != nil}
	if p.Root == "" {
		w.want.Root = s.Dir
	}
	set := &w.want.Settings
	if p.Net != nil {
		set.Net = *p.Net
	}
	set.Write, set.Read, set.Hide = slices.Concat(set.Write, p.Write), slices.Concat(set.Read, p.Read), slices.Concat(set.Hide, p.Hide)
	if settings.None() && !p.OwnHome {
		w.want.environ = sandbox.CleanEnv(s.host.environ(), without(KeyVariables(), settings.Env))
	}
	if p.Door != nil {
		w.want.Doors = make([]sandbox.Door, 1) // known when the kind of wall is
	}
	return w
}

// stand builds the walls, once, and records what they reach.
func (w *walls) stand(ctx context.Context) error {
	if w.bare {
		return nil
	}
	if w.after != nil {
		if err := w.after.stand(ctx); err != nil {
			return err
		}
	}
	w.once.Do(func() { w.err = w.build(ctx) })
	return w.err
}

func (w *walls) build(ctx context.Context) error {
	if w.plan.Prepare != nil {
		if err := w.plan.Prepare(ctx); err != nil {
			return err
		}
	}
	if w.after != nil && w.after.up != nil {
		w.want.Settings.Wall = string(w.after.up.Grade().Wall)
	}
	if w.plan.Door != nil {
		w.want.Doors[0] = w.plan.Door(ownNet(sandbox.Wall(w.want.Settings.Wall), w.want.Settings.Net))
	}
	var err error
	if w.up, err = w.session.host.Enclose(ctx, w.want); err != nil {
		return NoWalls(ctx, err)
	}
	if w.plan.Stood != nil {
		door := ""
		if w.plan.Door != nil {
			door = w.up.DoorAddr(0)
		}
		vars, err := w.plan.Stood(w.up.Grade(), door)
		if err != nil {
			return err
		}
		w.up.env = slices.Concat(w.up.env, vars)
	}
	return w.record()
}

// ownNet reports whether commands behind a wall have a network of their own.
func ownNet(wall sandbox.Wall, net bool) bool {
	return wall != sandbox.Landlock && wall != sandbox.NoWall && !net
}

// record records what the walls reach, and tells the user what they do not.
// Walls that stand after others of the same kind have nothing to add to them.
func (w *walls) record() error {
	run, notes := w.session.run, []string{}
	switch {
	case w.want.readOnly && w.up.Grade().Level == sandbox.LevelOpen:
		notes = append(notes, "there are no walls, so the reviewer's commands could change files; only the list of allowed commands prevents that")
	case !w.want.proved:
		if err := run.Walled(graded(w.up.Grade())); err != nil {
			return err
		}
		notes = append(notes, w.up.SecretsNote())
	}
	for _, text := range append(notes, w.exposed) {
		if text == "" {
			continue
		}
		if err := run.Notice(text); err != nil {
			return err
		}
	}
	return nil
}

// NoWalls is how a command ends whose walls cannot be built.
func NoWalls(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.As(err, new(*hone.Stop)) || errors.As(err, new(*hone.UsageError)) {
		return err
	}
	stop := &hone.Stop{Kind: hone.KindFailed, Why: err.Error(), Next: hone.Next{Verb: hone.Doctor}}
	var hinter interface{ Hint() string }
	var none *sandbox.WallError
	switch {
	case errors.As(err, &none) && none.Wall == sandbox.Auto:
		stop.Next.Or = "use --sandbox none, which gives commands your own rights"
	case errors.As(err, &hinter) && hinter.Hint() != "":
		stop.Next = hone.Next{First: hinter.Hint()}
	}
	return stop
}

// Round is a round that begins with the session's walls up, so that no model is
// asked for what then could not be checked, and that ends with the reason where
// it would ask a model that cannot be opened.
func (s *Session) Round(next hone.Round) hone.Round {
	next = s.present(next)
	return func(ctx context.Context, r *hone.Run, prior []check.Finding) ([]check.Finding, error) {
		for _, w := range s.walls {
			if w.plan.Later {
				continue
			}
			if err := w.stand(ctx); err != nil {
				return nil, err
			}
		}
		return next(ctx, r, prior)
	}
}

// Run runs a command behind the walls, and tells the user what it did to
// protected files, and what it may have missed.
func (w *walls) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return w.runWith(ctx, c, nil)
}

// runWith runs a command with variables beside those that all commands have.
func (w *walls) runWith(ctx context.Context, c sandbox.Command, vars []string) (sandbox.Result, error) {
	if err := w.stand(ctx); err != nil {
		return sandbox.Result{}, err
	}
	if w.bare {
		c.Env = slices.Concat(w.want.environ, w.want.vars, vars)
		return sandbox.None{}.Run(ctx, c)
	}
	c.Env = slices.Concat(w.up.env, vars)
	result, err := w.up.Walls.Run(ctx, c)
	for _, text := range aftermath(result, w.want.Settings.Net) {
		err = errors.Join(err, w.session.run.Notice(text))
	}
	return result, err
}

// Start is Run for a command that is held open; see [wall.Walls.Start].
func (w *walls) Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error) {
	if err := w.stand(ctx); err != nil {
		return nil, err
	}
	if w.bare {
		return nil, errors.New("a background command needs walls with limits")
	}
	c.Env = w.up.env
	return w.up.Walls.Start(ctx, c)
}

// Grade says what stands.
func (w *walls) Grade() sandbox.Grade {
	if w.up == nil {
		return sandbox.Grade{}
	}
	return w.up.Grade()
}

// close takes the walls down, where they stand.
func (w *walls) close() error {
	if w.up == nil {
		return nil
	}
	return w.up.Close()
}

// around are the same walls around a copy of the tree.
func (w *walls) around(dir string) *walls {
	root := w.session.Dir
	c := &walls{session: w.session, bare: w.bare, want: w.want}
	c.want.proved = true // those of the tree were
	if w.up != nil {
		c.want.Settings.Wall = string(w.up.Grade().Wall)
	}
	c.want.Root = moved(root, dir, w.want.Root)[0]
	from, to := w.want.Settings, &c.want.Settings
	to.Write, to.Read, to.Hide = moved(root, dir, from.Write...), moved(root, dir, from.Read...), moved(root, dir, from.Hide...)
	return c
}

// With is a runner behind the same walls whose commands are given variables of
// the user's that those of a model are not.
func (w *walls) With(names []string) sandbox.Runner {
	var vars []string
	for _, kv := range w.session.host.environ() {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(names, name) && !slices.Contains([]string{"HOME", "PATH", "TMPDIR"}, name) {
			vars = append(vars, kv)
		}
	}
	return privileged{w, vars}
}

// privileged is a runner whose commands have further variables.
type privileged struct {
	walls *walls
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
		texts = append(texts, Restored(p))
	}
	if r.OverLimit != "" {
		texts = append(texts, fmt.Sprintf("a command exceeded its limit of %s", r.OverLimit))
	}
	failed := r.Exit != 0 || r.TimedOut
	if failed && !net && sandbox.WantsNetwork(tail(r.Stdout)+"\n"+tail(r.Stderr)) {
		texts = append(texts, WantsNet)
	}
	return texts
}

// WantsNet is the hint of a command that failed for want of the network.
const WantsNet = "the command seems to need the network, which is off behind the walls; allow it with --net"

// tail is the end of an output, where errors stand.
func tail(b []byte) string { return string(b[max(0, len(b)-64<<10):]) }

// Restored says what became of a protected file that a command changed.
func Restored(r sandbox.Restored) string {
	text := r.Path + " is protected: a command changed it, and it was restored"
	if r.NotRestored != "" {
		text = r.Path + " is protected: a command changed it, and it was NOT restored: " + r.NotRestored
	}
	if r.MovedTo != "" {
		text += "; the command's version is in " + r.MovedTo
	}
	return text
}

// moved are paths with what lies in one folder where it lies in another.
func moved(from, to string, paths ...string) []string {
	there := make([]string, len(paths))
	for i, p := range paths {
		there[i] = p
		if p == from {
			there[i] = to
		} else if rest, inside := strings.CutPrefix(p, from+string(filepath.Separator)); inside {
			there[i] = filepath.Join(to, rest)
		}
	}
	return there
}
