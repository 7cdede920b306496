package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness"
	"hone/harness/runs"
	"hone/internal/config"
	"hone/internal/git"
	"hone/internal/render"
	"hone/loop"
	"hone/sandbox"
	"hone/workspace/secret"
)

type sandboxFlags struct {
	config.Values  // that were given
	dir            string
	rw, ro         []string
	verbose, quiet bool
}

func (a *app) sandboxCommand() *cobra.Command {
	var f sandboxFlags
	c := helped("sandbox", &cobra.Command{
		RunE: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() != 0 || len(args) == 0 {
				return failure.Usage("sandbox needs a command after --", "hone sandbox -- make test")
			}
			return a.sandbox(c.Context(), f, args)
		},
	})
	registerDir(c, &f.dir)
	f.register(c)
	return c
}

func (f *sandboxFlags) register(c *cobra.Command) {
	fs := c.Flags()
	f.Values = config.Values{}
	fs.SetNormalizeFunc(wallToo)
	config.AddFlags(fs, f.Values, "", c.Name())
	fs.StringArrayVar(&f.rw, "rw", nil, "another directory or file, `PATH`, that the command may change; repeatable")
	fs.StringArrayVar(&f.ro, "ro", nil, "another directory or file, `PATH`, that the command may read but not change; repeatable")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "list what stays open and what is hidden")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print only errors, apart from the command's output")
	c.Flags().SetInterspersed(false)
}

func (a *app) sandbox(ctx context.Context, f sandboxFlags, argv []string) error {
	dir, w, err := a.resolveSandbox(ctx, f)
	if err != nil {
		return err
	}
	if err := a.host().Enclose(ctx, w); err != nil {
		return interrupted(ctx, err)
	}
	defer w.Close()
	if !f.quiet {
		a.sayWalls(w.Grade(), w.Notes())
	}
	if f.verbose && !f.quiet {
		for _, p := range w.Secrets() {
			a.sayPlain("secret: %s", p)
		}
		if g := w.Grade(); g.Why != "" {
			a.sayPlain("no stronger wall: %s", g.Why)
		}
		for _, o := range w.Grade().Open {
			a.sayPlain("open: %s", o)
		}
	}
	out, errs := shownOn(a.out, w.Guard), shownOn(a.err, w.Guard)
	var notes []hone.Notice
	w.Advise = func(n hone.Notice) error {
		notes = append(notes, n)
		return nil
	}
	r, err := w.Run(ctx, sandbox.Command{Argv: argv, Dir: dir, LiveOut: out, LiveErr: errs})
	out.Flush()
	errs.Flush()
	for _, n := range notes {
		switch text := failure.NoticeText(n); {
		case !n.Denied:
			a.sayPlain("%s", text)
		case !f.quiet && err == nil:
			a.say("hint", text)
		}
	}
	return a.sandboxEnd(ctx, r, err)
}

func (a *app) resolveSandbox(ctx context.Context, f sandboxFlags) (dir string, w *harness.Walls, err error) {
	w = &harness.Walls{ID: "by-hand"}
	if dir, err = loop.AbsDir(f.dir); err != nil {
		return dir, w, err
	}
	w.Root = dir
	if _, err := git.Root(dir); !errors.Is(err, git.ErrNotRepository) { // a command may write the workspace that the folder belongs to in its repository
		if w.Root, err = runs.FindRoot(dir); err != nil {
			return dir, w, err
		}
	}
	file, err := a.loadConfig(w.Root)
	if err != nil {
		return dir, w, err
	}
	if run, _, ok := runs.Working(w.Root); ok {
		return dir, w, failure.Usage("another hone is working here, on run "+run, "wait for it, or stop it")
	}
	n, err := kinds.Needs(w.Root, file)
	if err == nil {
		n.Programs = nil // the user typed the command
		err = a.host().Trusted(ctx, n)
	}
	if err != nil {
		return dir, w, err
	}
	if w.Settings, err = a.host().ResolveWalls(file.For("", a.env, f.Values), w.Root); err != nil {
		return dir, w, err
	}
	if w.Guard, err = harness.NewGuard(ctx, a.env, w.Root, config.Send.In(file.Shared()), file.Variables(), a.environ); err != nil {
		return dir, w, err
	}
	return dir, w, extend(w, f, dir)
}

// What is written on the command line has to be there, but for what is to be kept from coming into being.
func extend(w *harness.Walls, f sandboxFlags, dir string) error {
	for _, list := range []struct {
		flag string
		from []string
		to   *[]string
	}{{"rw", f.rw, &w.Settings.Write}, {"ro", f.ro, &w.Settings.Read}} {
		for _, p := range list.from {
			at, err := loop.AbsPath(dir, p)
			if err != nil {
				return err
			}
			if _, err := os.Stat(at); err != nil && (list.flag == "rw" || !sandbox.Within(w.Root, at)) {
				return failure.Usage(fmt.Sprintf("--%s %s: no such directory or file", list.flag, p), "create it, or name one that exists")
			}
			*list.to = append(*list.to, at)
		}
	}
	return nil
}

func (a *app) sayPlain(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = render.Line(text)
		}
	}
	fmt.Fprintf(a.err, "hone: "+format+"\n", args...)
}

func (a *app) sandboxEnd(ctx context.Context, r sandbox.Result, err error) error {
	var start *sandbox.StartError
	switch {
	case ctx.Err() != nil:
		return interrupted(ctx, err)
	case errors.As(err, &start):
		a.say("error", start.Error())
		a.exit = 126
		if errors.Is(start, fs.ErrNotExist) {
			a.exit = 127
		}
		return nil
	case err != nil:
		return harness.NoWalls(ctx, err)
	case r.OverLimit != "":
		a.exit = failure.ExitStatus(hone.KindBudget)
	default:
		a.exit = shellStatus(r)
	}
	return nil
}

func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return harness.NoWalls(ctx, err)
	}
	return &failure.Error{Kind: hone.KindInterrupted, Why: "interrupted"}
}

// A shell tells the end of a command like this.
func shellStatus(r sandbox.Result) int {
	if r.Signal == "" {
		return r.Exit
	}
	for n := range 65 {
		if syscall.Signal(n).String() == r.Signal {
			return 128 + n
		}
	}
	return 128
}

// shown is a stream of a command's output that is printed as it comes, without
// keys and secret values (rulings G6 and G8).
type shown struct{ *secret.Gate }

func shownOn(to io.Writer, guard *secret.Guard) *shown {
	return &shown{secret.NewGate(guard, func(text string) { _, _ = io.WriteString(to, text) })}
}

func (s *shown) Write(b []byte) (int, error) {
	s.Pass(string(b))
	return len(b), nil
}
