package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hone"
	"hone/harness/internal/walldir"
	"hone/history"
	"hone/internal/config"
	"hone/internal/gitdir"
	"hone/internal/listing"
	"hone/internal/transient"
	"hone/loop"
	"hone/sandbox"
	"hone/sandbox/wall"
	"hone/workspace"
	"hone/workspace/secret"
)

// Walls run commands behind walls. [Host.Enclose] builds those whose Settings, Root, ID and Guard are
// set. Those of a session are built when a round starts or the first
// command needs them, whichever is first: a run that only reports its end needs none.
type Walls struct {
	Settings loop.WallSettings // of the user and of the plan; their policy is completed when the walls are built
	Plan     loop.WallPlan
	Root     string // absolute path of the directory that commands may write
	ID       string // part of the name of the directory with the commands' home
	Guard    *secret.Guard
	// Advise reports what the user should know about a command that ran; nil reports nothing.
	Advise func(hone.Notice) error

	// guardTools makes the files of the user's own tools read-only to the commands that a
	// model asks for.
	guardTools bool
	only       []string        // globs of the only files that they may change, if tree is not nil
	tree       *workspace.Tree // of Root
	alike      bool            // walls of this kind were just proved, and recorded
	homePaths  []string        // files of the user's home, as ~/PATH, that the commands' home has too

	home    string   // the directory whose .hone/aside receives repositories; empty means Root
	watches *watches // of the session; nil means walls of their own

	keeper *wall.Keeper // nil means that commands may outlive this process where no helper ends them

	// secrets are the secret files of an earlier search; nil if there was none. Only
	// walls that hide nothing use them: what others hide must be found when they are built.
	secrets *listing.SecretFiles

	host     Host
	session  *Session // nil outside of a run
	base     *Walls   // are built before these; nil if there are none
	exposure string   // what an agent could do with its key or the network; empty if nothing

	once sync.Once
	err  error

	// What follows is known when they are built.
	built       *wall.Walls // nil before
	env         []string    // of commands
	policy      sandbox.Policy
	dir         *walldir.Dir
	secretFiles listing.SecretFiles
	watch       *gitdir.Watch // nil if repositories are free to be made
	proved      time.Time     // when walls of this kind were proved; zero if they were not
	recovered   []string      // notes about what an earlier process left

	modelMu sync.Mutex
	models  *wall.Walls // of the commands that a model asks for; nil before their first one, and perhaps built
}

var _ loop.Walls = (*Walls)(nil)

// Walls plans walls; see [loop.Session].
func (s *Session) Walls(p loop.WallPlan) loop.Walls {
	w := s.newWalls(p)
	s.walls = append(s.walls, w)
	return w
}

func (s *Session) newWalls(p loop.WallPlan) *Walls {
	shared := s.loop.Shared()
	w := &Walls{session: s, host: s.host,
		Settings: shared.Walls, Plan: p, Root: p.Root, ID: s.journal.Run(), Guard: s.guard, keeper: s.Keeper, home: s.Dir, watches: &s.watches,
		alike: p.After != nil, guardTools: !p.ReadOnly && config.GuardTools.In(shared.Values)}
	w.Advise = func(n hone.Notice) error { return s.run.Advise(n) }
	if p.After != nil {
		w.base = p.After.(*Walls)
	}
	if p.Root == "" {
		w.Root, w.secrets = s.Dir, s.secrets
	}
	if p.Root == "" && !p.ReadOnly {
		w.only, w.tree = config.Only.In(shared.Values), s.Tree
	}
	set := &w.Settings
	if set.Absent && !p.OwnHome {
		set.Wall = sandbox.NoWall
	}
	if p.Net != nil {
		set.Net = *p.Net
	}
	set.Write, set.Read, set.Hide = slices.Concat(set.Write, p.Write), slices.Concat(set.Read, p.Read), slices.Concat(set.Hide, p.Hide)
	if shared.Walls.None() && !p.OwnHome {
		set.Policy.Env = sandbox.CleanEnv(s.host.environ(), exceptNames(KeyVariables(), set.Env))
	}
	if p.Door != nil {
		set.Doors = make([]sandbox.Door, 1) // known when the kind of wall is
	}
	return w
}

func (w *Walls) raise(ctx context.Context) error {
	if w.session == nil {
		return nil
	}
	if err := sandbox.OwnerOf(w.Root).Check(); err != nil {
		return NoWalls(ctx, err)
	}
	if w.base != nil {
		if err := w.base.raise(ctx); err != nil {
			return err
		}
	}
	w.once.Do(func() { w.err = w.build(ctx) })
	return w.err
}

