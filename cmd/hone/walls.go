package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"hone"
	"hone/cmd/hone/screen"
	"hone/internal/config"
	"hone/sandbox"
	"hone/sandbox/prove"
	"hone/workspace"
)

// wallSettings are the walls of a run's commands, resolved: what its start
// event holds. Paths are absolute. The zero value is no walls.
type wallSettings struct {
	Wall      string   `json:"wall,omitempty"` // empty and "none": no walls
	Net       bool     `json:"net,omitempty"`
	Write     []string `json:"write,omitempty"`
	Read      []string `json:"read,omitempty"`
	Hide      []string `json:"hide,omitempty"`
	Env       []string `json:"env,omitempty"` // names of variables that are passed on
	Memory    int64    `json:"memory,omitempty"`
	Processes int      `json:"processes,omitempty"`
}

// none reports whether commands run with the person's own rights.
func (s wallSettings) none() bool { return s.Wall == "" || s.Wall == string(sandbox.NoWall) }

// wallFlags are those of every loop.
type wallFlags struct {
	wall string
	net  bool

	standard string // the loop's own default; empty: none
}

// register adds the flags of a loop whose commands are build.sh and --check.
func (f *wallFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.wall, "sandbox", "", "walls for build.sh and --check: auto, hidden, bwrap, landlock, firejail or none (default none)")
	fs.BoolVar(&f.net, "net", false, "let commands behind walls reach the network")
}

// wallNames are what a flag may name.
func wallNames() []sandbox.Wall {
	return []sandbox.Wall{sandbox.Auto, sandbox.Hidden, sandbox.Bubblewrap, sandbox.Landlock, sandbox.Firejail, sandbox.NoWall}
}

// knownWall says what is wrong with a flag that names a wall.
func knownWall(flag, name string) error {
	if name == "" || slices.Contains(wallNames(), sandbox.Wall(name)) {
		return nil
	}
	return usage(fmt.Sprintf("--%s %s is not auto, hidden, bwrap, landlock, firejail or none", flag, name), "hone doctor, to see which can be had here")
}

// resolveWalls resolves flag, file and default.
func resolveWalls(f wallFlags, file config.Sandbox, root, standard string) (wallSettings, error) {
	s := wallSettings{Wall: cmp.Or(f.wall, file.Wall, standard), Net: f.net || file.Net,
		Env: file.Env, Memory: int64(file.Memory), Processes: file.Processes}
	for _, list := range []struct {
		from []string
		to   *[]string
	}{{file.Write, &s.Write}, {file.Read, &s.Read}, {file.Hide, &s.Hide}} {
		var err error
		if *list.to, err = placedAll(root, list.from); err != nil {
			return s, err
		}
	}
	for i, p := range s.Write {
		if _, err := os.Stat(p); err != nil {
			return s, usage(config.HonePath+": sandbox.write: "+file.Write[i]+" is not there", "make it, or take it out of the list")
		}
	}
	return s, nil
}

// placedAll are paths that a person wrote, absolute; nil for none.
func placedAll(from string, paths []string) ([]string, error) {
	var all []string
	for _, p := range paths {
		at, err := placed(from, p)
		if err != nil {
			return nil, err
		}
		all = append(all, at)
	}
	return all, nil
}

// placed is a path that a person wrote, absolute: from their home where it
// begins with ~, else from a folder.
func placed(from, path string) (string, error) {
	rest, home := strings.CutPrefix(path, "~")
	switch {
	case home && (rest == "" || rest[0] == '/'):
		at, err := os.UserHomeDir()
		if err != nil {
			return "", usage(path+": "+err.Error(), "write the path whole")
		}
		return filepath.Join(at, rest), nil
	case filepath.IsAbs(path):
		return filepath.Clean(path), nil
	}
	return filepath.Join(from, path), nil
}

// wanted says what walls are to be built.
type wanted struct {
	wallSettings
	root    string
	id      string   // names the folder that commands work with
	keep    []string // variables that are passed on beside those of the settings
	protect []string // what stays read-only in the tree beside the usual
	reading bool     // all of the tree stays read-only
	proved  bool     // walls of the kind were proved a moment before
	hides   bool     // auto takes none but walls that hide (ruling A10)
	environ []string // the whole environment of commands; nil makes one that fits the walls
	vars    []string // KEY=VALUE, beside those
	home    []string // what of the person's home stands in that of the commands too, as ~/PATH
	guard   *workspace.Guard
	doors   []sandbox.Door
}

// enclosed are walls that stand, and what commands behind them work with.
type enclosed struct {
	*sandbox.Walls
	env     []string
	secrets secretFiles
	folder  *wallFolder
}

var _ sandbox.Runner = (*enclosed)(nil)

