package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hone"
	"hone/check/reader"
	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/harness"
	"hone/internal/render"
	"hone/loop"
	"hone/model"
	"hone/sandbox"
)

// loopFlags are the flags of every loop.
type loopFlags struct {
	loop.Flags
	dir      string
	trust    bool
	models   modelFlag
	attempts int
	output   outputFlags
}

// modelFlag are the models that were typed, one for each -m.
type modelFlag []string

func (m *modelFlag) Set(name string) error { *m = append(*m, name); return nil }
func (m *modelFlag) String() string        { return strings.Join(*m, " ") }
func (m *modelFlag) Type() string          { return "string" }

// first returns the first model; empty if none was typed.
func (m modelFlag) first() string {
	if len(m) == 0 {
		return ""
	}
	return m[0]
}

// outputFlags select what is shown.
type outputFlags struct {
	json, ack, verbose, quiet, web bool
	log                            string
}

func (f *loopFlags) register(c *cobra.Command, k loop.Kind) {
	registerDir(c, &f.dir)
	fs := c.Flags()
	fs.VarP(&f.models, "model", "m", "the model, as PROVIDER/NAME ("+strings.Join(harness.ListedProviders(), ", ")+"); A,B lets B take over if A fails")
	fs.StringVar(&f.BaseURL, "base-url", "", "the provider's endpoint, such as http://127.0.0.1:8080/v1")
	fs.StringVar(&f.Wire, "wire", "", "for openai: responses or chat; by default responses at OpenAI's own endpoint, chat elsewhere")
	fs.StringVar(&f.Reasoning, "reasoning", "", "low, medium or high, if the provider supports it")
	fs.StringVar(&f.Check, "check", "", "a shell command that must also exit with status 0")
	registerFormat(fs, &f.Format)
	if !k.NoQuestions {
		fs.StringVar(&f.Approve, "approve", "", "how to approve changes that need approval: ask, all, or none, which declines them (default ask)")
	}
	fs.StringVar(&f.Wall, "sandbox", "", "walls for --check and for what a model runs: auto, hidden, bwrap, landlock, firejail or none (default auto)")
	registerNet(fs, &f.Net, "let commands behind walls reach the network")
	fs.BoolVar(&f.AllowGit, "allow-git", false, "leave git repositories that commands make, whatever their settings and hooks let git run")
	if k.Attempts != nil {
		fs.IntVar(&f.attempts, "attempts", 1, "try N times side by side, in copies of the directory, and apply the first result that passes the check; with several -m each model in turn")
	}
	fs.BoolVar(&f.trust, "trust", false, "run the directory's own programs, such as build.sh, without asking; does not accept its settings (see hone help trust)")
	fs.IntVar(&f.Flaky, "flaky", 0, "rerun a failing check up to N times; only findings that appear every time count (default 0)")
	fs.StringVar(&f.Prove, "prove", "", "check the check: warn if it passes at the start (strict: stop), and require it to pass again on a clean copy: on, off or strict (default off)")
	fs.Lookup("prove").NoOptDefVal = "on"
	fs.StringVar(&f.Keep, "keep", "", "which version of the files to keep when a limit is reached: last, or best, which has the fewest findings (default last)")
	registerLimits(c, &f.Limits, limitNotes{rounds: fmt.Sprintf(" (default %d)", k.Rounds), patience: fmt.Sprintf(" (default %d)", loop.DefaultPatience), unreadable: fmt.Sprintf(" (default %d)", loop.DefaultUnreadable),
		tokens: " (default 5000000)", cost: "; needs the model's price: hone help models", time: " (default 4h)"})
	f.output.register(c)
	f.output.registerAck(c)
}

// registerFormat adds the flag --check-format.
func registerFormat(fs *pflag.FlagSet, format *string) {
	fs.StringVar(format, "check-format", "", "how the check's output is read: "+strings.Join(reader.Names(), ", ")+", or a pattern such as \"%f:%l: %m\" (default auto)")
}

// registerWall adds the flag --sandbox, which is also accepted as --wall.
func registerWall(fs *pflag.FlagSet, wall *string, standard, usage string) {
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "wall" {
			name = "sandbox"
		}
		return pflag.NormalizedName(name)
	})
	fs.StringVar(wall, "sandbox", standard, usage)
}

// registerNet adds the flag --net, which leaves net nil unless it is given.
func registerNet(fs *pflag.FlagSet, net **bool, usage string) {
	fs.VarPF(&netFlag{net}, "net", "", usage).NoOptDefVal = "true"
}

