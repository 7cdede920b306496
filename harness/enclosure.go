package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/harness/internal/denied"
	"hone/harness/internal/proof"
	"hone/harness/internal/state"
	"hone/harness/internal/walldir"
	"hone/history"
	"hone/internal/config"
	"hone/internal/gitdir"
	"hone/internal/listing"
	"hone/internal/render"
	"hone/loop"
	"hone/sandbox"
	"hone/sandbox/wall"
	"hone/sandbox/workshop"
	"hone/workspace/secret"
)

// Enclosure says which walls to build. Settings, Root, ID and Guard are
// required.
type Enclosure struct {
	Settings loop.WallSettings
	Root     string // absolute path of the directory that commands may write
	ID       string // part of the name of the directory with the commands' home
	Guard    *secret.Guard
	Doors    []sandbox.Door // ways out of the walls; nil if there are none

	keepVars []string // variables that commands get in addition to those of the settings
	protect  []string // what else is read-only in the tree
	readOnly bool     // the whole tree is read-only
	// guardTools makes the files of the user's own tools read-only to the commands that a
	// model asks for.
	guardTools bool
	proved     bool     // walls of this kind were just proved
	hides      bool     // auto takes only walls that hide
	environ    []string // the complete environment of commands; nil means one that fits the walls
	vars       []string // KEY=VALUE, added to the environment
	homePaths  []string // files of the user's home, as ~/PATH, that the commands' home has too

	home    string   // the directory whose .hone/aside receives repositories; empty means Root
	watches *watches // of the session; nil means walls of their own

	keeper *sandbox.Keeper // nil means that commands may outlive this process where no helper ends them
	early  *wall.Early     // the helper of the first command; nil if there is none yet

	// secrets are the secret files of an earlier search; nil if there was none. Only
	// walls that hide nothing use them: what others hide must be found when they are built.
	secrets *listing.SecretFiles
}

// Enclosed are built walls, with the environment of the commands behind them.
type Enclosed struct {
	*wall.Walls
	env     []string
	secrets listing.SecretFiles
	guard   *secret.Guard
	dir     *walldir.Dir
	root    string
	policy  sandbox.Policy
	watch   *gitdir.Watch // nil if repositories are free to be made
	proved  time.Time     // when walls of this kind were proved; zero if they were not
	guarded modelWalls
	tell    func(string) // the user
	// recovered are notes about what an earlier process left.
	recovered []string
}

var _ sandbox.Runner = (*Enclosed)(nil)

// Run runs a command behind the walls. It replaces the command's environment by
// theirs.
func (e *Enclosed) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	c.Env = e.env
	return e.run(ctx, e.Walls, c)
}

func (e *Enclosed) run(ctx context.Context, behind *wall.Walls, c sandbox.Command) (sandbox.Result, error) {
	result, err := behind.Run(ctx, c)
	made, failed := e.settle(ctx)
	result.Repositories = made
	if err = errors.Join(err, failed); err != nil {
		err = e.dir.Explain(err)
	}
	return result, err
}

// It takes away what commands made that git would obey, also if ctx is done.
func (e *Enclosed) settle(ctx context.Context) ([]sandbox.Repository, error) {
	if e.watch == nil {
		return nil, nil
	}
	moved, err := e.watch.Settle(context.WithoutCancel(ctx))
	return walldir.Repositories(moved), err
}

// Close removes the walls, and the home of their commands.
func (e *Enclosed) Close() error {
	err := errors.Join(e.guarded.close(), e.Walls.Close())
	if e.watch != nil { // a command in the background ends without a result
		made, failed := e.settle(context.Background())
		for _, r := range made {
			e.tell(r.Note())
		}
		if failed == nil {
			failed = e.watch.Forget(e.dir.Aside)
		}
		err = errors.Join(err, failed)
	}
	e.dir.Remove()
	return err
}

// RecoveredNotes says which protected files [Recover] restored before these walls
// were built; nil if there are none.
func (e *Enclosed) RecoveredNotes() []string { return e.recovered }

// Recover restores the protected files of a tree that commands changed, if the hone
// that ran them died before it could, and returns a note for the user about each. A
// configuration that a command created is such a file, so call Recover before
// configuration is read.
func Recover(root string) ([]string, error) { return walldir.Recover(root) }

// CheckState returns an error if hone's state folder is in a tree, or the tree in it. It
// creates nothing.
func CheckState(root string) error { return walldir.CheckState(root) }

