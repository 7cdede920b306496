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
			limit, _ := config.ParseSize(f.maxSize) // its rule has been checked
			for _, name := range args {
				in, err := a.bundleFile(name)
				if err != nil {
					return err
				}
				i, err := runs.ReadImport(c.Context(), f.dir, in, limit)
				in.Close()
				if err != nil {
					return importFailure(err, name, f.dir)
				}
				a.tellImported(i)
			}
			return nil
		},
	})
	registerDir(c, &f.dir)
	c.Flags().StringVar(&f.maxSize, "max-size", "4GB", "refuse a file with more contents than `SIZE`")
	config.SetRule(c.Flags(), "size>0", "max-size")
	return c
}

func (a *app) bundleFile(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.in), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, failure.UsageOf(err, "name a file that hone export wrote")
	}
	return f, nil
}

func importFailure(err error, name, dir string) error {
	if name == "-" {
		name = "standard input"
	}
	what := name + " was not imported"
	var diverged *runs.DivergedError
	switch {
	case errors.As(err, new(*bundle.LimitError)):
		return failure.UsageOf(fmt.Errorf("%s: %w", what, err), "if you expect that, raise --max-size")
	case errors.As(err, new(*bundle.DamageError)):
		return failure.UsageOf(fmt.Errorf("%s: %w", what, err), "name a file that hone export of this version wrote, or export the run again")
	case errors.As(err, &diverged):
		at, _ := filepath.Abs(dir)
		return &failure.Error{Kind: hone.KindBlocked, Why: what, Err: diverged,
			Hint: "import it in another checkout; hone show " + diverged.Run + failure.Elsewhere(at) + " shows the run that is here"}
	}
	return notWritten(err, what, "free some disk space")
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
	case i.Before >= i.Header.Events:
		fmt.Fprintf(a.out, "run %s is here already, with %s; the file has %d of them\n", run, render.Count(i.Before, "event"), i.Header.Events)
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
