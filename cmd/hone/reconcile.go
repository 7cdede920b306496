package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"hone"
	"hone/check"
	"hone/internal/config"
	"hone/internal/git"
	"hone/loop/reconcile"
	"hone/model"
	"hone/sandbox"
)

// reconcileSettings are all that a reconciliation depends on, resolved: what
// its start event holds.
type reconcileSettings struct {
	runSettings
	System       string        `json:"system"`
	Scope        string        `json:"scope,omitempty"`
	Checker      string        `json:"checker,omitempty"`
	NeedApproval []string      `json:"edits_require_approval,omitempty"`
	NotSent      []string      `json:"not_sent,omitempty"`
	Check        string        `json:"check,omitempty"`
	CheckTime    time.Duration `json:"check_timeout_ns,omitempty"`
	CheckEnv     []string      `json:"check_env,omitempty"`
}

func (a *app) reconcileCommand() *cobra.Command {
	var f loopFlags
	c := &cobra.Command{
		Use:   "reconcile [SOURCE_DIR]",
		Short: "bring code and specifications into sync",
		Long: `reconcile sends the whole code base, its specifications (specs/*.md) and how those differ from
main to a model, applies the edits that come back, and runs the correctness checker named in
.config/bork.json. What it finds begins the next round. Changes to specs/ are put to you.

SOURCE_DIR limits which files are sent and may be changed; specs/ always belongs.`,
		Example: `  hone reconcile
  hone reconcile --model ollama/qwen3-coder --check "make test"
  hone prompt reconcile`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.valid(c); err != nil {
				return err
			}
			return a.startReconcile(c.Context(), f, args)
		},
	}
	f.register(c, 0)
	c.Flags().Lookup("rounds").Usage = fmt.Sprintf("most rounds (default %d)", reconcile.Rounds)
	return c
}

// startReconcile resolves everything before anything is written.
func (a *app) startReconcile(ctx context.Context, f loopFlags, args []string) error {
	root, s, limits, err := a.resolveReconcile(f, args)
	if err != nil {
		return err
	}
	if !s.Walls.none() && s.Checker != "" && s.Check == "" {
		a.say("note", "the correctness checker is your own program and is not walled in; --sandbox is for --check")
	}
	if err := s.Trust.provable(s.Checker != "" || s.Check != ""); err != nil {
		return err
	}
	start, err := startOf("reconcile", root, s.Model, limits, s)
	if err != nil {
		return err
	}
	return a.begin(ctx, root, start, f.output, func(o session) error {
		o.repo.Prepare(ctx)
		return a.driveReconcile(ctx, o, s)
	}, s.Model)
}

// resumeReconcile goes on with a run by the settings in its start event.
func (a *app) resumeReconcile(ctx context.Context, o session, start hone.Start, baseURL string) error {
	var s reconcileSettings
	if err := a.goOn(&o, start, &s, baseURL, &s.Model); err != nil {
		return err
	}
	if o.repo == nil && o.replayed == nil {
		return &hone.Stop{Exit: hone.ExitEnvironment, Why: o.root + " is no Git repository any more",
			Hint: "bring its .git back, then: hone resume " + o.journal.Run()}
	}
	return a.driveReconcile(ctx, o, s)
}

// driveReconcile puts loop, check and rules together.
func (a *app) driveReconcile(ctx context.Context, o session, s reconcileSettings) error {
	l := s.loop(a, o.repo, o.models[0])
	r := o.run(l.Rules(), s.runSettings)
	var walls *runWalls
	if s.Check != "" {
		walls = a.runWalls(o, r, s.runSettings, s.CheckEnv, l.Rules().Immutable)
	}
	return a.drive(ctx, o, r, driven{
		loop: "reconcile", settings: s.runSettings, walls: walls,
		round: func(live io.Writer) hone.Round {
			made := func(dir string, walls *runWalls) check.Func {
				return a.reconcileCheck(dir, s, l.Guard.Redact, walls.runner(), live)
			}
			r.Check = made(o.root, walls)
			s.Trust.prove(r, o.root, walls, made)
			return l.Round
		},
	})
}

