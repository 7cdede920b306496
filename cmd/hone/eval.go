package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
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
	"hone/loop"
)

type evalFlags struct {
	models, cases, typed       []string // the cases' names, nil means all; typed are flags of the loops
	times, at, parallel        int
	maxTokens                  int64
	maxCost                    float64
	maxTime                    time.Duration
	output                     string
	keep, json, verbose, trust bool
}

const evalHelp = `eval runs a loop on each case of a file, with each model, several times. It prints how often each model
passed, and what that cost. A case is a tree (a commit, a directory or the start of a recorded run), a task,
and the check that decides. Each try is a separate run, in a copy of the tree in your cache directory; the
project itself is not changed.

  [defaults]                     # for all cases
  check = "make test"
  args = ["--rounds", "3"]       # flags of the loop

  [cases.slug]
  commit = "v1.2"                # or files = "DIR", or run = "RUN", with its task and check
  task = "runs of spaces become one dash"
  loop = "implement"             # fix (default), task, implement, reconcile or improve
  judge = "make hidden"          # must pass, too
  judge-files = "hidden"         # copied over the tree for the judge; no model sees them
  needs = ["node"]               # else the case is skipped

eval records results in CASES.results.jsonl next to the file, or in the file of --output. After a stop, the
same command continues, and pays for nothing twice. If you add tries, models or cases, it runs only what is
new. A case that you change runs again. The limits of eval apply to all tries together.

FLAGS are flags of the loops, for all cases. Those that give access or send files elsewhere, such as --sandbox,
--net and --base-url, work only after -- and not in the file. docs/eval.md explains the tables.

Exit status: 0 if every try has a result, passed or not; 2 usage; 3 a limit is reached; 5 some tries could not
run; 130 interrupted.`

func (a *app) evalCommand() *cobra.Command {
	var f evalFlags
	c := &cobra.Command{
		Use:   "eval CASES.toml -m MODEL… [-- FLAGS]",
		Short: "compare models on your own cases",
		Long:  evalHelp,
		Example: `  hone eval cases.toml -m openai/gpt-5.4 -m anthropic/claude-sonnet-5 --times 3
  hone eval cases.toml -m ollama/qwen3-coder --times 5 --at 2 --parallel 2 --max-time 8h
  hone eval cases.toml -m openai/qwen3-coder -- --base-url http://127.0.0.1:8080/v1`,
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
	}
	f.register(c.Flags())
	return c
}

func (f *evalFlags) register(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&f.models, "model", "m", nil, "a model, as `PROVIDER/NAME`; repeatable")
	fs.StringArrayVar(&f.cases, "case", nil, "try only the case `NAME`; repeatable")
	fs.IntVar(&f.times, "times", 1, "number of tries of each case with each model")
	fs.IntVar(&f.at, "at", 0, "the K of pass@K (default the number of tries)")
	fs.IntVar(&f.parallel, "parallel", 1, "number of tries that run at the same time")
	fs.Int64Var(&f.maxTokens, "max-tokens", 0, "stop before all tries use more than this many tokens")
	fs.Float64Var(&f.maxCost, "max-cost", 0, "stop before all tries cost more than this, in USD; the prices are in hone help models")
	fs.DurationVar(&f.maxTime, "max-time", 0, "stop after this much active time of all tries, such as 8h")
	config.SetRule(fs, "positive", "times", "at", "parallel", "max-tokens", "max-cost", "max-time")
	fs.StringVarP(&f.output, "output", "o", "", "record the results in `FILE` (default CASES.results.jsonl)")
	fs.BoolVar(&f.keep, "keep", false, "keep the copies of the trees")
	fs.BoolVar(&f.json, "json", false, "print each result as a JSON line, and last the report")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show each round")
	fs.BoolVar(&f.trust, "trust", false, "run the trees' own programs, such as build.sh, without asking; does not accept their settings (see hone help trust)")
}

func (f *evalFlags) valid(c *cobra.Command) error {
	if f.at = cmp.Or(f.at, f.times); f.at > f.times {
		return failure.Usage(fmt.Sprintf("--at %d needs as many tries, and --times is %d", f.at, f.times), fmt.Sprintf("--times %d", f.at))
	}
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
	suite   *eval.Suite
	path    string      // of the record
	tries   []*eval.Try // those of one time after those of another
	cases   []string    // their names
	skipped []string
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
	p := &plan{path: path, Evaluation: &eval.Evaluation{Parallel: f.parallel, Keep: f.keep, Version: version(), Verbose: f.verbose,
		Limits: group.Amount{Tokens: f.maxTokens, Cost: group.Dollars(f.maxCost), Time: f.maxTime},
		Say:    func(text string) { a.sayPlain("%s", text) }, Done: func(r eval.Result) error { return a.printResult(f, r) }}}
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
	a.announce(p, f)
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
		if program := c.Missing(exec.LookPath); program != "" {
			p.skipped = append(p.skipped, c.Name)
			a.say("warning", fmt.Sprintf("case %s is SKIPPED: %s is not installed", c.Name, program))
			continue
		}
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
	k, ok := evalLoop(c, base)
	if !ok {
		return p.suite.Wrong(c, "run", fmt.Sprintf("it is a run of %s, which eval cannot repeat", base.Start.Loop), "remove loop, or name another run")
	}
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
		tries, err := eval.Tries(job, eval.Digest(k.Name, args, base.ID, c.Judge, judge, name), f.times, func(model string) []string {
			return slices.Concat([]string{k.Name, "-m", model}, args)
		})
		if err != nil {
			return err
		}
		p.tries = append(p.tries, tries...)
		if !slices.ContainsFunc(tries, func(t *eval.Try) bool { _, ok := p.Record.Result(t.Key); return !ok }) {
			continue // the key of the model is not needed
		}
		if err := a.prepareJob(ctx, f, p, job, k); err != nil {
			return aboutJob(job, err)
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

func aboutJob(job *eval.Job, err error) error {
	at := fmt.Sprintf("case %s with %s: ", job.Case, job.Model)
	if f, ok := failure.Explain(err, ""); ok {
		return &failure.Error{Kind: f.Kind, Why: at + f.Error(), Hint: f.Hint}
	}
	return fmt.Errorf("%s%w", at, err)
}
