package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/failure"
	"hone/harness"
	"hone/internal/config"
	"hone/internal/git"
	"hone/internal/render"
	"hone/loop"
	"hone/sandbox"
	"hone/story"
)

type checkFlags struct {
	config.Values  // that were given
	dir            string
	trust          bool
	json           bool
	as, sarif      string
	hook           string // of hookAgents; empty: it is no hook
	hookTimes      int
	verbose, quiet bool
}

func (a *app) checkCommand() *cobra.Command {
	var f checkFlags
	c := helped("check", &cobra.Command{
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := f.valid()
			switch {
			case err != nil:
			case f.hook != "":
				return a.stopHook(c.Context(), f)
			default:
				err = a.check(c.Context(), f)
			}
			if err != nil && f.as != "" && c.Context().Err() == nil {
				a.fail(c, err)
				a.exit = borkFailed
				return nil
			}
			return err
		},
	})
	registerDir(c, &f.dir)
	f.register(c)
	return c
}

// borkFailed is the exit status of a correctness checker that could not run.
const borkFailed = 2

func (f *checkFlags) register(c *cobra.Command) {
	fs := c.Flags()
	f.Values = config.Values{}
	fs.SetNormalizeFunc(wallToo)
	config.AddFlags(fs, f.Values, "", c.Name())
	fs.BoolVar(&f.trust, "trust", false, "run the check of .config/hone.toml without asking (see hone help trust)")
	fs.BoolVar(&f.json, "json", false, "print the result as one JSON object")
	fs.StringVar(&f.sarif, "sarif", "", "also write the findings to `FILE` as SARIF 2.1.0, for code scanning; - is standard output")
	fs.StringVar(&f.as, "as", "", "print the findings as a correctness checker does")
	config.SetRule(fs, "bork|", "as")
	fs.StringVar(&f.hook, "hook", "", "be the Stop hook of this agent: send it back to work while the check fails")
	config.SetRule(fs, strings.Join(hookAgents, "|"), "hook")
	config.SetRule(fs, "positive", "hook-times")
	fs.IntVar(&f.hookTimes, "hook-times", 3, "with --hook, how often in a row the agent is sent back")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show the check's output, and complete findings")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print only findings and errors")
}

func (f *checkFlags) valid() error {
	outputs := 0
	for _, set := range []bool{f.json, f.sarif == "-", f.as != "", f.hook != ""} {
		if set {
			outputs++
		}
	}
	if outputs > 1 {
		return failure.Usage("--json, --as, --hook and --sarif - all write to standard output", "give --sarif the name of a file, or use only one of them")
	}
	return nil
}

func (a *app) check(ctx context.Context, f checkFlags) error {
	a.trust = f.trust
	o, err := a.oneCheck(ctx, f)
	if _, missing := os.Stat(filepath.Dir(f.sarif)); err == nil && missing != nil { // the check may take an hour
		err = cannotCreate(f.sarif, missing)
	}
	if err != nil {
		return err
	}
	a.conceal(o.Guard)
	if f.verbose {
		o.Live = shownOn(a.err, o.Guard)
		o.Walled = a.sayWalls
	}
	began := time.Now()
	found, hints, err := a.host().CheckOnce(ctx, o)
	if live, ok := o.Live.(*shown); ok {
		live.Flush()
	}
	if err != nil {
		return err
	}
	r := checkResult{Command: o.Command, Version: version(), Findings: found, Took: time.Since(began)}
	if f.sarif != "" {
		err = a.writeSARIF(r, o.Root, f.sarif)
	}
	switch { // a SARIF file that cannot be written does not keep the findings from the user
	case f.sarif == "-":
	case f.json:
		err = cmp.Or(err, r.JSON(a.out))
	case f.as != "":
		err = cmp.Or(err, r.Bork(a.out))
	default:
		err = cmp.Or(err, r.Text(a.out, f.verbose))
	}
	if err != nil {
		return err
	}
	a.exit = r.Exit()
	if f.as != "" && a.exit == failure.ExitStatus(hone.KindFailed) {
		a.exit = borkFailed
	}
	if r.Broken() {
		a.say("error", "the check could not run")
	}
	if !f.quiet && f.as == "" {
		a.sayPlain("%s (%s)", r.Summary(), render.Duration(r.Took))
	}
	if a.exit != 0 && f.as == "" {
		for _, hint := range hints {
			a.say("hint", strings.TrimSpace(failure.NoticeText(hint)))
		}
	}
	return nil
}

func (a *app) oneCheck(ctx context.Context, f checkFlags) (o harness.OneCheck, err error) {
	if o.Root, err = loop.AbsDir(f.dir); err != nil {
		return o, err
	}
	file, err := a.loadConfig(o.Root)
	if err != nil {
		return o, err
	}
	v := file.For("", a.env, f.Values)
	if o.Command = config.Check.In(v); o.Command == "" {
		return o, failure.Usage("there is no check to run", `hone check --check "make test", or set "command" in the [check] section of `+config.HonePath)
	}
	if err := loop.CheckLine(o.Command); err != nil {
		return o, err
	}
	n, err := a.startNeeds(o.Root, file, f.Values)
	if err == nil {
		err = a.host().Trusted(ctx, n)
	}
	if err != nil {
		return o, err
	}
	o.Timeout, o.Env, o.Values = config.CheckTimeout.In(v), config.CheckEnv.In(v), v
	if err := harness.ValidFormat(v, file); err != nil {
		return o, err
	}
	if o.Walls, err = a.host().ResolveWalls(v, o.Root); err != nil {
		return o, err
	}
	if o.Walls.Absent = o.Walls.Wall == sandbox.Auto && !a.host().HasWalls(); o.Walls.Absent {
		a.sayPlain("walls: %s", harness.NoWallsHere)
	}
	o.Guard, err = harness.NewGuard(ctx, a.env, o.Root, config.Send.In(file.Shared()), file.Variables(), a.environ)
	return o, err
}

func (a *app) sayWalls(g sandbox.Grade, notes []string) {
	a.sayPlain("%s", story.WallsText(string(g.Wall), g.String()))
	for _, note := range notes {
		if note != "" {
			a.sayPlain("%s", note)
		}
	}
}

// Its paths are relative to the top of the repository, as code scanning wants them.
func (a *app) writeSARIF(r checkResult, root, name string) error {
	prefix := ""
	if top, err := git.Root(root); err == nil {
		if rel, err := filepath.Rel(top, root); err == nil && rel != "." {
			prefix = filepath.ToSlash(rel)
		}
	}
	if name == "-" {
		return r.SARIF(a.out, prefix)
	}
	file, err := os.Create(name)
	if err == nil {
		err = errors.Join(r.SARIF(redacted{file, a.redactKnown}, prefix), file.Close())
	}
	if err != nil {
		return &failure.Error{Kind: hone.KindFailed, Why: "the SARIF file could not be written", Err: err, Hint: "name another file after --sarif"}
	}
	return nil
}
