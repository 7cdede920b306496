package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hone"
	"hone/check"
	"hone/internal/render"
	"hone/loop/implement"
	"hone/model"
	"hone/sandbox"
	"hone/workspace"
)

// implementFlags are the loop's own beside those of every loop.
type implementFlags struct {
	loopFlags
	query        string
	queryFile    string
	maxOutput    int
	buildTimeout time.Duration
}

// implementSettings are all that an implementation depends on, resolved: what
// its start event holds. The code base is read in the first round.
type implementSettings struct {
	runSettings
	System       string        `json:"system"`
	Query        string        `json:"query"`
	Build        bool          `json:"build"` // there is a build.sh
	BuildTimeout time.Duration `json:"build_timeout_ns"`
	MaxOutput    int           `json:"max_output"` // bytes of the build's output that the model is shown
	Check        string        `json:"check,omitempty"`
	CheckTime    time.Duration `json:"check_timeout_ns,omitempty"`
	CheckEnv     []string      `json:"check_env,omitempty"`
}

func (a *app) implementCommand() *cobra.Command {
	var f implementFlags
	c := &cobra.Command{
		Use:   "implement",
		Short: "query in, build passing out",
		Long: `implement sends a query and the code base to a model, writes the files that it answers with, all or
none, and runs build.sh. What the build prints begins the next round, until it passes.

It works in the folder that it is started in: query.txt, codeRollup.txt, gemini-key.txt and
gemini-system-prompt.txt are used as they are where they are there. Without them --query says what is
wanted, hone makes the rollup itself, the provider's usual variable holds the key, and a text of hone's
own teaches the model how to answer. --check stands in for build.sh, or joins it.

Every query, response and build output is kept in logs/.`,
		Example: `  hone implement
  hone implement --query "add a --json flag to the list command" --check "make test"`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.valid(c); err != nil {
				return err
			}
			return a.startImplement(c.Context(), f)
		},
	}
	f.register(c, 0)
	c.Flags().Lookup("rounds").Usage = fmt.Sprintf("most rounds (default %d)", implement.Rounds)
	f.registerQuery(c)
	c.Flags().IntVar(&f.maxOutput, "max-output", 0, "bytes of the build's output that the model is shown (default 65536)")
	c.Flags().DurationVar(&f.buildTimeout, "build-timeout", 0, "ends the build with all its children (default 10m)")
	return c
}

// valid says what is wrong with the flags by themselves.
func (f *implementFlags) valid(c *cobra.Command) error {
	for flag, bad := range map[string]bool{"max-output": f.maxOutput < 1, "build-timeout": f.buildTimeout <= 0} {
		if bad && c.Flags().Changed(flag) {
			return usage(fmt.Sprintf("--%s must be more than nothing", flag), "hone help "+c.Name())
		}
	}
	return f.loopFlags.valid(c)
}

func (f *implementFlags) registerQuery(c *cobra.Command) {
	c.Flags().StringVar(&f.query, "query", "", "what is wanted, in place of query.txt")
	c.Flags().StringVar(&f.queryFile, "query-file", "", "the file that says what is wanted, in place of query.txt")
}

// startImplement resolves everything before anything is written.
func (a *app) startImplement(ctx context.Context, f implementFlags) error {
	root, s, limits, err := a.resolveImplement(f)
	if err != nil {
		return err
	}
	if !s.Build && s.Check == "" {
		return usage("nothing says whether the result is right: there is no build.sh, and no --check",
			`hone init implement, or: hone implement --check "make test"`)
	}
	start, err := startOf("implement", root, s.Model, limits, s)
	if err != nil {
		return err
	}
	return a.begin(ctx, root, start, f.output, func(o session) error { return a.driveImplement(ctx, o, s) }, s.Model)
}

// resumeImplement goes on with a run by the settings in its start event.
func (a *app) resumeImplement(ctx context.Context, o session, start hone.Start, baseURL string) error {
	if err := a.takeKey(o.tree); err != nil {
		return err
	}
	var s implementSettings
	if err := a.goOn(&o, start, &s, baseURL, &s.Model); err != nil {
		return err
	}
	return a.driveImplement(ctx, o, s)
}

// driveImplement puts loop, check and rules together.
func (a *app) driveImplement(ctx context.Context, o session, s implementSettings) error {
	l := s.loop(a, o.models[0])
	r := o.run(l.Rules(), s.runSettings)
	r.Own = implement.Own
	walls := a.runWalls(o, r, s.runSettings, s.CheckEnv, append([]string{implement.BuildName}, implement.Inputs...))
	return a.drive(ctx, o, r, driven{
		loop: "implement", settings: s.runSettings, walls: walls,
		round: func(live io.Writer) hone.Round {
			if o.replayed == nil {
				l.Say = a.thoughts(o.output)
			}
			r.Check = a.implementCheck(o.root, s, func(runner sandbox.Runner, c check.BuildConfig) check.Func { return l.Build(r, runner, c) }, l.Redact, walls, live)
			s.Trust.prove(r, o.root, walls, func(dir string, walls *runWalls) check.Func {
				return a.implementCheck(dir, s, l.BuildUnlogged, l.Redact, walls, live)
			})
			return l.Round
		},
	})
}