// DeniedNotes returns a note for each cause for which a command seems to have failed
// only because of the walls, by cause. The command ran in dir, and environ is the
// user's environment. It can miss a cause, or name a wrong one.
func (e *Enclosed) DeniedNotes(environ []string, dir, output string) map[string]string {
	if e.Grade().Level == sandbox.LevelOpen {
		return nil
	}
	notes := e.deniedCommand(environ, dir).Notes(output)
	for cause, text := range notes {
		notes[cause] = e.guard.Redact(text)
	}
	return notes
}

// Paths are from the root.
func (e *Enclosed) hiddenIn(dir, output string) []string {
	if e.Grade().Level == sandbox.LevelOpen {
		return nil
	}
	paths := e.deniedCommand(nil, dir).Hidden(output)
	for i, p := range paths {
		paths[i] = e.guard.Redact(p)
	}
	return paths
}

// Landlock does not hide secret files.
func (e *Enclosed) deniedCommand(environ []string, dir string) denied.Command {
	c := denied.Command{Policy: e.policy, Root: e.root, Home: e.dir.Path, Dir: dir, Env: e.env, Environ: environ, Keys: KeyVariables()}
	if e.Grade().Wall != sandbox.Landlock {
		c.Secrets = e.secrets.Files
	}
	return c
}

// RestoredNote says whether a protected file that a command changed was restored.
func RestoredNote(r sandbox.Restored) string { return walldir.RestoredNote(r) }

// Enclose builds walls and briefly tries to cross them, unless walls of this kind were
// tried under the same conditions before. If an attempt succeeds, the error is a
// [*hone.Stop] and the walls are not used. The caller closes the result.
func (h Host) Enclose(ctx context.Context, w Enclosure) (*Enclosed, error) {
	if err := sandbox.OwnerOf(w.Root).Check(); err != nil {
		return nil, err
	}
	recovered, err := Recover(w.Root)
	if err != nil {
		return nil, err
	}
	dir, err := walldir.New(w.Root, w.ID)
	if err != nil {
		return nil, err
	}
	e := &Enclosed{dir: dir, root: w.Root, guard: w.Guard, recovered: recovered, tell: h.Note}
	err = h.buildFirst(ctx, e, w)
	if err == nil && !w.proved {
		e.proved, err = proof.Of(ctx, e.Grade())
	}
	if err == nil {
		return e, nil
	}
	if e.Walls != nil {
		err = errors.Join(err, e.Walls.Close())
	}
	dir.Remove()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, err
}

// For Auto package wall chooses, unless the walls must hide the rest of the project.
func (w Enclosure) wallsToTry() []sandbox.Wall {
	if w.hides && sandbox.Wall(w.Settings.Wall) == sandbox.Auto {
		return []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap}
	}
	return []sandbox.Wall{sandbox.Wall(w.Settings.Wall)}
}

func (h Host) buildFirst(ctx context.Context, e *Enclosed, w Enclosure) error {
	kinds := w.wallsToTry()
	var why []string
	for _, wall := range kinds {
		w.Settings.Wall = string(wall)
		err := h.buildWalls(ctx, e, w)
		none, cannot := errors.AsType[*sandbox.WallError](err)
		if !cannot || len(kinds) == 1 {
			return err
		}
		why = append(why, none.Error())
	}
	return &hone.Stop{Kind: hone.KindFailed, Why: "no wall that hides the rest of the project works here: " + strings.Join(why, "; "),
		Next: hone.Next{Verb: hone.Doctor, Or: &hone.Next{Flags: []hone.Flag{{Name: "sandbox", Value: "landlock, firejail or none"}}, Remark: "which hide less of the project from the roles"}}}
}

