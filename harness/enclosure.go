package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hone"
	"hone/history"
	"hone/internal/config"
	"hone/internal/listing"
	"hone/internal/render"
	"hone/loop"
	"hone/sandbox"
	"hone/sandbox/prove"
	"hone/sandbox/wall"
	"hone/sandbox/workshop"
	"hone/workspace/secret"
)

// Enclosure says what walls are to be built. Settings, Root, ID and Guard are
// needed.
type Enclosure struct {
	Settings loop.WallSettings
	Root     string // the folder that commands may write, absolute
	ID       string // names the folder that commands work with
	Guard    *secret.Guard
	Doors    []sandbox.Door // ways out of the walls; nil: there are none

	keep     []string // variables that are passed on beside those of the settings
	protect  []string // what stays read-only in the tree beside the usual
	readOnly bool     // all of the tree stays read-only
	proved   bool     // walls of the kind were proved a moment before
	hides    bool     // auto takes only walls that hide
	environ  []string // the whole environment of commands; nil makes one that fits the walls
	vars     []string // KEY=VALUE, beside those
	home     []string // what of the user's home stands in that of the commands too, as ~/PATH
}

// Enclosed are walls that stand, and what commands behind them work with.
type Enclosed struct {
	*wall.Walls
	env     []string
	secrets listing.SecretFiles
	folder  *wallFolder
}

var _ sandbox.Runner = (*Enclosed)(nil)

// Run runs a command behind the walls. It has their environment, whatever
// other it was given.
func (e *Enclosed) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	c.Env = e.env
	return e.Walls.Run(ctx, c)
}

// Close takes the walls down, and removes what commands worked with.
func (e *Enclosed) Close() error {
	err := e.Walls.Close()
	e.folder.remove()
	return err
}

// Enclose builds walls and proves them in short: walls that do not hold are not
// used. The caller closes them.
func (h Host) Enclose(ctx context.Context, w Enclosure) (*Enclosed, error) {
	folder, err := newWallFolder(w.Root, w.ID)
	if err != nil {
		return nil, err
	}
	e := &Enclosed{folder: folder}
	err = h.raiseOne(ctx, e, w)
	if err == nil && !w.proved {
		err = holds(ctx, e.Grade())
	}
	if err == nil {
		return e, nil
	}
	if e.Walls != nil {
		err = errors.Join(err, e.Walls.Close())
	}
	folder.remove()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, err
}

// kinds are the walls to try, strongest first: what Auto chooses from is its
// own affair, unless it must hide.
func (w Enclosure) kinds() []sandbox.Wall {
	if w.hides && sandbox.Wall(w.Settings.Wall) == sandbox.Auto {
		return []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap}
	}
	return []sandbox.Wall{sandbox.Wall(w.Settings.Wall)}
}

// raiseOne builds walls of the first kind that can be had.
func (h Host) raiseOne(ctx context.Context, e *Enclosed, w Enclosure) error {
	kinds := w.kinds()
	var why []string
	for _, wall := range kinds {
		w.Settings.Wall = string(wall)
		err := h.raise(ctx, e, w)
		none, cannot := errors.AsType[*sandbox.WallError](err)
		if !cannot || len(kinds) == 1 {
			return err
		}
		why = append(why, none.Error())
	}
	return &hone.Stop{Kind: hone.KindFailed, Why: "no wall that hides the rest of the project works here: " + strings.Join(why, "; "),
		Next: hone.Next{Verb: hone.Doctor, Or: "use --sandbox landlock, firejail or none, which hide less of the project from the roles"}}
}

// raise builds the walls.
func (h Host) raise(ctx context.Context, e *Enclosed, w Enclosure) (err error) {
	if e.secrets, err = listing.FindSecrets(ctx, w.Root, w.Guard); err != nil {
		return err
	}
	policy, env, err := workshop.Workshop{
		Root: w.Root, Home: e.folder.dir, Environ: h.environ(), Drop: KeyVariables(), Keep: slices.Concat(w.Settings.Env, w.keep), Net: w.Settings.Net,
		Write: w.Settings.Write, Read: w.Settings.Read, Hide: slices.Concat(w.Settings.Hide, e.secrets.Paths), Protect: w.protect,
		Limits: sandbox.Limits{Memory: w.Settings.Memory, Processes: w.Settings.Processes},
	}.Policy()
	if err != nil {
		return err
	}
	if w.readOnly {
		readOnlyTree(&policy, w.Root)
	}
	if err := linkHome(filepath.Join(e.folder.dir, "home"), w.home); err != nil {
		return err
	}
	policy.Aside, policy.Doors = e.folder.aside, w.Doors
	e.env = env
	if w.environ != nil {
		e.env = w.environ
	}
	e.env = slices.Concat(e.env, w.vars)
	e.Walls, err = wall.Build(ctx, sandbox.Wall(w.Settings.Wall), policy)
	return err
}

// linkHome has paths of the user's home stand at the same place in another,
// where nothing is there yet.
func linkHome(home string, paths []string) error {
	for _, p := range paths {
		target, err := loop.Placed("", p)
		if err != nil {
			return err
		}
		at := filepath.Join(home, filepath.FromSlash(strings.TrimPrefix(p, "~/")))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		if err := os.Symlink(target, at); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// readOnlyTree lets a tree be read and not written, whatever else the policy says
// may be written in it.
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

// holds tries in short to cross walls of the kind, and is an error where that
// works though it should not.
func holds(ctx context.Context, g sandbox.Grade) error {
	if g.Level == sandbox.LevelOpen {
		return nil
	}
	report, err := prove.Short(ctx, g.Wall)
	if err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return &hone.Stop{Kind: hone.KindFailed, Why: err.Error(),
			Next: hone.Next{Verb: hone.Doctor, Or: "try another wall: --sandbox bwrap or --sandbox landlock"}}
	}
	return nil
}

// graded is a grade as a run's journal holds it.
func graded(g sandbox.Grade) history.Walls {
	return history.Walls{Wall: string(g.Wall), Level: string(g.Level), Landlock: g.Landlock, Seccomp: g.Seccomp, Net: g.Net,
		Text: g.String(), Why: g.Why, Open: g.Open}
}

// Secrets are the secret files of the tree, absolute. Walls other than landlock
// and none hide them from commands.
func (e *Enclosed) Secrets() []string { return e.secrets.Paths }

// SecretsNote tells the user whether the secret files are hidden from commands;
// empty if there are none.
func (e *Enclosed) SecretsNote() string { return secretsNote(e.secrets, e.Grade().Wall) }

// secretsNote is SecretsNote for files that were found and a wall. Landlock cannot
// hide a file in a directory that commands may write.
func secretsNote(s listing.SecretFiles, wall sandbox.Wall) string {
	var parts []string
	files := render.Count(len(s.Paths), "secret file")
	switch {
	case len(s.Paths) == 0:
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
	return strings.Join(parts, "; ")
}
