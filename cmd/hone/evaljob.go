package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hone"
	"hone/cmd/hone/eval"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/group"
	"hone/harness"
	"hone/internal/config"
	"hone/internal/render"
	"hone/loop"
	"hone/sandbox"
	"hone/workspace/clone"
)

func (a *app) checkFileArgs(s *eval.Suite, c eval.Case, k loop.Kind) error {
	given, _, err := a.parseOnly(k, c.Args)
	if err != nil {
		hint := "hone help " + k.Name
		if f, ok := failure.Explain(err, ""); ok {
			hint = f.Hint
		}
		return s.Wrong(c, "args", err.Error(), hint)
	}
	for _, f := range given {
		if slices.Contains(drivenFlags, f.Name) {
			return s.Wrong(c, "args", "eval sets --"+f.Name+" of the loops itself", "remove it")
		}
		if !slices.Contains(loop.FileFlags(), f.Name) {
			return s.Wrong(c, "args", "--"+f.Name+" may not stand in a file of cases, because it opens something", fmt.Sprintf("type it: hone eval %s -m MODEL -- --%s …", failure.Quoted(s.File), f.Name))
		}
	}
	return nil
}

// drivenFlags are the flags of the loops that eval sets itself: its own -m, --times and --json come before --.
var drivenFlags = []string{"ack", "attempts", "dir", "json", "model"}

// What is wrong with a flag by itself is said when a try is prepared.
func (a *app) checkTypedArgs(k loop.Kind, typed []string) error {
	given, _, _ := a.parseOnly(k, typed)
	for _, f := range given {
		if slices.Contains(drivenFlags, f.Name) {
			return failure.Usage("after --, eval takes flags of the loops, but sets --"+f.Name+" itself", "leave it out; before --, eval has -m, --times and --json")
		}
	}
	return nil
}

// parseOnly returns the flags that the arguments of a loop's command have, and what else they are.
func (a *app) parseOnly(k loop.Kind, args []string) (given []*pflag.Flag, rest []string, err error) {
	own := *a
	command := own.loopCommandFor(k, nil)
	if args = append([]string{k.Name}, args...); k.Rewrite != nil {
		args = k.Rewrite(args)
	}
	if err := command.ParseFlags(args[1:]); err != nil {
		return nil, nil, flagError(command, err)
	}
	command.Flags().Visit(func(f *pflag.Flag) { given = append(given, f) })
	return given, command.Flags().Args(), nil
}

// The command of such a loop starts one run.
func evalLoops() (all []loop.Kind) {
	for _, k := range kinds.All() {
		if _, several := k.New().(loop.Series); !several {
			all = append(all, k)
		}
	}
	return all
}

// All that its loop would check is checked before anything is sent: flags, configuration, trust and the model's key.
func (a *app) prepareJob(ctx context.Context, f evalFlags, p *plan, job *eval.Job, k loop.Kind) (err error) {
	top := filepath.Join(p.Cache, "tree")
	if err := errors.Join(clone.Remove(top), job.Base.Make(ctx, top)); err != nil {
		return err
	}
	defer clone.Remove(top)
	here, err := os.Getwd()
	if err == nil {
		err = os.Setenv(sandbox.Origin, job.Base.Origin)
	}
	if err == nil {
		err = os.Chdir(filepath.Join(top, filepath.Base(job.Base.Origin))) // as the run will be; no other goroutine runs yet
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Chdir(here)) }()
	own := *a // with the keys that the tree contains
	n, err := own.checkJob(ctx, f, job, k)
	if err != nil {
		return err
	}
	n.Folder = job.Base.Origin // the tree is a copy of it
	if err := a.host().Trusted(ctx, n); err != nil {
		return err
	}
	job.Env = append(sandbox.CleanEnv(a.environ, []string{sandbox.Origin}), sandbox.Origin+"="+job.Base.Origin)
	if n.Digest() != "" || len(n.Programs) > 0 {
		job.Env = append(sandbox.CleanEnv(job.Env, []string{"HONE_TRUST"}), "HONE_TRUST="+trustedBy(a.env("HONE_TRUST"), n))
	}
	return nil
}

// It works in the current directory.
func (a *app) checkJob(ctx context.Context, f evalFlags, job *eval.Job, k loop.Kind) (n harness.Needs, err error) {
	args := job.Command
	if f.maxCost > 0 { // the prices of all models must be known
		args = slices.Insert(slices.Clone(args), 1, fmt.Sprintf("--max-cost=%v", f.maxCost))
	}
	if k.Rewrite != nil {
		args = k.Rewrite(args)
	}
	c := a.loopCommandFor(k, func(c *cobra.Command, k loop.Kind, l loop.Loop, lf *loopFlags, args []string) error {
		in, err := a.input(k, l, lf, c.Flags().Changed, args)
		if err != nil {
			return err
		}
		defer in.Tree.Close()
		limits, err := l.Resolve(ctx, in)
		if err == nil {
			n, err = a.startNeeds(in.Root, in.File, in.Flags, k)
		}
		if err == nil {
			err = a.host().CanOpen(l) // which asks no model
		}
		if err != nil {
			return err
		}
		if err := loop.CheckOfCopies(l.Shared().Check, job.Base.Origin, ".", "tries"); err != nil {
			return err
		}
		job.Limits = group.LimitsOf(limits)
		job.JudgeWall = []string{"--sandbox", string(l.Shared().Walls.Wall)} // the network stays off
		if l.Shared().Walls.Absent {
			job.JudgeWall[1] = string(sandbox.NoWall)
		}
		if !k.Modelless && config.Metric.In(l.Shared().Values) == "" { // those runs look at their check themselves
			job.Check = l.Shared().Check
		}
		return nil
	})
	c.SetArgs(args[1:])
	c.SetFlagErrorFunc(flagError)
	c.SilenceErrors, c.SilenceUsage = true, true
	return n, c.ExecuteContext(ctx)
}

func countOf(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func (a *app) report(ctx context.Context, f evalFlags, p *plan, stopped eval.Stopped, err error) error {
	results := p.Record.Of(p.tries)
	rep := eval.NewReport(results, p.cases, f.models, f.times)
	rep.Missing = len(p.tries) - len(results)
	if f.json {
		err = errors.Join(err, json.NewEncoder(a.out).Encode(rep))
	} else {
		for _, line := range rep.Table() {
			fmt.Fprintln(a.out, line)
		}
		fmt.Fprintf(a.out, "\nresults: %s\n", render.Line(p.path))
		if f.keep {
			fmt.Fprintf(a.out, "copies: %s\n", render.Line(filepath.Join(p.Cache, "tries")))
		}
	}
	missing := fmt.Sprintf("no result of %d of %s", rep.Missing, countOf(len(p.tries), "try", "tries"))
	const again = "the same command goes on with them"
	switch {
	case ctx.Err() != nil:
		return &failure.Error{Kind: hone.KindInterrupted, Why: "interrupted: " + missing, Hint: again}
	case err != nil:
		return err
	case len(stopped.Faults) > 0:
		return &failure.Error{Kind: hone.KindFailed, Why: fmt.Sprintf("%s: %s", missing, stopped.Faults[0]), Hint: "remove the cause; " + again}
	case stopped.Budget != "":
		return &failure.Error{Kind: hone.KindBudget, Why: fmt.Sprintf("%s (used: %s); %s", stopped.Budget, stopped.Spent, missing),
			Hint: "raise --max-tokens, --max-cost or --max-time; then " + again}
	}
	return nil
}
