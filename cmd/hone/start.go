package main

import (
	"context"
	"fmt"
	"maps"
	"os"

	"github.com/spf13/cobra"

	"hone"
	"hone/check"
	"hone/cmd/hone/failure"
	"hone/group"
	"hone/harness"
	"hone/internal/config"
	"hone/loop"
	"hone/sandbox"
	"hone/workspace"
	"hone/workspace/secret"
)

func (a *app) loopCommand(k loop.Kind) *cobra.Command {
	return a.loopCommandFor(k, func(c *cobra.Command, k loop.Kind, l loop.Loop, f *loopFlags, args []string) error {
		if config.Attempts.In(f.Values) > 1 {
			return a.startAttempts(c, k, l, f, args)
		}
		return a.startLoop(c.Context(), k, l, f, c.Flags().Changed, args)
	})
}

// starter starts a loop with the parsed flags of its command.
type starter func(c *cobra.Command, k loop.Kind, l loop.Loop, f *loopFlags, args []string) error

func (a *app) loopCommandFor(k loop.Kind, start starter) *cobra.Command {
	l := k.New()
	f := &loopFlags{}
	c := &cobra.Command{
		Use: k.Use, Short: k.Short, Long: k.Long, Example: k.Example, Args: argsOf(k),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.valid(c); err != nil {
				return err
			}
			a.trust = f.trust
			if err := a.openLog(f.output.log); err != nil {
				return err
			}
			return start(c, k, l, f, args)
		},
	}
	f.register(c, k)
	return c
}

func argsOf(k loop.Kind) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error { return k.Accept(args) }
}

// It stops after the first run that is not done. The runs share one budget.
func (a *app) startLoop(ctx context.Context, k loop.Kind, l loop.Loop, f *loopFlags, changed func(string) bool, args []string) error {
	in, err := a.input(k, l, f, changed, args)
	if err != nil {
		return err
	}
	defer in.Tree.Close()
	runs := [][]string{args}
	if series, ok := l.(loop.Series); ok {
		if runs, err = series.Split(ctx, in); err != nil {
			return err
		}
	}
	var spent group.Amount
	for i, args := range runs {
		if i > 0 {
			fmt.Fprintln(a.err)
		}
		one := *in
		one.Args, one.Values = args, maps.Clone(in.Values)
		if err := a.startRun(ctx, k, l, &one, f.output, &spent); err != nil || a.exit != 0 {
			return err
		}
	}
	return nil
}

// All settings are resolved before anything is written.
func (a *app) startRun(ctx context.Context, k loop.Kind, l loop.Loop, in *loop.Input, o outputFlags, spent *group.Amount) error {
	a.offerCheck(ctx, k, in)
	if err := l.Resolve(ctx, in); err != nil {
		return err
	}
	limits, err := remaining(in.Limits(), *spent)
	if err != nil {
		return err
	}
	if err := a.host().NoKey(k, l); err != nil {
		return a.onlyCheck(ctx, in, o, err)
	}
	n, err := a.startNeeds(in.Root, in.File, in.Flags, k)
	if err != nil {
		return err
	}
	s, err := a.host().Start(ctx, k, l, n, limits)
	if err != nil {
		return err
	}
	defer s.Close()
	end, err := a.drive(ctx, s, o)
	used := group.Amount{Tokens: end.Tokens, Time: s.Active()}
	if end.Cost != nil {
		used.Cost = group.Dollars(*end.Cost)
	}
	*spent = spent.Plus(used)
	return err
}

func (a *app) offerCheck(ctx context.Context, k loop.Kind, in *loop.Input) {
	if !a.present() || k.Starters == nil || !k.Starters().NeedsCheck || config.Check.In(in.Values) != "" {
		return
	}
	if from, check := suggestedCheck(in.Root); check != "" && a.confirm(ctx, fmt.Sprintf("There is no check. %s: %s\nUse it for this run?", from, check)) {
		config.Check.Set(in.Values, check)
		config.Check.Set(in.Flags, check)
	}
}

