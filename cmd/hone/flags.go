package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hone/model"
)

// loopFlags are those of every loop.
type loopFlags struct {
	dir       string
	model     string
	baseURL   string
	wire      string
	reasoning string
	tools     string // how tools are called; empty: natively
	check     string
	approve   string
	walls     wallFlags
	trust     trustFlags
	limits    limitFlags
	output    outputFlags

	standard string // the loop's own default model; empty: the first whose key is set
	agents   bool   // command-line agents may take the loop's roles
}

// limitFlags bound a run. A resumed run may raise them.
type limitFlags struct {
	rounds    int
	patience  int // rounds that may end as an earlier one did; 0: all
	maxTokens int64
	maxCost   float64
	maxTime   time.Duration
}

// outputFlags say what is shown.
type outputFlags struct{ json, verbose, quiet bool }

func (f *loopFlags) register(c *cobra.Command, rounds int) {
	registerDir(c, &f.dir)
	fs := c.Flags()
	fs.StringVarP(&f.model, "model", "m", "", "the model, as PROVIDER/NAME (gemini, openai, anthropic, ollama, script)")
	fs.StringVar(&f.baseURL, "base-url", "", "the provider's endpoint, such as http://127.0.0.1:8080/v1")
	fs.StringVar(&f.wire, "wire", "", "for openai: responses or chat; by default responses at OpenAI's own endpoint, chat elsewhere")
	fs.StringVar(&f.reasoning, "reasoning", "", "low, medium or high, where the provider has it")
	fs.StringVar(&f.check, "check", "", "a shell command that must exit 0 as well")
	fs.StringVar(&f.approve, "approve", "", "ask, none (deny what would be asked) or all; default ask")
	f.walls.register(fs)
	f.trust.register(fs)
	f.limits.register(c, rounds)
	f.output.register(c)
}

func registerDir(c *cobra.Command, dir *string) {
	c.Flags().StringVarP(dir, "dir", "C", ".", "work in this folder")
}

func (f *limitFlags) register(c *cobra.Command, rounds int) {
	fs := c.Flags()
	fs.IntVar(&f.rounds, "rounds", rounds, "most rounds")
	fs.IntVar(&f.patience, "patience", 0, "stop when N rounds have ended as an earlier one did (default: never)")
	fs.Int64Var(&f.maxTokens, "max-tokens", 0, "the run's budget of tokens (default 5000000)")
	fs.Float64Var(&f.maxCost, "max-cost", 0, "the run's budget in USD; needs [prices] in .config/hone.toml")
	fs.DurationVar(&f.maxTime, "max-time", 0, "the run's active time, such as 90m (default 4h)")
}

func (f *outputFlags) register(c *cobra.Command) {
	fs := c.Flags()
	fs.BoolVar(&f.json, "json", false, "the run's events as JSON lines on stdout, and nothing else there")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show the model's text and findings whole")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "show only refusals, notices, what is left and the end")
}

// valid says what is wrong with the flags by themselves.
func (f *loopFlags) valid(c *cobra.Command) error {
	switch f.approve {
	case "", "ask", "none", "all":
	default:
		return usage(fmt.Sprintf("--approve %s is not ask, none or all", f.approve), "hone help "+c.Name())
	}
	switch f.wire {
	case "", "responses", "chat":
	default:
		return usage(fmt.Sprintf("--wire %s is not responses or chat", f.wire), "hone help "+c.Name())
	}
	switch model.Reasoning(f.reasoning) {
	case "", model.Low, model.Medium, model.High:
	default:
		return usage(fmt.Sprintf("--reasoning %s is not low, medium or high", f.reasoning), "hone help "+c.Name())
	}
	if err := knownWall("sandbox", f.walls.wall); err != nil {
		return err
	}
	if err := f.trust.valid(c); err != nil {
		return err
	}
	return f.limits.valid(c)
}

func (f limitFlags) valid(c *cobra.Command) error {
	for _, v := range []struct {
		flag string
		bad  bool
	}{
		{"patience", f.patience < 1 && c.Flags().Changed("patience")},
		{"rounds", f.rounds < 1 && c.Flags().Changed("rounds")},
		{"max-tokens", f.maxTokens < 1 && c.Flags().Changed("max-tokens")},
		{"max-cost", f.maxCost <= 0 && c.Flags().Changed("max-cost")},
		{"max-time", f.maxTime <= 0 && c.Flags().Changed("max-time")},
	} {
		if v.bad {
			return usage(fmt.Sprintf("--%s must be more than nothing", v.flag), "hone help "+c.Name())
		}
	}
	return nil
}