// Run runs a command behind the walls. It has their environment, whatever
// other it was given.
func (e *enclosed) Run(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	c.Env = e.env
	return e.Walls.Run(ctx, c)
}

// Close takes the walls down, and removes what commands worked with.
func (e *enclosed) Close() error {
	err := e.Walls.Close()
	e.folder.remove()
	return err
}

// walls builds walls and proves them in short: one that does not hold is not
// used. Whoever calls it closes them.
func (a *app) walls(ctx context.Context, w wanted) (*enclosed, error) {
	folder, err := newWallFolder(w.root, w.id)
	if err != nil {
		return nil, err
	}
	e := &enclosed{folder: folder}
	err = a.raiseOne(ctx, e, w)
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
func (w wanted) kinds() []sandbox.Wall {
	if w.hides && sandbox.Wall(w.Wall) == sandbox.Auto {
		return []sandbox.Wall{sandbox.Hidden, sandbox.Bubblewrap}
	}
	return []sandbox.Wall{sandbox.Wall(w.Wall)}
}

// raiseOne builds walls of the first kind that can be had.
func (a *app) raiseOne(ctx context.Context, e *enclosed, w wanted) error {
	kinds := w.kinds()
	var why []string
	for _, wall := range kinds {
		w.Wall = string(wall)
		err := a.raise(ctx, e, w)
		none, cannot := errors.AsType[*sandbox.WallError](err)
		if !cannot || len(kinds) == 1 {
			return err
		}
		why = append(why, none.Error())
	}
	return &hone.Stop{Exit: hone.ExitEnvironment, Result: "failed", Why: "no wall that hides the rest of the project can be had: " + strings.Join(why, "; "),
		Hint: "hone doctor, to see what is missing; --sandbox landlock, firejail or none hides less of the project from the roles"}
}

// raise builds the walls.
func (a *app) raise(ctx context.Context, e *enclosed, w wanted) (err error) {
	if e.secrets, err = findSecrets(ctx, w.root, w.guard); err != nil {
		return err
	}
	policy, env, err := sandbox.Workshop{
		Root: w.root, Home: e.folder.dir, Environ: a.environ, Drop: keyVariables(), Keep: slices.Concat(w.Env, w.keep), Net: w.Net,
		Write: w.Write, Read: w.Read, Hide: slices.Concat(w.Hide, e.secrets.paths), Protect: w.protect,
		Limits: sandbox.Limits{Memory: w.Memory, Processes: w.Processes},
	}.Policy()
	if err != nil {
		return err
	}
	if w.reading {
		readOnly(&policy, w.root)
	}
	if err := linkHome(filepath.Join(e.folder.dir, "home"), w.home); err != nil {
		return err
	}
	policy.Aside, policy.Doors = e.folder.aside, w.doors
	e.env = env
	if w.environ != nil {
		e.env = w.environ
	}
	e.env = slices.Concat(e.env, w.vars)
	e.Walls, err = sandbox.Build(ctx, sandbox.Wall(w.Wall), policy)
	return err
}

// linkHome has paths of the person's home stand at the same place in another,
// where nothing is there yet.
func linkHome(home string, paths []string) error {
	for _, p := range paths {
		target, err := placed("", p)
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

// readOnly lets a tree be read and not written, whatever else the policy says
// may be written in it.
func readOnly(p *sandbox.Policy, root string) {
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
		return &hone.Stop{Exit: hone.ExitEnvironment, Result: "failed", Why: err.Error(),
			Hint: "hone doctor -v; another wall may hold: --sandbox bwrap or --sandbox landlock"}
	}
	return nil
}

// graded is a grade as a run's journal holds it.
func graded(g sandbox.Grade) hone.Walls {
	return hone.Walls{Wall: string(g.Wall), Level: string(g.Level), Landlock: g.Landlock, Seccomp: g.Seccomp, Net: g.Net,
		Text: g.String(), Why: g.Why, Open: g.Open}
}

// told says what becomes of the files that are secret; empty where there is
// nothing to say. Landlock cannot take a file out of a folder that may be
// written, and no wall is none.
func (s secretFiles) told(wall sandbox.Wall) string {
	var parts []string
	files := screen.Count(len(s.paths), "secret file")
	switch {
	case len(s.paths) == 0:
	case wall == sandbox.NoWall:
		parts = append(parts, files+" not hidden")
	case wall == sandbox.Landlock:
		parts = append(parts, files+" not hidden: the wall landlock cannot do that")
	default:
		parts = append(parts, fmt.Sprintf("%s hidden from commands; [guard] send in %s lets them through", files, config.HonePath))
	}
	if s.unread > 0 {
		parts = append(parts, screen.Count(s.unread, "file")+" only looked at by name for secrets, as there is too much to read")
	}
	return strings.Join(parts, "; ")
}