// It records no run. The error is noKey unless the check passes or cannot run.
func (a *app) onlyCheck(ctx context.Context, in *loop.Input, o outputFlags, noKey error) error {
	if o.json {
		return noKey
	}
	a.say("note", noKey.Error()+": hone can only check")
	err := a.check(ctx, checkFlags{Values: in.Flags, dir: in.Dir, trust: a.trust, verbose: o.verbose, quiet: o.quiet})
	if err == nil && a.exit == failure.ExitStatus(hone.KindRounds) {
		return noKey
	}
	return err
}

// The caller closes its tree.
func (a *app) input(k loop.Kind, l loop.Loop, f *loopFlags, changed func(string) bool, args []string) (*loop.Input, error) {
	in := &loop.Input{Kind: k, Dir: f.dir, Args: args, Flags: f.Values, Changed: changed, Getenv: a.env,
		Note: func(text string) { a.say("note", text) }, In: a.in, Out: a.out, HasProvider: harness.HasProvider}
	if a.present() {
		in.Edit = func(name string) (string, error) {
			text, err := editText(a.in, sandbox.OwnEnviron(a.environ, in.Root), "hone-text-", name, nil)
			return string(text), err
		}
	}
	root := loop.AbsDir
	if k.Root != nil {
		root = k.Root
	}
	var err error
	if in.Root, err = root(in.Dir); err != nil {
		return nil, err
	}
	if in.File, err = a.loadConfig(in.Root); err != nil {
		return nil, err
	}
	if in.Tree, err = workspace.Open(in.Root, workspace.Options{}); err != nil {
		return nil, err
	}
	if err := a.useWorkspaceKeys(k, in.Tree); err != nil {
		in.Tree.Close()
		return nil, err
	}
	in.Getenv = a.env
	in.Values = in.File.For(k.Name, a.env, in.Flags)
	in.Resolve = func(v config.Values) (loop.Settings, error) { return a.host().Resolve(k, in.Root, v, in.File) }
	in.ReadFindings = func(text string) []check.Finding { return harness.ReadFindings(text, in.Values, in.Tree) }
	in.Guard = func(ctx context.Context) (*secret.Guard, error) { return a.host().Guard(ctx, l, in.Root) }
	return in, nil
}

// The keys are used in this process only, and redacted in everything printed.
func (a *app) useWorkspaceKeys(k loop.Kind, tree *workspace.Tree) error {
	h, err := a.host().WithKey(k, tree)
	if err != nil || k.Key == nil {
		return err
	}
	a.env = h.Getenv
	a.concealKeys()
	return nil
}

func (a *app) host() harness.Host {
	h := harness.Host{Getenv: a.env, Environ: a.environ, Version: version(), Observer: a.observer, Walls: a.walls,
		Notify: func(n hone.Notice) { a.say("note", failure.NoticeText(n)) }, TrustPrograms: a.trust}
	if h.Outputs = []*os.File{os.Stdout, os.Stderr}; a.log != nil {
		h.Outputs = append(h.Outputs, a.log)
	}
	if a.present() {
		h.Trust = a.askTrust
	}
	return h
}

// spent is what the earlier runs of a command used of their shared budget.
func remaining(l hone.Limits, spent group.Amount) (hone.Limits, error) {
	b := group.Bank{Cap: group.LimitsOf(l), Spent: spent}
	free, over := b.Free(), ""
	switch {
	case l.Tokens > 0 && free.Tokens <= 0:
		over = "tokens"
	case l.Cost > 0 && free.Cost <= 0:
		over = "cost"
	case l.Time > 0 && free.Time <= 0:
		over = "time"
	}
	if over != "" {
		return l, &failure.Error{Kind: hone.KindBudget, Why: "earlier runs of this command used up the budget of " + over,
			Hint: "start the rest with the same command: it has a new budget"}
	}
	l.Tokens, l.Cost, l.Time = free.Tokens, free.Cost.Float(), free.Time
	return l, nil
}
