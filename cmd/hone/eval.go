package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hone"
	"hone/cmd/hone/eval"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/group"
	"hone/harness"
	"hone/harness/runs"
	"hone/internal/artifact"
	"hone/internal/config"
	"hone/internal/render"
	"hone/loop"
	"hone/sandbox"
	"hone/workspace/clone"
)

type evalFlags struct {
	models, cases, typed []string // the cases' names, nil means all; typed are flags of the loops
	times, parallel      int
	maxTokens            int64
	maxCost              float64
	maxTime              time.Duration
	output               string
	keep, json, trust    bool
}

func (a *app) evalCommand() *cobra.Command {
	var f evalFlags
	c := helped("eval", &cobra.Command{
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || c.ArgsLenAtDash() == 0 || c.ArgsLenAtDash() != 1 && len(args) > 1 {
				return failure.Usage("eval needs one file of cases", "hone eval CASES.toml -m PROVIDER/NAME")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.valid(c); err != nil {
				return err
			}
			a.trust, f.typed = f.trust, args[1:]
			return a.eval(c.Context(), f, args[0])
		},
	})
	f.register(c.Flags())
	return c
}

func (f *evalFlags) register(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&f.models, "model", "m", nil, "a model, as `PROVIDER/NAME`; repeatable")
	fs.StringArrayVar(&f.cases, "case", nil, "try only the case `NAME`; repeatable")
	fs.IntVar(&f.times, "times", 1, "number of tries of each case with each model")
	fs.IntVar(&f.parallel, "parallel", 1, "number of tries that run at the same time")
	fs.Int64Var(&f.maxTokens, "max-tokens", 0, "stop before all tries use more than this many tokens")
	fs.Float64Var(&f.maxCost, "max-cost", 0, "stop before all tries cost more than this, in USD; the prices are in hone help models")
	fs.DurationVar(&f.maxTime, "max-time", 0, "stop after this much active time of all tries, such as 8h")
	config.SetRule(fs, "positive", "times", "parallel", "max-tokens", "max-cost", "max-time")
	fs.StringVarP(&f.output, "output", "o", "", "record the results in `FILE` (default CASES.results.jsonl)")
	config.SetRule(fs, "file", "output")
	fs.BoolVar(&f.keep, "keep", false, "keep the copies of the trees")
	fs.BoolVar(&f.json, "json", false, "print each result as a JSON line, and last the report")
	fs.BoolVar(&f.trust, "trust", false, "run the trees' own programs, such as build.sh, without asking; does not accept their settings (see hone help trust)")
}

func (f *evalFlags) valid(c *cobra.Command) error {
	if len(f.models) == 0 {
		return failure.Usage("eval needs at least one model", "hone eval CASES.toml -m PROVIDER/NAME")
	}
	for i, m := range f.models {
		if slices.Contains(f.models[:i], m) {
			return failure.Usage("--model "+m+" is given twice", "name it once; --times says how often it tries")
		}
	}
	return nil
}

