package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/failure"
	"hone/harness/runs"
	"hone/internal/config"
	"hone/internal/render"
	"hone/internal/transient"
	"hone/journal/bundle"
)

type importFlags struct {
	dir     string
	maxSize string
}

// defaultImport is how large a bundle may be that is imported.
const defaultImport = "4GB"

func (a *app) importCommand() *cobra.Command {
	var f importFlags
	c := helped("import", &cobra.Command{
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return failure.Usage("import takes a FILE, or - for standard input", helpFor(c))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range args {
				if err := a.importRun(c.Context(), f, name); err != nil {
					return err
				}
			}
			return nil
		},
	})
	registerDir(c, &f.dir)
	c.Flags().StringVar(&f.maxSize, "max-size", defaultImport, "refuse a file with more contents than `SIZE`")
	config.SetRule(c.Flags(), "size>0", "max-size")
	return c
}

func (a *app) importRun(ctx context.Context, f importFlags, name string) error {
	limit, _ := config.ParseSize(f.maxSize) // its rule has been checked
	in, err := a.bundleFile(name)
	if err != nil {
		return err
	}
	defer in.Close()
	i, err := runs.ReadImport(ctx, f.dir, in, limit)
	if err != nil {
		return importFailure(err, name, f)
	}
	a.tellImported(i)
	return nil
}

func (a *app) bundleFile(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.in), nil
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, failure.UsageOf(err, "name a file that hone export wrote")
	case !info.Mode().IsRegular():
		return nil, failure.Usage(name+" is not a regular file", "name a file that hone export wrote")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, failure.UsageOf(err, "name a file that you can read")
	}
	return f, nil
}

func importFailure(err error, name string, f importFlags) error {
	var damage *bundle.DamageError
	var limit *bundle.LimitError
	var diverged *runs.DivergedError
	if name == "-" {
		name = "standard input"
	}
	at, _ := filepath.Abs(f.dir)
	switch {
	case errors.As(err, &limit):
		return failure.Usage(fmt.Sprintf("%s was not imported: it contains more than %s", name, cmp.Or(f.maxSize, defaultImport)), "if you expect that, raise --max-size")
	case errors.As(err, &damage) && damage.Format != 0:
		return failure.Usage(fmt.Sprintf("%s was not imported: %v", name, damage), "another version of hone wrote it: use that version")
	case errors.As(err, &damage) && damage.Other:
		return failure.Usage(fmt.Sprintf("%s was not imported: %v", name, damage), "name a file that hone export wrote")
	case errors.As(err, &damage):
		return failure.Usage(fmt.Sprintf("%s was not imported: %v", name, damage), "export the run again: hone export RUN -o FILE")
	case errors.As(err, &diverged):
		return &failure.Error{Kind: hone.KindBlocked, Why: fmt.Sprintf("%s was not imported: %v", name, diverged),
			Hint: "import it in another checkout; hone show " + diverged.Run + failure.Elsewhere(at) + " shows the run that is here"}
	}
	return notWritten(err, name+" was not imported", "free some disk space")
}

// An error that does not explain itself is one of the environment, or of an interrupt.
func notWritten(err error, what, hint string) error {
	if errors.Is(err, context.Canceled) {
		return &failure.Error{Kind: hone.KindInterrupted, Why: "interrupted: " + what}
	}
	if _, ok := failure.Explain(err, ""); ok && !transient.Is(err) {
		return err
	}
	return failure.Of(fmt.Errorf("%s: %w", what, err), cmp.Or(transient.Remedy(err), hint))
}

func (a *app) tellImported(i *runs.Import) {
	run := i.Header.Run
	named := run + failure.Elsewhere(i.Dir)
	events := render.Count(i.Header.Events, "event")
	switch {
	case i.Before > i.Header.Events:
		fmt.Fprintf(a.out, "run %s is here already, with %s; the file has the first %d of them\n", run, render.Count(i.Before, "event"), i.Header.Events)
		return
	case i.Before == i.Header.Events:
		fmt.Fprintf(a.out, "run %s is here already, with the same %s\n", run, events)
		return
	case i.Before > 0:
		fmt.Fprintf(a.out, "imported run %s: %s, of which %d are new\n", run, events, i.Header.Events-i.Before)
	case i.Start.Redacted:
		fmt.Fprintf(a.out, "imported run %s: %s, %s, without texts\n", run, i.Start.Loop, events)
	default:
		fmt.Fprintf(a.out, "imported run %s: %s, %s, recorded in %s\n", run, i.Start.Loop, events, render.Line(i.Start.Dir))
	}
	if len(i.Header.Withheld) > 0 {
		fmt.Fprintf(a.out, "not in the file, because they look secret: %s\n", render.Names(i.Header.Withheld))
	}
	if i.Start.Redacted {
		fmt.Fprintf(a.out, "next: hone show %s\n", named)
		return
	}
	fmt.Fprintf(a.out, "next: hone show %s; to continue it: hone trust %s, then hone resume %s\n", named, named, named)
}
