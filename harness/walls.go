package harness

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"hone"
	"hone/harness/internal/walldir"
	"hone/internal/config"
	"hone/internal/transient"
	"hone/loop"
	"hone/sandbox"
	"hone/sandbox/wall"
)

// walls are walls of a run. They are built when a round starts or the first
// command needs them, whichever is first: a run that only reports its end needs
// none.
type walls struct {
	session   *Session
	plan      loop.WallPlan
	enclosure Enclosure
	unwalled  bool   // the settings want no walls, and the plan sets no limits
	base      *walls // are built before these; nil if there are none
	exposure  string // what an agent could do with its key or the network; empty if nothing

	once     sync.Once
	enclosed *Enclosed
	err      error
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
	w := &walls{session: s, plan: p, unwalled: settings.None() && !p.Bounded}
	if p.After != nil {
		w.base = p.After.(*walls)
	}
	w.enclosure = Enclosure{Settings: settings, Root: p.Root, ID: s.journal.Run(), Guard: s.guard, keeper: s.Keeper, home: s.Dir, watches: &s.watches,
		keepVars: p.Env, vars: p.Vars, protect: p.Protect, readOnly: p.ReadOnly, hides: p.Hides, proved: w.base != nil,
		guardTools: !p.ReadOnly && config.GuardTools.In(s.loop.Shared().Values)}
	if p.Root == "" {
		w.enclosure.Root, w.enclosure.secrets = s.Dir, s.secrets
	}
	set := &w.enclosure.Settings
	if settings.Absent && !p.OwnHome {
		set.Wall = string(sandbox.NoWall)
	}
	if p.Net != nil {
		set.Net = *p.Net
	}
	set.Write, set.Read, set.Hide = slices.Concat(set.Write, p.Write), slices.Concat(set.Read, p.Read), slices.Concat(set.Hide, p.Hide)
	if settings.None() && !p.OwnHome {
		w.enclosure.environ = sandbox.CleanEnv(s.host.environ(), exceptNames(KeyVariables(), settings.Env))
	}
	if p.Door != nil {
		w.enclosure.Doors = make([]sandbox.Door, 1) // known when the kind of wall is
	}
	s.startEarly(w)
	return w
}

// The helper is that of the first command, which is a part of the check. There is none for walls that may never be built.
func (s *Session) startEarly(w *walls) {
	if s.early != nil || !s.fresh || w.unwalled || w.plan.Later || s.loop.Shared().Check == "" {
		return
	}
	set := w.enclosure.Settings
	kind := sandbox.NoWall
	if !set.None() {
		kind = sandbox.Wall(set.Wall)
	}
	s.early = wall.StartEarly(kind, sandbox.Policy{Net: set.Net, Limits: commandLimits(set), As: sandbox.OwnerOf(w.enclosure.Root)})
	w.enclosure.early = s.early
}