// loop is the loop of the settings.
func (s reconcileSettings) loop(a *app, repo *git.Repo, m model.Model) reconcile.Loop {
	return reconcile.Loop{
		Editor: s.Model.role("editor", s.System, m), Repo: repo, Scope: s.Scope, Checker: s.Checker,
		Approve: s.NeedApproval, NotSent: s.NotSent, Guard: a.guard(s.runSettings),
	}
}

// reconcileCheck is the correctness checker, and the command of --check beside
// it; nil where there is neither. The checker keeps its environment, the
// command is not given providers' keys (ruling G6). The command may stand
// behind walls; the checker is the person's own program and never does.
func (a *app) reconcileCheck(root string, s reconcileSettings, redact func(string) string, runner sandbox.Runner, live io.Writer) check.Func {
	var checks []check.Func
	if s.Checker != "" {
		checks = append(checks, check.Bork(sandbox.None{}, check.BorkConfig{
			Root: root, Checker: s.Checker, Env: a.environ, Timeout: s.CheckTime, Redact: redact, Live: live}))
	}
	if s.Check != "" {
		checks = append(checks, check.Command(runner, check.CommandConfig{
			Command: s.Check, Dir: root, Env: sandbox.CleanEnv(a.environ, without(keyVariables(), s.CheckEnv)),
			Timeout: s.CheckTime, Redact: redact, Live: live}))
	}
	if len(checks) == 0 {
		return nil
	}
	return check.All(checks...)
}

// resolveReconcile reads flags, environment and configuration, in that order
// of precedence.
func (a *app) resolveReconcile(f loopFlags, args []string) (root string, s reconcileSettings, l hone.Limits, err error) {
	if root, err = reconcileRoot(f.dir); err != nil {
		return root, s, l, err
	}
	file, loops, err := loadConfig(root)
	if err != nil {
		return root, s, l, configError(err)
	}
	bork, err := config.Bork(root)
	if err != nil {
		return root, s, l, configError(err)
	}
	s = reconcileSettings{
		System: reconcile.System, Checker: bork.Checker, NeedApproval: bork.Approve, NotSent: bork.NotSent,
		Check: cmp.Or(f.check, file.Check.Command), CheckTime: file.Check.Timeout.Value(), CheckEnv: file.Check.Env,
	}
	if s.Scope, err = scope(root, f.dir, args); err != nil {
		return root, s, l, err
	}
	s.runSettings, err = a.resolveRun(f, root, file)
	s.Approve = cmp.Or(f.approve, loops.Reconcile.Approve, "ask")
	rounds := cmp.Or(loops.Reconcile.Rounds, file.Limits.Rounds, reconcile.Rounds)
	return root, s, resolveLimits(f.limits, file.Limits, rounds), err
}

// reconcileRoot is the top of the repository (ruling B12).
func reconcileRoot(dir string) (string, error) {
	abs, err := folder(dir)
	if err != nil {
		return "", err
	}
	root, err := git.Root(abs)
	if err != nil {
		return "", usage(err.Error(), "reconcile works on a Git repository: cd into one, name it with --dir, or: git init")
	}
	return root, nil
}

// scope is SOURCE_DIR as a path from the root; empty where it is all of it.
func scope(root, dir string, args []string) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	at := args[0]
	if !filepath.IsAbs(at) {
		at = filepath.Join(dir, at)
	}
	real, err := filepath.EvalSymlinks(at)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if info, statErr := os.Stat(real); err != nil || statErr != nil || !info.IsDir() {
		return "", usage(fmt.Sprintf("SOURCE_DIR %s is no folder", args[0]), "hone reconcile src")
	}
	rel, err := filepath.Rel(root, real)
	if err != nil || !filepath.IsLocal(rel) {
		return "", usage(fmt.Sprintf("SOURCE_DIR %s does not lie in the repository %s", args[0], root), "name the repository with --dir")
	}
	if rel == "." {
		return "", nil
	}
	return filepath.ToSlash(rel), nil
}
