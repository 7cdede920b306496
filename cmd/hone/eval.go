package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"hone/harness/runs"
	"hone/internal/config"
	"hone/internal/render"
	"hone/loop"
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

type plan struct {
	*eval.Evaluation
	suite *eval.Suite
	path  string      // of the record
	tries []*eval.Try // those of one time after those of another
	cases []string    // their names
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
	p := &plan{path: path, Evaluation: &eval.Evaluation{Parallel: f.parallel, Keep: f.keep, Version: version(),
		Limits: group.Amount{Tokens: f.maxTokens, Cost: group.Dollars(f.maxCost), Time: f.maxTime},
		Say:    func(text string) { a.sayPlain("%s", text) }, Done: func(r eval.Result) error {
			if !f.json {
				return nil
			}
			return json.NewEncoder(a.out).Encode(struct {
				Type string `json:"type"`
				eval.Result
			}{"try", r})
		}}}
	if p.suite, err = eval.Load(file, names); err == nil {
		err = p.suite.Select(f.cases)
	}
	if err != nil {
		return casesError(err)
	}
	if p.Record, err = eval.OpenRecord(record); err != nil {
		return err
	}
	var unlock func()
	if p.Cache, unlock, err = eval.Open(record); err != nil {
		return err
	}
	defer unlock()
	if err := runs.CheckBinding(p.Cache); err != nil {
		return failure.Of(err, "set XDG_STATE_HOME to a directory of your own; without it nothing vouches for the results")
	}
	if err := a.planTries(ctx, f, p); err != nil {
		if ctx.Err() != nil {
			return &failure.Error{Kind: hone.KindInterrupted, Why: "interrupted", Hint: "the same command begins again"}
		}
		return casesError(err)
	}
	text := fmt.Sprintf("hone: %s of %s with %s", countOf(len(p.tries), "try", "tries"), render.Count(len(p.cases), "case"), render.Count(len(f.models), "model"))
	if recorded := len(p.Record.Of(p.tries)); recorded > 0 {
		text += fmt.Sprintf("; %d recorded in %s", recorded, render.Line(p.path))
	}
	fmt.Fprintln(a.err, text)
	stopped, err := p.Run(ctx, p.tries)
	return a.report(ctx, f, p, stopped, err)
}

func casesError(err error) error {
	if errors.As(err, new(*config.Error)) {
		return failure.UsageOf(err, "nothing was sent or written")
	}
	return err
}

// Nothing is sent before all jobs can start.
func (a *app) planTries(ctx context.Context, f evalFlags, p *plan) error {
	for _, c := range p.suite.Cases {
		p.cases = append(p.cases, c.Name)
		if err := a.planCase(ctx, f, p, c); err != nil {
			return err
		}
	}
	slices.SortStableFunc(p.tries, func(x, y *eval.Try) int { return cmp.Compare(x.Time, y.Time) })
	return nil
}

func (a *app) planCase(ctx context.Context, f evalFlags, p *plan, c eval.Case) error {
	base, err := p.suite.FindBase(ctx, c)
	if err != nil {
		return err
	}
	name, all := c.Loop, evalLoops()
	if c.Run != "" {
		name = base.Start.Loop
	}
	i := slices.IndexFunc(all, func(k loop.Kind) bool { return k.Name == name })
	if i < 0 || c.Loop != "" && c.Loop != name {
		return p.suite.Wrong(c, "run", fmt.Sprintf("it is a run of %s, which eval cannot repeat", base.Start.Loop), "remove loop, or name another run")
	}
	k := all[i]
	if err := cmp.Or(a.checkTypedArgs(k, f.typed), a.checkFileArgs(p.suite, c, k)); err != nil {
		return err
	}
	args, err := caseArgs(p.suite, c, base, f.typed)
	if err != nil {
		return err
	}
	judge := ""
	if c.JudgeFiles != "" {
		if judge, err = eval.TreeID(ctx, c.JudgeFiles); err != nil {
			return p.suite.Wrong(c, "judge-files", err.Error(), "name a directory, relative to "+p.suite.File)
		}
	}
	for _, name := range f.models {
		job := &eval.Job{Case: c.Name, Model: name, Base: base, Judge: c.Judge, JudgeFiles: c.JudgeFiles}
		if file, scripted := strings.CutPrefix(name, "script/"); scripted { // each try starts in its own tree
			if file, err = filepath.Abs(file); err != nil {
				return err
			}
			name = "script/" + file
		}
		job.Command = slices.Concat([]string{k.Name, "-m", name}, args)
		tries := eval.Tries(job, eval.Digest(k.Name, args, base.ID, c.Judge, judge, job.Model), f.times)
		p.tries = append(p.tries, tries...)
		if !slices.ContainsFunc(tries, func(t *eval.Try) bool { _, ok := p.Record.Result(t.Key); return !ok }) {
			continue // the key of the model is not needed
		}
		if err := a.prepareJob(ctx, f, p, job, k); err != nil {
			at := fmt.Sprintf("case %s with %s: ", job.Case, job.Model)
			if f, ok := failure.Explain(err, ""); ok {
				return &failure.Error{Kind: f.Kind, Why: at + f.Error(), Hint: f.Hint}
			}
			return fmt.Errorf("%s%w", at, err)
		}
	}
	return nil
}

// What the user typed comes after what the file says, and has precedence.
func caseArgs(s *eval.Suite, c eval.Case, base eval.Base, typed []string) ([]string, error) {
	again := loop.OneArg(c.Task)
	if c.Run != "" {
		l := kinds.Recorded(base.Start)
		if l == nil {
			return nil, s.Wrong(c, "run", "another version of hone recorded its settings", "name another run")
		}
		c.Check = cmp.Or(c.Check, l.Shared().Check)
		if c.Task == "" {
			again = l.Shared().Repeat()
		}
	}
	var args []string
	if c.Check != "" {
		args = append(args, "--check", c.Check)
	}
	return slices.Concat(args, c.Args, typed, again), nil
}