func (w *walls) raise(ctx context.Context) error {
	if err := sandbox.OwnerOf(w.enclosure.Root).Check(); err != nil {
		return NoWalls(ctx, err)
	}
	if w.unwalled {
		return nil
	}
	if w.base != nil {
		if err := w.base.raise(ctx); err != nil {
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
	if w.base != nil && w.base.enclosed != nil {
		w.enclosure.Settings.Wall = string(w.base.enclosed.Grade().Wall)
	}
	if w.plan.Door != nil {
		w.enclosure.Doors[0] = w.plan.Door(ownNet(sandbox.Wall(w.enclosure.Settings.Wall), w.enclosure.Settings.Net))
	}
	if set := w.enclosure.Settings; set.Absent && set.Wall != string(sandbox.NoWall) {
		return NoWalls(ctx, &sandbox.WallError{Wall: sandbox.Auto, Reason: "this system has none"})
	}
	var err error
	if w.enclosed, err = w.session.host.Enclose(ctx, w.enclosure); err != nil {
		return NoWalls(ctx, err)
	}
	homeNote := w.session.leaveTree(ctx, w.enclosed)
	if w.plan.OnBuilt != nil {
		door := ""
		if w.plan.Door != nil {
			door = w.enclosed.DoorAddr(0)
		}
		vars, err := w.plan.OnBuilt(w.enclosed.Grade(), door)
		if err != nil {
			return err
		}
		w.enclosed.env = slices.Concat(w.enclosed.env, vars)
	}
	return w.recordGrade(homeNote)
}

func ownNet(wall sandbox.Wall, net bool) bool {
	return wall != sandbox.Landlock && wall != sandbox.NoWall && !net
}

// homeNote is leaveTree's. There is nothing to add for walls of the same kind as their base.
func (w *walls) recordGrade(homeNote string) error {
	run, notes := w.session.run, w.enclosed.RecoveredNotes()
	switch {
	case w.enclosure.Settings.Absent: // the settings say so
	case w.enclosure.readOnly && w.enclosed.Grade().Level == sandbox.LevelOpen:
		notes = append(notes, "there are no walls, so the reviewer's commands could change files; only the list of allowed commands prevents that")
	case !w.enclosure.proved:
		if err := run.Walled(wallsEvent(w.enclosed.Grade(), w.enclosed.proved)); err != nil {
			return err
		}
		notes = append(notes, w.enclosed.SecretsNote())
	}
	for _, text := range append(notes, homeNote, w.exposure) {
		if text == "" {
			continue
		}
		if err := run.Notice(text); err != nil {
			return err
		}
	}
	return nil
}

// NoWalls returns the error of a command whose walls cannot be built, with
// advice for the user.
func NoWalls(ctx context.Context, err error) error {
	if ctx.Err() != nil || transient.Is(err) || errors.As(err, new(*hone.Stop)) || errors.As(err, new(*hone.UsageError)) {
		return err
	}
	stop := &hone.Stop{Kind: hone.KindFailed, Why: err.Error(), Next: hone.Next{Verb: hone.Doctor}}
	var hinter interface{ Hint() string }
	var none *sandbox.WallError
	switch {
	case errors.As(err, &none) && none.Wall == sandbox.Auto:
		stop.Next.Or = &hone.Next{Flags: []hone.Flag{{Name: "sandbox", Value: "none"}}, Remark: "which gives commands your own rights"}
	case errors.As(err, &hinter) && hinter.Hint() != "":
		stop.Next = hone.Next{First: hinter.Hint()}
	}
	return stop
}

// The walls are built first, so that no model is asked for something that could not be checked.
func (s *Session) beforeRound(ctx context.Context) error {
	if err := s.canAsk(); err != nil {
		return err
	}
	for _, w := range s.walls {
		if w.plan.Later {
			continue
		}
		if err := w.raise(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) prepareWalls() {
	for _, w := range s.walls {
		if w.enclosed != nil {
			w.enclosed.prepare()
		}
	}
}

// Run runs a command behind the walls. It tells the user which protected files
// the command changed, and whether it seems to need the network.
func (w *walls) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return w.runWith(ctx, c, nil, false)
}

// forModel is a runner of commands that a model asks for.
type forModel struct {
	walls *walls
	vars  []string // KEY=VALUE, in addition to those of all commands
}

// Run is [walls.Run], but files of the user's own tools are read-only.
func (f forModel) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return f.walls.runWith(ctx, c, f.vars, true)
}

func (w *walls) runWith(ctx context.Context, c sandbox.Command, vars []string, model bool) (sandbox.Result, error) {
	if err := w.raise(ctx); err != nil {
		return sandbox.Result{}, err
	}
	if w.unwalled {
		c.Env = slices.Concat(w.enclosure.environ, w.enclosure.vars, vars)
		return w.session.Unwalled().Run(ctx, c)
	}
	c.Env = slices.Concat(w.enclosed.env, vars, w.session.Keeper.Env())
	behind := w.enclosed.Walls
	if model {
		var err error
		if behind, err = w.enclosed.forModel(ctx); err != nil {
			return sandbox.Result{}, NoWalls(ctx, err)
		}
	}
	result, err := w.enclosed.run(ctx, behind, c)
	if failed(result) {
		result.Hidden = w.enclosed.hiddenIn(c.Dir, outputOf(result))
	}
	for _, n := range append(commandNotes(result, w.session.Dir, w.enclosure.Settings.Net), w.newlyDenied(c.Dir, result)...) {
		err = errors.Join(err, w.session.run.Advise(n))
	}
	return result, err
}

// There is one note per cause in a session.
func (w *walls) newlyDenied(dir string, r sandbox.Result) []hone.Notice {
	if !failed(r) {
		return nil
	}
	s := w.session
	s.deniedMu.Lock()
	defer s.deniedMu.Unlock()
	var notes []hone.Notice
	for cause, text := range w.enclosed.DeniedNotes(s.host.environ(), dir, outputOf(r)) {
		if !slices.Contains(s.denied, cause) {
			s.denied, notes = append(s.denied, cause), append(notes, hone.Notice{Text: text})
		}
	}
	return notes
}

// Start runs a command in the background; see [wall.Walls.Start].
func (w *walls) Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error) {
	if err := w.raise(ctx); err != nil {
		return nil, err
	}
	if w.unwalled {
		return nil, errors.New("a background command needs walls with limits")
	}
	c.Env = slices.Concat(w.enclosed.env, w.session.Keeper.Env())
	return w.enclosed.Walls.Start(ctx, c)
}

// Grade returns the grade of the walls; zero before they are built.
func (w *walls) Grade() sandbox.Grade {
	if w.enclosed == nil {
		return sandbox.Grade{}
	}
	return w.enclosed.Grade()
}

func (w *walls) close() error {
	if w.enclosed == nil {
		return nil
	}
	return w.enclosed.Close()
}

func (w *walls) forCopy(dir string) *walls {
	root := w.session.Dir
	c := &walls{session: w.session, unwalled: w.unwalled, enclosure: w.enclosure}
	c.enclosure.proved = true // like those of the tree
	if w.enclosed != nil {
		c.enclosure.Settings.Wall = string(w.enclosed.Grade().Wall)
	}
	c.enclosure.Root = rebase(root, dir, w.enclosure.Root)[0]
	from, to := w.enclosure.Settings, &c.enclosure.Settings
	to.Write, to.Read, to.Hide = rebase(root, dir, from.Write...), rebase(root, dir, from.Read...), rebase(root, dir, from.Hide...)
	return c
}

// With returns a runner behind the same walls, whose commands also have the
// user's variables of these names, which a model's commands do not have.
func (w *walls) With(names []string) sandbox.Runner {
	var vars []string
	for _, kv := range w.session.host.environ() {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(names, name) && !slices.Contains([]string{"HOME", "PATH", "TMPDIR"}, name) {
			vars = append(vars, kv)
		}
	}
	return withVars{w, vars}
}

type withVars struct {
	walls *walls
	vars  []string // KEY=VALUE
}

// Run runs a command with the variables.
func (p withVars) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return p.walls.runWith(ctx, c, p.vars, false)
}