func (w *Walls) build(ctx context.Context) error {
	if w.Plan.Prepare != nil {
		if err := w.Plan.Prepare(ctx); err != nil {
			return err
		}
	}
	if w.base != nil && w.base.built != nil {
		w.Settings.Wall = w.base.Grade().Wall
	}
	if w.Plan.Door != nil {
		w.Settings.Doors[0] = w.Plan.Door(!w.Settings.Net && w.Settings.Wall != sandbox.Landlock && w.Settings.Wall != sandbox.NoWall)
	}
	if set := w.Settings; set.Absent && set.Wall != sandbox.NoWall {
		return NoWalls(ctx, &sandbox.WallError{Wall: sandbox.Auto, Reason: "this system has none"})
	}
	if err := w.enclose(ctx); err != nil {
		return NoWalls(ctx, err)
	}
	homeNote := w.session.leaveTree(ctx, w)
	if w.Plan.OnBuilt != nil {
		door := ""
		if w.Plan.Door != nil {
			door = w.built.DoorAddr(0)
		}
		vars, err := w.Plan.OnBuilt(w.Grade(), door)
		if err != nil {
			return err
		}
		w.env = slices.Concat(w.env, vars)
	}
	return w.recordGrade(homeNote)
}

// homeNote is leaveTree's. There is nothing to add for walls of the same kind as their base.
func (w *Walls) recordGrade(homeNote string) error {
	run, notes, g := w.session.run, w.recovered, w.Grade()
	switch {
	case w.Settings.Absent: // the settings say so
	case w.Plan.ReadOnly && g.Wall == sandbox.NoWall:
		notes = append(notes, "there are no walls, so the reviewer's commands could change files; only the list of allowed commands prevents that")
	case !w.alike:
		if err := run.Walled(history.Walls{Wall: string(g.Wall), Level: g.Wall.Level(), Landlock: g.Landlock, Seccomp: g.Seccomp, Net: g.Net,
			Text: g.String(), Why: g.Why, Open: g.Open, Proved: w.proved}); err != nil {
			return err
		}
		notes = append(notes, secretsNote(w.secretFiles, g.Wall))
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
	case errors.As(err, &none) && none.Wall == sandbox.AutoMounts:
		stop.Next.Or = &hone.Next{Flags: []hone.Flag{{Name: "sandbox", Value: "landlock, firejail or none"}}, Remark: "which hide less of the project from the roles"}
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
		if w.Plan.Later {
			continue
		}
		if err := w.raise(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Run runs a command behind the walls. It replaces the environment of the command by theirs, and
// advises of which protected files the command changed, and whether it seems to need the network.
func (w *Walls) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return behind{walls: w}.Run(ctx, c)
}

// With returns a runner behind the same walls, whose commands also have the
// user's variables of these names, which a model's commands do not have.
func (w *Walls) With(names []string) sandbox.Runner {
	var vars []string
	for _, kv := range w.host.environ() {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(names, name) && !slices.Contains([]string{"HOME", "PATH", "TMPDIR"}, name) {
			vars = append(vars, kv)
		}
	}
	return behind{walls: w, vars: vars}
}

// behind runs commands behind walls.
type behind struct {
	walls *Walls
	vars  []string // KEY=VALUE, in addition to those of all commands
	model bool     // a model asks for them: files of the user's own tools are read-only
	lines bool     // it wrote them, as lines of a shell
	same  []string // the lines that mean what they mean to the run itself, such as the check
}

// unattended returns an environment in which git opens no editor, asks no questions and cannot sign: a model
// cannot answer, and must not use the user's keys.
func unattended(env []string) []string {
	n, _ := strconv.Atoi(sandbox.EnvValue(env, "GIT_CONFIG_COUNT")) // the user's own settings stay
	vars := []string{"GIT_EDITOR=:", "GIT_SEQUENCE_EDITOR=:", "GIT_TERMINAL_PROMPT=0"}
	for _, setting := range []string{"commit.gpgSign", "tag.gpgSign", "tag.forceSignAnnotated", "log.showSignature",
		"gpg.program", "gpg.x509.program", "gpg.ssh.program", "gpg.ssh.defaultKeyCommand"} { // the program false fails
		vars = append(vars, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, setting), fmt.Sprintf("GIT_CONFIG_VALUE_%d=false", n))
		n++
	}
	return slices.Concat(env, vars, []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", n)})
}

// Run is that of [Walls].
func (b behind) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	w := b.walls
	if err := w.raise(ctx); err != nil {
		return sandbox.Result{}, err
	}
	c.Env = slices.Concat(w.env, b.vars)
	if b.lines && !slices.Contains(b.same, c.Argv[len(c.Argv)-1]) {
		c.Env = unattended(c.Env)
	}
	runner := w.built
	if b.model {
		var err error
		if runner, err = w.forModel(ctx); err != nil {
			return sandbox.Result{}, NoWalls(ctx, err)
		}
	}
	result, err := runner.Run(ctx, c)
	made, unsettled := w.settle(ctx)
	result.Repositories = made
	if err = errors.Join(err, unsettled); err != nil {
		err = w.dir.Explain(err)
	}
	if w.Advise == nil {
		return result, err
	}
	notes := commandNotes(result, w.home, w.Settings.Net)
	if failed(result) {
		if w.Grade().Wall != sandbox.NoWall {
			for _, path := range w.deniedCommand(c.Dir).Hidden(outputOf(result)) { // from the root
				result.Hidden = append(result.Hidden, w.Guard.Redact(path))
			}
		}
		notes = append(notes, w.newlyDenied(c.Dir, outputOf(result))...)
	}
	for _, n := range notes {
		err = errors.Join(err, w.Advise(n))
	}
	return result, err
}

// It takes away what commands made that git would obey, also if ctx is done.
func (w *Walls) settle(ctx context.Context) ([]sandbox.Repository, error) {
	if w.watch == nil {
		return nil, nil
	}
	moved, err := w.watch.Settle(context.WithoutCancel(ctx))
	return walldir.Repositories(moved), err
}

// There is one note per cause in a session.
func (w *Walls) newlyDenied(dir, output string) []hone.Notice {
	denied := w.deniedNotes(dir, output)
	if s := w.session; s != nil {
		s.deniedMu.Lock()
		defer s.deniedMu.Unlock()
		maps.DeleteFunc(denied, func(cause, _ string) bool { return slices.Contains(s.denied, cause) })
		s.denied = slices.AppendSeq(s.denied, maps.Keys(denied))
	}
	var notes []hone.Notice
	for _, text := range slices.Sorted(maps.Values(denied)) {
		notes = append(notes, hone.Notice{Text: text, Denied: true})
	}
	return notes
}

// Start runs a command in the background; see [wall.Walls.Start].
func (w *Walls) Start(ctx context.Context, c sandbox.Command) (*sandbox.Running, error) {
	if err := w.raise(ctx); err != nil {
		return nil, err
	}
	c.Env = w.env
	return w.built.Start(ctx, c)
}

// Grade returns the grade of the walls; zero before they are built.
func (w *Walls) Grade() sandbox.Grade {
	if w.built == nil {
		return sandbox.Grade{}
	}
	return w.built.Grade()
}

// Close removes the walls, and the home of their commands.
func (w *Walls) Close() error {
	if w.built == nil {
		return nil
	}
	w.built.Close()
	if w.models != nil && w.models != w.built {
		w.models.Close()
	}
	defer w.dir.Remove()
	if w.watch == nil {
		return nil
	}
	made, err := w.settle(context.Background()) // a command in the background ends without a result
	for _, r := range made {
		w.host.Note(r.Note())
	}
	if err == nil {
		err = w.watch.Forget(w.dir.Repositories)
	}
	return err
}

func (w *Walls) forCopy(dir string) *Walls {
	p, root := w.Plan, w.session.Dir
	c := &Walls{host: w.host, session: w.session, Advise: w.Advise,
		Settings: w.Settings, Plan: loop.WallPlan{Env: p.Env, Vars: p.Vars, Protect: p.Protect, ReadOnly: p.ReadOnly, Hides: p.Hides},
		Root: rebase(root, dir, w.Root)[0], ID: w.ID, Guard: w.Guard, alike: true, homePaths: w.homePaths, home: w.home, watches: w.watches, keeper: w.keeper, secrets: w.secrets}
	if w.built != nil {
		c.Settings.Wall = w.Grade().Wall
	}
	set := &c.Settings
	set.Write, set.Read, set.Hide = rebase(root, dir, set.Write...), rebase(root, dir, set.Read...), rebase(root, dir, set.Hide...)
	return c
}

// root is the tree's; empty if nothing is recorded.
func commandNotes(r sandbox.Result, root string, net bool) (notes []hone.Notice) {
	for _, p := range r.Restored {
		notes = append(notes, hone.Notice{Text: p.Note()})
	}
	for _, p := range r.Repositories {
		notes = append(notes, hone.Notice{Text: p.Note(), Repository: inTree(root, p.Path), Aside: inTree(root, p.MovedTo)})
	}
	if r.OverLimit != "" {
		notes = append(notes, hone.Notice{Text: "a command exceeded its limit of " + r.OverLimit, Next: hone.Next{First: "raise memory or processes in [sandbox] of " + config.HonePath}})
	}
	if failed(r) && !net && sandbox.WantsNetwork(outputOf(r)) {
		notes = append(notes, wantsNet())
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

// The note is about a command that seems to have failed because it has no network.
func wantsNet() hone.Notice {
	return hone.Notice{Text: "the command seems to need the network, which is off behind the walls", Denied: true,
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