// netFlag is a bool that may be nil.
type netFlag struct{ on **bool }

func (n *netFlag) Set(text string) error {
	on, err := strconv.ParseBool(text)
	*n.on = &on
	return err
}

func (n *netFlag) String() string {
	if n.on == nil || *n.on == nil {
		return ""
	}
	return strconv.FormatBool(**n.on)
}

func (n *netFlag) Type() string     { return "bool" }
func (n *netFlag) IsBoolFlag() bool { return true }

func registerDir(c *cobra.Command, dir *string) {
	c.Flags().StringVarP(dir, "dir", "C", ".", "work in this directory")
}

func registerLimits(c *cobra.Command, f *loop.LimitFlags, add limitNotes) {
	fs := c.Flags()
	fs.IntVar(&f.Rounds, "rounds", 0, "maximum number of rounds"+add.rounds)
	fs.IntVar(&f.Patience, "patience", 0, "stop after N rounds with the same result as an earlier round, or that change nothing"+add.patience)
	fs.IntVar(&f.Unreadable, "unreadable", 0, "stop after N replies in a row that cannot be used"+add.unreadable)
	fs.Int64Var(&f.MaxTokens, "max-tokens", 0, "stop the run before it uses more than this many tokens"+add.tokens)
	fs.Float64Var(&f.MaxCost, "max-cost", 0, "stop the run before it costs more than this, in USD"+add.cost)
	fs.DurationVar(&f.MaxTime, "max-time", 0, "stop the run after this much active time, such as 90m"+add.time)
}

// limitNotes are the ends of the flags' usage texts, such as their defaults.
type limitNotes struct{ rounds, patience, unreadable, tokens, cost, time string }

func (f *outputFlags) register(c *cobra.Command) {
	fs := c.Flags()
	fs.BoolVar(&f.json, "json", false, "print only the run's events to stdout, as JSON lines")
	fs.StringVar(&f.log, "log", "", "also append the run's events to `FILE`, as --json prints them")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show the model's text and complete findings")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "show only refusals, notices, remaining findings and the result")
	fs.BoolVar(&f.web, "web", false, "show the run also on a page in the browser until it ends; see hone help web")
}

// registerAck adds the flag --ack to a command that works on one run.
func (f *outputFlags) registerAck(c *cobra.Command) {
	c.Flags().BoolVar(&f.ack, "ack", false, "with --json: before each model call, wait for a line on stdin with the number (seq) of the last event")
}

// valid returns a usage error if the flags do not go together.
func (f *outputFlags) valid(c *cobra.Command) error {
	switch {
	case f.ack && !f.json:
		return failure.Usage("--ack is for a program that reads the events of --json", "hone "+c.Name()+" --json --ack")
	case c.Flags().Changed("log") && c.Flags().Lookup("log").Value.String() == "":
		return failure.Usage("--log must name a file", "--log hone.jsonl")
	}
	return nil
}

// valid checks each flag without the configuration. It returns a usage error.
func (f *loopFlags) valid(c *cobra.Command) error {
	if err := validChoices(c); err != nil {
		return err
	}
	if f.Flaky < 0 {
		return failure.Usage("--flaky must be 0 or greater", "hone help "+c.Name())
	}
	if err := cmp.Or(f.validAttempts(c), f.output.valid(c)); err != nil {
		return err
	}
	if f.output.ack && f.attempts > 1 {
		return failure.Usage("--ack does not work with --attempts, which makes several runs", "leave out one of them")
	}
	return validLimits(c, f.Limits)
}

// validAttempts checks --attempts, and that there is an attempt for each -m.
func (f *loopFlags) validAttempts(c *cobra.Command) error {
	most := max(1, f.attempts)
	switch {
	case c.Flags().Changed("attempts") && (f.attempts < 1 || f.attempts > attempts.Most):
		return failure.Usage(fmt.Sprintf("--attempts must be from 1 to %d", attempts.Most), "hone help "+c.Name())
	case len(f.models) <= most:
		f.Model = f.models.first()
		return nil
	case c.Flags().Lookup("attempts") == nil:
		return failure.Usage(fmt.Sprintf("-m is given %d times, but %s has one", len(f.models), c.Name()), "-m "+f.models.first())
	}
	return failure.Usage(fmt.Sprintf("-m is given %d times, but --attempts is %d", len(f.models), most), fmt.Sprintf("--attempts %d tries each model", len(f.models)))
}

