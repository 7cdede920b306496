package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hone"
	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness"
	"hone/harness/runs"
	"hone/internal/config"
	"hone/journal"
	"hone/loop"
)

// Like a run of the loop, it resolves all settings before it writes anything, so that what is wrong is reported once.
func (a *app) startAttempts(c *cobra.Command, k loop.Kind, l loop.Loop, f *loopFlags, args []string) error {
	in, err := a.input(k, l, f, c.Flags().Changed, args)
	if err != nil {
		return err
	}
	defer in.Tree.Close()
	if slices.Equal(in.Args, []string{"-"}) { // attempts share no input
		text, err := in.Text()
		if err != nil {
			return err
		}
		in.Args = []string{text}
	}
	ctx := c.Context()
	for _, s := range []config.Setting[string]{config.Findings, config.QueryFile} {
		if s.In(f.Values) == "-" {
			return failure.Usage("attempts share no input, so --"+s.Flag+" cannot be standard input", "give --"+s.Flag+" the name of a file")
		}
	}
	a.offerCheck(ctx, k, in)
	if check := config.Check.In(f.Values); check != "" { // an attempt gets the flags that were typed
		if err := c.Flags().Set(config.Check.FlagName(), check); err != nil {
			return err
		}
	}
	v := attempts.New(kinds.All())
	v.Loop, v.Count, v.Named, v.Args, v.Text = k.Name, config.Attempts.In(f.Values), f.models, typedFlags(c.Flags()), in.Args
	limits, err := a.resolveAttempts(ctx, in, l, v)
	if err != nil {
		return err
	}
	limits.Lines = 0 // each attempt has that limit
	if err := judgesCopies(in, v.Check); err != nil {
		return err
	}
	if v.Cwd, err = os.Getwd(); err != nil {
		return failure.Of(err, "cd to a directory that exists")
	}
	n, err := a.startNeeds(in.Root, in.File, in.Flags, k)
	if err != nil {
		return err
	}
	v.Trusted = trustedBy(a.env("HONE_TRUST"), n)
	s, err := a.host().Start(ctx, attempts.Kind(kinds.All()), v, n, limits)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = a.drive(ctx, s, f.output)
	return err
}

func (a *app) resolveAttempts(ctx context.Context, in *loop.Input, l loop.Loop, v *attempts.Invocation) (limits hone.Limits, err error) {
	named := v.Named
	if len(named) == 0 {
		named = []string{""}
	}
	for _, name := range slices.Backward(named) { // the settings are those with the first
		if name != "" {
			config.Model.Set(in.Flags, name)
			in.Values = in.File.For(in.Kind.Name, a.env, in.Flags)
		}
		if err = l.Resolve(ctx, in); err != nil {
			return limits, err
		}
		limits = in.Limits()
		var asked []loop.Model
		for _, m := range l.Models() {
			asked = append(asked, *m.Model)
		}
		v.Asked = slices.Insert(v.Asked, 0, asked)
		in.Note = func(string) {} // once
		silent := a.host()
		silent.Notify = nil
		in.Resolve = func(values config.Values) (loop.Settings, error) {
			return silent.Resolve(in.Kind, in.Root, values, in.File)
		}
	}
	v.Settings = *l.Shared()
	v.About = strings.TrimSpace(fmt.Sprintf("%d × %s %s", v.Count, v.Loop, kinds.Subject(l)))
	// The attempts prove their checks and protect files; what they changed was judged then.
	unjudged(v.Values)
	return limits, nil
}

// The attempt that the run applies was judged already.
func unjudged(v config.Values) {
	config.Prove.Set(v, "off")
	config.Keep.Set(v, "last")
	config.Protect.Set(v, nil)
	config.Only.Set(v, nil)
	config.OnlyNew.Set(v, false)
	config.MaxDiff.Set(v, 0)
}

// Such a check would judge the directory, and not the attempts, which are in copies.
func judgesCopies(in *loop.Input, check string) error {
	dirs := []string{in.Root}
	if typed, err := filepath.Abs(in.Dir); err == nil {
		dirs = append(dirs, typed)
	}
	if top, err := attempts.Top(in.Root); err == nil {
		dirs = append(dirs, top)
	}
	for _, dir := range dirs {
		to, err := filepath.Rel(in.Root, dir)
		if err != nil {
			to = "."
		}
		if err := loop.CheckOfCopies(check, dir, to, "attempts"); err != nil {
			return err
		}
	}
	return nil
}

// A copy has the same programs and settings as the workspace whose user trusts them.
func trustedBy(typed string, n harness.Needs) string {
	var all []string
	for _, one := range append(strings.Split(typed, ","), "1", n.Digest()) {
		if one != "" && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return strings.Join(all, ",")
}

// notForAttempts are flags that are about the run of the attempts, or that each attempt
// gets with a value of its own.
var notForAttempts = []string{"ack", "attempts", "dir", "json", "log", "max-cost", "max-time", "max-tokens", "model", "quiet", "trust", "verbose"}

func typedFlags(fs *pflag.FlagSet) (args []string) {
	fs.Visit(func(f *pflag.Flag) {
		if slices.Contains(notForAttempts, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, err := fs.GetStringSlice(f.Name); err == nil {
			values = list
		}
		for _, value := range values {
			args = append(args, "--"+f.Name+"="+value)
		}
	})
	return args
}

func (a *app) takeCommand() *cobra.Command {
	var dir string
	var output outputFlags
	c := helped("take", &cobra.Command{
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return failure.Usage("take needs one RUN, the run of an attempt", "hone show"+dirFlag(c)+" lists the attempts of the last run")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.take(c.Context(), dir, args[0], output) },
	})
	registerDir(c, &dir)
	output.register(c)
	return c
}

func (a *app) take(ctx context.Context, dir, ref string, output outputFlags) error {
	if err := a.openLog(output.log); err != nil {
		return err
	}
	home, err := runs.Open(dir)
	if err != nil {
		return err
	}
	defer home.Close()
	root := home.Workspace()
	found, err := attempts.Find(home, ref)
	if missing, ok := errors.AsType[*journal.NotFoundError](err); ok {
		why := fmt.Sprintf("no attempt here is called %q", ref)
		if n := len(missing.Matches); n > 0 {
			why = fmt.Sprintf("%q matches %d attempts, including %s", ref, n, missing.Matches[0])
		}
		return failure.Usage(why, "hone show"+failure.Elsewhere(root)+" lists the attempts of the last run")
	}
	if err != nil {
		return err
	}
	copied, err := attempts.OpenCopy(found.Number, found.Dir)
	if err != nil {
		return err
	}
	copied.Close()
	file, err := config.Load(root)
	if err != nil {
		return harness.ConfigError(err)
	}
	host := a.host()
	host.Notify = func(hone.Notice) {} // the notes are about the model
	v := attempts.NewTaking(kinds.All())
	if v.Settings, err = host.Resolve(attempts.TakeKind(kinds.All()), root, file.For(attempts.TakeName, a.env, config.Values{config.Wall.Name: "none"}), file); err != nil {
		return err
	}
	v.Model, v.Check = loop.Model{}, ""
	unjudged(v.Values)
	v.Of, v.Number, v.Run, v.Dir = found.Of, found.Number, found.Run, found.Dir
	s, err := a.host().Start(ctx, attempts.TakeKind(kinds.All()), v, harness.Needs{Folder: root}, hone.Limits{Rounds: 1})
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = a.drive(ctx, s, output)
	return err
}
