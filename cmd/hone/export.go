package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/report"
	"hone/harness"
	"hone/harness/runs"
	"hone/internal/config"
	"hone/internal/render"
	"hone/loop"
	"hone/otlp"
	"hone/sandbox"
)

type exportFlags struct {
	dir    string
	output string
	force  bool
	// redacted leaves out the run's texts.
	redacted bool
	since    int64  // an event
	without  string // a commit
	otlp     string // a file; then the run is written as a trace
}

func (a *app) exportCommand() *cobra.Command {
	var f exportFlags
	c := helped("export", &cobra.Command{
		Args: oneRun,
		RunE: func(c *cobra.Command, args []string) error {
			if f.otlp != "" {
				return a.exportTrace(f, runArg(args))
			}
			return a.export(c.Context(), f, runArg(args))
		},
	})
	registerDir(c, &f.dir)
	c.Flags().StringVarP(&f.output, "output", "o", "", "the `FILE` to write, or - for standard output")
	c.Flags().BoolVar(&f.force, "force", false, "overwrite the file")
	c.Flags().Int64Var(&f.since, "since", 0, "leave out the contents that the run needed by its event `N`, for a place that imported them")
	c.Flags().StringVar(&f.without, "without", "", "leave out the files of `COMMIT`, an id, which import takes from its checkout")
	c.Flags().BoolVar(&f.redacted, "redacted", false, "leave out all texts, for a report about hone")
	c.Flags().StringVar(&f.otlp, "otlp", "", "write a trace as OTLP JSON to `FILE` instead; - is standard output")
	for _, flag := range []string{"output", "redacted", "since", "without"} {
		c.MarkFlagsMutuallyExclusive("otlp", flag)
	}
	return c
}

func (a *app) exportTrace(f exportFlags, ref string) error {
	if err := checkFree(f.otlp, f.force); err != nil {
		return err
	}
	r, err := report.Open(f.dir, ref)
	if err != nil {
		return err
	}
	defer r.Close()
	write := func(w io.Writer) error {
		return otlp.Write(w, otlp.Run{ID: r.ID, Start: r.Start, Past: r.Past, Working: r.Working, Get: r.Home.Get, Own: r.Own()})
	}
	if f.otlp == "-" {
		return write(a.out)
	}
	if err := writeWhole(f.otlp, write); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "wrote the trace of run %s to %s\n", r.ID, render.Line(f.otlp))
	return err
}

func (a *app) export(ctx context.Context, f exportFlags, ref string) error {
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return err
	}
	again := "hone export " + ref + failure.Elsewhere(dir) + " -o run.hone"
	switch { // before anything is read
	case f.output == "":
		return failure.Usage("export needs a file to write", again)
	case f.output == "-" && a.outTerminal:
		return failure.Usage("a bundle is not for a terminal", again)
	}
	if err := checkFree(f.output, f.force); err != nil {
		return err
	}
	home, run, err := report.Find(f.dir, ref)
	if err != nil {
		return err
	}
	defer home.Close()
	x, err := runs.OpenExport(ctx, home, run)
	if err != nil {
		return err
	}
	x.Since, x.Without = f.since, f.without
	if f.redacted || x.Redacted {
		err = x.Redact()
	} else {
		var shared loop.Settings
		_ = json.Unmarshal(x.Start.Settings, &shared) // unreadable settings send no file that looks secret
		guard, wrong := harness.NewGuard(ctx, a.env, x.Dir, config.Send.In(shared.Values), shared.Variables(), a.environ)
		if wrong != nil {
			return wrong
		}
		err = x.Collect(ctx, func(path string, content []byte) bool { // files that are withheld from models are left out
			_, secret := guard.Withheld(path, content)
			return secret
		})
	}
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return x.Write(ctx, w, version()) }
	if f.output == "-" {
		err = write(os.Stdout) // not a.out: contents must arrive as they are
	} else {
		err = writeWhole(f.output, write)
	}
	if err != nil {
		return err
	}
	a.tellExported(x, f.output)
	return nil
}

// checkFree reports whether [writeWhole] may write a file, before anything is read.
func checkFree(name string, force bool) error {
	if name == "-" {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return cannotCreate(name, err)
	}
	info, err := os.Lstat(name)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		return failure.Usage(name+" is not a regular file", "name another file")
	case !force:
		return failure.Usage(name+" exists", "name another file, or add --force")
	}
	return nil
}

// Only the user can read the file, which is written whole or not at all.
func writeWhole(name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".hone~export-*")
	if err == nil {
		defer os.Remove(f.Name()) // fails after the rename
		err = errors.Join(write(f), f.Sync(), f.Close())
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return notWritten(err, name+" was not written", "free some disk space, or name a file elsewhere")
	}
	return nil
}

func (a *app) tellExported(x *runs.Export, name string) {
	out := a.out
	if name == "-" {
		out = a.err
	}
	size := ""
	if info, err := os.Stat(name); err == nil && name != "-" {
		size = fmt.Sprintf(" (%s)", render.Bytes(info.Size()))
	}
	fmt.Fprintf(out, "exported run %s to %s%s: %s and %s\n", x.Run, render.Line(name), size,
		render.Count(x.Events, "event"), render.Count(x.Objects, "object"))
	if len(x.Withheld) > 0 {
		fmt.Fprintf(out, "not in it, because they look secret: %s\n", render.Names(x.Withheld))
	}
	if abs, err := filepath.Abs(name); err == nil && name != "-" && sandbox.Within(x.Dir, abs) {
		a.say("note", render.Line(name)+" is in the project: move it away before the next run, and do not commit it")
	}
	if x.Working {
		fmt.Fprintln(out, "the run is still working here: what it records from now on is not in the file")
	}
	switch {
	case x.Redacted:
		fmt.Fprintln(out, "its texts are replaced by their lengths; the names of files are not")
		return
	case name == "-":
		return
	}
	where := "in a copy of the project"
	if x.Base != "" {
		where = fmt.Sprintf("in a checkout of %.12s", x.Base)
	}
	fmt.Fprintf(out, "next, %s: hone import %s\n", where, render.Line(failure.Quoted(filepath.Base(name))))
}