// thoughts prints what a model wants its user to know: on stdout, unless that
// is for the events alone.
func (a *app) thoughts(o outputFlags) func(string) {
	out := a.results(o)
	return func(text string) { fmt.Fprintln(out, render.Escape(text)) }
}

// loop is the loop of the settings.
func (s implementSettings) loop(a *app, m model.Model) implement.Loop {
	g := a.guard(s.runSettings)
	return implement.Loop{Coder: s.Model.role("coder", s.System, m), Query: s.Query, Guard: g, Redact: g.Redact}
}

// implementCheck is build.sh, as build runs it, and the command of --check
// beside it. Neither is given providers' keys (ruling G6).
func (a *app) implementCheck(root string, s implementSettings, build func(sandbox.Runner, check.BuildConfig) check.Func, redact func(string) string, walls *runWalls, live io.Writer) check.Func {
	env := sandbox.CleanEnv(a.environ, without(keyVariables(), s.CheckEnv))
	var checks []check.Func
	if s.Build {
		checks = append(checks, build(walls.runner(), check.BuildConfig{
			Root: root, Env: env, Timeout: s.BuildTimeout, MaxText: s.MaxOutput, Live: live}))
	}
	if s.Check != "" {
		checks = append(checks, check.Command(walls.runner(), check.CommandConfig{
			Command: s.Check, Dir: root, Env: env, Timeout: s.CheckTime, Redact: redact, Live: live}))
	}
	return check.All(checks...)
}

// resolveImplement reads flags, environment, the folder's files and the
// configuration.
func (a *app) resolveImplement(f implementFlags) (root string, s implementSettings, l hone.Limits, err error) {
	if root, err = folder(f.dir); err != nil {
		return root, s, l, err
	}
	file, loops, err := loadConfig(root)
	if err != nil {
		return root, s, l, configError(err)
	}
	tree, err := workspace.Open(root, workspace.Options{})
	if err != nil {
		return root, s, l, err
	}
	defer tree.Close()
	if err := a.takeKey(tree); err != nil {
		return root, s, l, err
	}
	f.standard = "gemini/gemini-2.5-pro"
	s = implementSettings{
		BuildTimeout: cmp.Or(f.buildTimeout, loops.Implement.BuildTimeout.Value()), MaxOutput: cmp.Or(f.maxOutput, loops.Implement.MaxOutput, check.MaxText),
		Check: cmp.Or(f.check, file.Check.Command), CheckTime: file.Check.Timeout.Value(), CheckEnv: file.Check.Env,
	}
	if s.Query, err = f.resolveQuery(tree); err != nil {
		return root, s, l, err
	}
	if s.System, _, err = input(tree, implement.SystemName); err != nil {
		return root, s, l, err
	}
	s.System = cmp.Or(s.System, implement.System)
	_, s.Build, err = input(tree, implement.BuildName)
	if err != nil {
		return root, s, l, err
	}
	s.runSettings, err = a.resolveRun(f.loopFlags, root, file)
	s.Approve = "none"
	return root, s, resolveLimits(f.limits, file.Limits, cmp.Or(loops.Implement.Rounds, file.Limits.Rounds, implement.Rounds)), err
}

// resolveQuery is what is wanted.
func (f implementFlags) resolveQuery(tree *workspace.Tree) (string, error) {
	switch {
	case f.query != "" && f.queryFile != "":
		return "", usage("--query and --query-file both say what is wanted", "give one of them")
	case f.query != "":
		return f.query, nil
	case f.queryFile != "":
		text, err := os.ReadFile(f.queryFile)
		if err != nil {
			return "", usage("--query-file: "+err.Error(), "name a file that can be read")
		}
		return asked(f.queryFile, string(text))
	}
	text, _, err := input(tree, implement.QueryName)
	if err != nil {
		return "", err
	}
	return asked(implement.QueryName, text)
}

// asked is a query out of a file, unless nobody has written one yet.
func asked(name, text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", usage(fmt.Sprintf("there is no query: %s is missing or empty", name), `write it, or: hone implement --query "what is wanted"`)
	}
	if starter, err := starters.ReadFile("starters/implement/" + implement.QueryName); err == nil && text == string(starter) {
		return "", usage(name+" still holds the starter's text", "say in it what you want")
	}
	return text, nil
}

// input reads one of the folder's files. A link is not followed: what it leads
// to was not put into the folder.
func input(tree *workspace.Tree, name string) (text string, ok bool, err error) {
	b, _, err := tree.Read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, usage(err.Error(), "put the file itself there")
	}
	return string(b), true, nil
}

// takeKey lets gemini-key.txt stand in for the variable, in this process
// alone, and keeps it out of everything that is printed.
func (a *app) takeKey(tree *workspace.Tree) error {
	text, ok, err := input(tree, implement.KeyName)
	if err != nil || !ok {
		return err
	}
	key := strings.TrimSpace(text)
	if key == "" {
		return usage(implement.KeyName+" is empty", "write the key into it, or remove it and set GEMINI_API_KEY")
	}
	env := a.env
	a.env = func(name string) string {
		if name == providers()[0].keys[0] {
			return key
		}
		return env(name)
	}
	if clean := redactor(knownKeys(a.env)); clean != nil {
		a.out, a.err = redacted{a.out, clean}, redacted{a.err, clean}
	}
	return nil
}