// validLimits checks each limit without the configuration. It returns a usage
// error.
func validLimits(c *cobra.Command, f loop.LimitFlags) error {
	for _, v := range []struct {
		flag string
		bad  bool
	}{
		{"patience", f.Patience < 1 && c.Flags().Changed("patience")},
		{"unreadable", f.Unreadable < 1 && c.Flags().Changed("unreadable")},
		{"rounds", f.Rounds < 1 && c.Flags().Changed("rounds")},
		{"max-tokens", f.MaxTokens < 1 && c.Flags().Changed("max-tokens")},
		{"max-cost", f.MaxCost <= 0 && c.Flags().Changed("max-cost")},
		{"max-time", f.MaxTime <= 0 && c.Flags().Changed("max-time")},
	} {
		if v.bad {
			return failure.Usage(fmt.Sprintf("--%s must be greater than 0", v.flag), "hone help "+c.Name())
		}
	}
	return nil
}

// raisedLimits returns the limits of a run, raised by the flags of a resume. A
// lower limit is a usage error, with a hint to resume the run named ref; that may be
// followed by -C.
func raisedLimits(l hone.Limits, f loop.LimitFlags, ref string) (hone.Limits, error) {
	raised := l
	err := cmp.Or(
		raise(&raised.Rounds, f.Rounds, "rounds", ref),
		raise(&raised.Patience, f.Patience, "patience", ref),
		raise(&raised.Unreadable, f.Unreadable, "unreadable", ref),
		raise(&raised.Tokens, f.MaxTokens, "max-tokens", ref),
		raise(&raised.Cost, f.MaxCost, "max-cost", ref),
		raise(&raised.Time, f.MaxTime, "max-time", ref))
	if err != nil {
		return l, err
	}
	return raised, nil
}

// raise sets a limit to wanted, which must not be lower. Zero for wanted keeps
// the limit; zero for the limit means unlimited.
func raise[T int | int64 | float64 | time.Duration](limit *T, wanted T, flag, ref string) error {
	switch {
	case wanted == 0:
		return nil
	case *limit == 0:
		return failure.Usage(fmt.Sprintf("the run has no limit for --%s, and resume cannot add one", flag), "hone resume "+ref)
	case wanted < *limit:
		return failure.Usage(fmt.Sprintf("--%s %s is below the run's limit of %s", flag, limitText(wanted), limitText(*limit)),
			fmt.Sprintf("hone resume %s --%s %s", ref, flag, limitText(*limit*2)))
	}
	*limit = wanted
	return nil
}

// limitText formats a limit as its flag accepts it.
func limitText(limit any) string {
	if d, ok := limit.(time.Duration); ok {
		return render.Duration(d)
	}
	return fmt.Sprint(limit)
}

// choices returns the values of each flag that accepts only some, by the flag's name.
func choices() map[string][]string {
	walls := []string{string(sandbox.Auto), string(sandbox.Hidden), string(sandbox.Bubblewrap), string(sandbox.Landlock), string(sandbox.Firejail), string(sandbox.NoWall)}
	return map[string][]string{
		"as":        {"bork"},
		"approve":   {"ask", "none", "all"},
		"judge":     {"ask", "keep", "free"},
		"keep":      {"best", "last"},
		"prove":     {"on", "off", "strict"},
		"reasoning": {string(model.Low), string(model.Medium), string(model.High)},
		"role":      {"builder", "verifier"},
		"sandbox":   walls,
		"template":  {"go", "node", "python"},
		"tools":     {"native", "text"},
		"verify":    {"suite", "session"},
		"wire":      {"responses", "chat"},
	}
}

// validChoices checks the flags of c that accept only some values. An empty value is
// valid. It returns a usage error.
func validChoices(c *cobra.Command) (err error) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		values, value := choices()[f.Name], f.Value.String()
		if err != nil || values == nil || value == "" || slices.Contains(values, value) {
			return
		}
		hint := helpFor(c)
		if f.Name == "sandbox" {
			hint = "hone doctor --full lists the walls that work here"
		}
		last := len(values) - 1
		list := values[last]
		if last > 0 {
			list = strings.Join(values[:last], ", ") + " or " + list
		}
		err = failure.Usage(fmt.Sprintf("--%s %s is not %s", f.Name, value, list), hint)
	})
	return err
}