// root is the tree's; empty if nothing is recorded.
func commandNotes(r sandbox.Result, root string, net bool) (notes []hone.Notice) {
	for _, p := range r.Restored {
		notes = append(notes, hone.Notice{Text: walldir.RestoredNote(p)})
	}
	for _, p := range r.Repositories {
		notes = append(notes, hone.Notice{Text: p.Note(), Repository: inTree(root, p.Path), Aside: inTree(root, p.MovedTo)})
	}
	if r.OverLimit != "" {
		notes = append(notes, hone.Notice{Text: "a command exceeded its limit of " + r.OverLimit})
	}
	if failed(r) && !net && sandbox.WantsNetwork(outputOf(r)) {
		notes = append(notes, WantsNet())
	}
	return notes
}

// It is empty if the path is not in the tree, such as in a copy.
func inTree(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

func failed(r sandbox.Result) bool { return r.Exit != 0 || r.TimedOut }

// Errors are at the ends of a command's outputs.
func outputOf(r sandbox.Result) string { return tail(r.Stdout) + "\n" + tail(r.Stderr) }

// WantsNet is the note about a command that seems to have failed because it has
// no network.
func WantsNet() hone.Notice {
	return hone.Notice{Text: "the command seems to need the network, which is off behind the walls",
		Next: hone.Next{Flags: []hone.Flag{{Name: "net"}}, Remark: "which allows it"}}
}

func tail(b []byte) string { return string(b[max(0, len(b)-64<<10):]) }

func rebase(from, to string, paths ...string) []string {
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