func (a *app) eval(ctx context.Context, f evalFlags, file string) error {
	path := cmp.Or(f.output, strings.TrimSuffix(file, ".toml")+".results.jsonl")
	record, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	var names []string
	for _, k := range evalLoops() {
		names = append(names, k.Name)
	}
	suite, err := eval.Load(file, names)
	if err == nil {
		err = suite.Select(f.cases)
	}
	if err != nil {
		return casesError(err)
	}
	e, err := eval.Open(record)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := runs.CheckBinding(e.Cache); err != nil {
		return failure.Of(err, "set XDG_STATE_HOME to a directory of your own; without it nothing vouches for the results")
	}
	e.Limits = group.Amount{Tokens: f.maxTokens, Cost: group.Dollars(f.maxCost), Time: f.maxTime}
	e.Parallel, e.Keep, e.Version = f.parallel, f.keep, version()
	e.Say = func(text string) { a.sayPlain("%s", text) }
	e.Done = func(r eval.Result) error {
		if !f.json {
			return nil
		}
		return json.NewEncoder(a.out).Encode(struct {
			Type string `json:"type"`
			eval.Result
		}{"try", r})
	}
	var tries []*eval.Try // those of one time after those of another
	for _, c := range suite.Cases {
		more, err := a.planCase(ctx, f, e, suite, c)
		if ctx.Err() != nil {
			return &failure.Error{Kind: hone.KindInterrupted, Why: "interrupted", Hint: "the same command begins again"}
		}
		if err != nil {
			return casesError(err)
		}
		tries = append(tries, more...)
	}
	slices.SortStableFunc(tries, func(x, y *eval.Try) int { return cmp.Compare(x.Time, y.Time) })
	text := fmt.Sprintf("hone: %s of %s with %s", countOf(len(tries), "try", "tries"), render.Count(len(suite.Cases), "case"), render.Count(len(f.models), "model"))
	if recorded := len(e.Record.Of(tries)); recorded > 0 {
		text += fmt.Sprintf("; %d recorded in %s", recorded, render.Line(path))
	}
	fmt.Fprintln(a.err, text)
	stopped, err := e.Run(ctx, tries)
	results := e.Record.Of(tries)
	rep := eval.NewReport(results, suite.Names(), f.models, f.times)
	rep.Missing = len(tries) - len(results)
	if f.json {
		err = errors.Join(err, json.NewEncoder(a.out).Encode(rep))
	} else {
		for _, line := range rep.Table() {
			fmt.Fprintln(a.out, line)
		}
		fmt.Fprintf(a.out, "\nresults: %s\n", render.Line(path))
		if f.keep {
			fmt.Fprintf(a.out, "copies: %s\n", render.Line(filepath.Join(e.Cache, "tries")))
		}
	}
	missing := fmt.Sprintf("no result of %d of %s", rep.Missing, countOf(len(tries), "try", "tries"))
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

func casesError(err error) error {
	if errors.As(err, new(*config.Error)) {
		return failure.UsageOf(err, "nothing was sent or written")
	}
	return err
}

func countOf(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
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

// planCase returns the tries of a case. Nothing is sent before all of them can start.
func (a *app) planCase(ctx context.Context, f evalFlags, e *eval.Evaluation, s *eval.Suite, c eval.Case) (tries []*eval.Try, err error) {
	base, err := s.FindBase(ctx, c)
	if err != nil {
		return nil, err
	}
	name, all, again := c.Loop, evalLoops(), loop.OneArg(c.Task)
	if c.Run != "" {
		l := kinds.Recorded(base.Start)
		if name = base.Start.Loop; l == nil {
			return nil, s.Wrong(c, "run", "another version of hone recorded its settings", "name another run")
		}
		if c.Check = cmp.Or(c.Check, l.Shared().Check); c.Task == "" {
			again = l.Shared().Repeat()
		}
	}
	i := slices.IndexFunc(all, func(k loop.Kind) bool { return k.Name == name })
	if i < 0 || c.Loop != "" && c.Loop != name {
		return nil, s.Wrong(c, "run", fmt.Sprintf("it is a run of %s, which eval cannot repeat", base.Start.Loop), "remove loop, or name another run")
	}
	k := all[i]
	if err := a.checkCaseArgs(s, c, k, f.typed); err != nil {
		return nil, err
	}
	var args []string
	if c.Check != "" {
		args = append(args, "--check", c.Check)
	}
	args = slices.Concat(args, c.Args, f.typed, again) // what the user typed has precedence
	judge := ""
	if c.JudgeFiles != "" {
		if judge, err = eval.TreeID(ctx, c.JudgeFiles); err != nil {
			return nil, s.Wrong(c, "judge-files", err.Error(), "name a directory, relative to "+s.File)
		}
	}
	tested := false
	for _, name := range f.models {
		job := &eval.Job{Case: c.Name, Model: name, Base: base, Judge: c.Judge, JudgeFiles: c.JudgeFiles}
		id := eval.Digest(k.Name, args, base.ID, c.Judge, judge, name)
		if file, scripted := strings.CutPrefix(name, "script/"); scripted { // each try starts in its own tree
			if file, err = filepath.Abs(file); err != nil {
				return nil, err
			}
			script, _ := artifact.Input(file) // nil with an error, which the run reports
			name, id = "script/"+file, eval.Digest(id, string(script))
		}
		job.Command = slices.Concat([]string{k.Name, "-m", name}, args)
		missing := false
		for n := 1; n <= f.times; n++ {
			t := &eval.Try{Job: job, Time: n, Key: eval.Digest(id, n)}
			_, recorded := e.Record.Results[t.Key]
			tries, missing = append(tries, t), missing || !recorded
		}
		if !missing {
			continue // the key of the model is not needed
		}
		passes, err := a.prepareJob(ctx, f, e, job, k, !tested && c.Judge == "")
		if err != nil {
			at := fmt.Sprintf("case %s with %s: ", job.Case, job.Model)
			if f, ok := failure.Explain(err, ""); ok {
				return nil, &failure.Error{Kind: f.Kind, Why: at + f.Error(), Hint: f.Hint}
			}
			return nil, fmt.Errorf("%s%w", at, err)
		}
		if tested = true; passes {
			return nil, s.Wrong(c, "check", "the check passes already, without a model", "name the tree before the change, or a check or judge that fails in it")
		}
	}
	return tries, nil
}

func (a *app) checkCaseArgs(s *eval.Suite, c eval.Case, k loop.Kind, typed []string) error {
	given, _, err := a.parseOnly(k, c.Args)
	if err != nil {
		hint := "hone help " + k.Name
		if f, ok := failure.Explain(err, ""); ok {
			hint = f.Hint
		}
		return s.Wrong(c, "args", err.Error(), hint)
	}
	for _, f := range given {
		if !slices.Contains(loop.FileFlags(), f.Name) {
			return s.Wrong(c, "args", "--"+f.Name+" may not stand in a file of cases, because it opens something", fmt.Sprintf("type it: hone eval %s -m MODEL -- --%s …", failure.Quoted(s.File), f.Name))
		}
	}
	given, _, _ = a.parseOnly(k, slices.Concat(c.Args, typed)) // what is wrong with a flag by itself is said when a try is prepared
	for _, f := range given {
		if slices.Contains([]string{"ack", "attempts", "dir", "json", "model"}, f.Name) {
			return failure.Usage(fmt.Sprintf("case %s: eval sets --%s of the loops itself", c.Name, f.Name), "leave it out; before --, eval has -m, --times and --json")
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

// All that a loop would check is checked before anything is sent: flags, configuration, trust and the model's key. If test
// is set, passes says whether the check passes already.
func (a *app) prepareJob(ctx context.Context, f evalFlags, e *eval.Evaluation, job *eval.Job, k loop.Kind, test bool) (passes bool, err error) {
	top := filepath.Join(e.Cache, "tree")
	if err := errors.Join(clone.Remove(top), job.Base.Make(ctx, top)); err != nil {
		return false, err
	}
	defer clone.Remove(top)
	tree := filepath.Join(top, filepath.Base(job.Base.Origin))
	here, err := os.Getwd()
	if err == nil {
		err = os.Setenv(sandbox.Origin, job.Base.Origin)
	}
	if err == nil {
		err = os.Chdir(tree) // as the run will be; no other goroutine runs yet
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.Chdir(here)) }()
	own := *a // with the keys that the tree contains
	n, check, err := own.resolveJob(ctx, f, job, k)
	if err != nil {
		return false, err
	}
	n.Folder = job.Base.Origin // the tree is a copy of it
	if err := a.host().Trusted(ctx, n); err != nil {
		return false, err
	}
	job.Env = append(sandbox.CleanEnv(a.environ, []string{sandbox.Origin}), sandbox.Origin+"="+job.Base.Origin)
	if n.Digest() != "" || len(n.Programs) > 0 {
		job.Env = append(sandbox.CleanEnv(job.Env, []string{"HONE_TRUST"}), "HONE_TRUST="+trustedBy(a.env("HONE_TRUST"), n))
	}
	if !test || check == "" {
		return false, nil
	}
	said, err := e.Test(ctx, job, tree, check, "")
	return err == nil && said == "", nil // the run says why a check cannot run
}

// It works in the current directory. The check is empty if it need not fail before.
func (a *app) resolveJob(ctx context.Context, f evalFlags, job *eval.Job, k loop.Kind) (n harness.Needs, check string, err error) {
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
		err = l.Resolve(ctx, in)
		if err == nil {
			n, err = a.startNeeds(in.Root, in.File, in.Flags, k)
		}
		if err == nil {
			err = a.host().CanOpen(l) // which asks no model
		}
		if err == nil {
			err = loop.CheckOfCopies(l.Shared().Check, job.Base.Origin, ".", "tries")
		}
		job.Limits = group.LimitsOf(in.Limits())
		job.Wall = []string{"--sandbox", string(l.Shared().Walls.Wall)} // the network stays off
		if l.Shared().Walls.Absent {
			job.Wall[1] = string(sandbox.NoWall)
		}
		if config.Metric.In(l.Shared().Values) == "" {
			check = l.Shared().Check
		}
		return err
	})
	c.SetArgs(args[1:])
	c.SetFlagErrorFunc(flagError)
	c.SilenceErrors, c.SilenceUsage = true, true
	return n, check, c.ExecuteContext(ctx)
}