func (h Host) buildWalls(ctx context.Context, e *Enclosed, w Enclosure) (err error) {
	if w.secrets != nil && sandbox.Wall(w.Settings.Wall) == sandbox.NoWall {
		e.secrets = *w.secrets
	} else if e.secrets, err = listing.FindSecrets(ctx, w.Root, w.Guard); err != nil {
		return err
	}
	if err := checkState(w.Settings); err != nil {
		return err
	}
	hide := slices.Clone(w.Settings.Hide)
	if dir, err := state.Make(); err == nil { // without a state folder there is nothing to hide
		hide = append(hide, dir)
	}
	self := "" // the build cache could show one role of a phase what another one built
	if !w.hides {
		self, _ = os.Executable()
	}
	var known []string
	if !w.Settings.AllowGit {
		if e.watch, err = w.watches.of(ctx, cmp.Or(w.home, w.Root), w.Root); err != nil {
			return err
		}
		if err := e.watch.Save(e.dir.Aside); err != nil {
			return err
		}
		known = e.watch.Known()
	}
	policy, env, err := workshop.Workshop{
		Root: w.Root, Home: e.dir.Path, Repositories: known, Self: self, Environ: h.environ(), Drop: KeyVariables(), Keep: slices.Concat(w.Settings.Env, w.keepVars), Net: w.Settings.Net,
		Write: w.Settings.Write, Read: w.Settings.Read, Hide: append(hide, e.secrets.Paths()...), Protect: w.protect,
		Limits:   commandLimits(w.Settings),
		Unwalled: w.environ != nil && w.Settings.Wall == string(sandbox.NoWall),
	}.Policy()
	if err != nil {
		return err
	}
	if w.readOnly {
		readOnlyTree(&policy, w.Root)
	}
	if err := e.dir.LinkHome(w.homePaths); err != nil {
		return err
	}
	policy.Aside, policy.Records, policy.Doors, policy.As = e.dir.Aside, e.dir.Records, w.Doors, sandbox.OwnerOf(w.Root)
	for _, dir := range policy.Write {
		if !sandbox.Within(e.dir.Path, dir) {
			continue
		}
		if err := policy.As.Own(dir); err != nil { // some programs ask whether they may write, and do not try
			return fmt.Errorf("give the home of commands to their user: %w", err)
		}
	}
	e.policy, e.guarded.keeper = policy, w.keeper
	if w.guardTools {
		e.guarded.readOnly = e.secrets.Tools
	}
	if e.Walls, err = w.early.Build(ctx, sandbox.Wall(w.Settings.Wall), policy); err != nil {
		return err
	}
	e.SetKeeper(w.keeper)
	if w.environ != nil {
		env = w.environ
	}
	e.env = slices.Concat(env, e.OverlayEnv(), w.vars)
	return nil
}

func commandLimits(s loop.WallSettings) sandbox.Limits {
	return sandbox.Limits{Memory: s.Memory, Processes: s.Processes}
}

// What lies in the state folder decides what hone trusts.
func checkState(s loop.WallSettings) error {
	dir, err := state.Dir()
	if err != nil || s.None() {
		return nil
	}
	for _, path := range slices.Concat(s.Read, s.Write) {
		if state.Overlaps(path) {
			return loop.Usage(fmt.Sprintf("commands must not reach hone's state folder %s, but the settings of the walls open %s", dir, path),
				"open smaller directories: read and write of [sandbox] in "+config.HonePath)
		}
	}
	return nil
}

// The tree becomes read-only, whatever the policy allows to write in it.
func readOnlyTree(p *sandbox.Policy, root string) {
	p.Write = slices.DeleteFunc(p.Write, func(path string) bool {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		rel, err := filepath.Rel(root, path)
		return err == nil && filepath.IsLocal(rel)
	})
	p.Read = append(p.Read, root)
}

func wallsEvent(g sandbox.Grade, proved time.Time) history.Walls {
	return history.Walls{Wall: string(g.Wall), Level: string(g.Level), Landlock: g.Landlock, Seccomp: g.Seccomp, Net: g.Net,
		Text: g.String(), Why: g.Why, Open: g.Open, Proved: proved}
}

// Secrets returns the secret files in the tree, as paths from its root with the reason.
// All walls but landlock and none hide them from commands.
func (e *Enclosed) Secrets() []string {
	var lines []string
	for _, f := range e.secrets.Files {
		rel, err := filepath.Rel(e.root, f.Path)
		if err != nil {
			rel = f.Path
		}
		lines = append(lines, e.guard.Redact(fmt.Sprintf("%s (%s)", filepath.ToSlash(rel), f.Why)))
	}
	return lines
}

// SecretsNote tells the user whether the secret files are hidden from commands;
// empty if there are none.
func (e *Enclosed) SecretsNote() string { return secretsNote(e.secrets, e.Grade().Wall) }

// Landlock cannot hide a file in a directory that commands may write.
func secretsNote(s listing.SecretFiles, wall sandbox.Wall) string {
	var parts []string
	files := render.Count(len(s.Files), "secret file")
	switch {
	case len(s.Files) == 0:
	case wall == sandbox.NoWall:
		parts = append(parts, files+" not hidden")
	case wall == sandbox.Landlock:
		parts = append(parts, files+" not hidden: the wall landlock cannot do that")
	default:
		parts = append(parts, fmt.Sprintf("%s hidden from commands; [guard] send in %s allows them", files, config.HonePath))
	}
	if s.Unread > 0 {
		parts = append(parts, render.Count(s.Unread, "file")+" checked for secrets only by name, because there is too much to read")
	}
	if s.Omitted > 0 {
		parts = append(parts, render.Count(s.Omitted, "value")+" of secret files not redacted in output, because there are too many")
	}
	return strings.Join(parts, "; ")
}
