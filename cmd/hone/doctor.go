package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"hone/cmd/hone/doctor"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/report"
	"hone/internal/config"
	"hone/internal/render"
)

func (a *app) doctorCommand() *cobra.Command {
	var o doctor.Options
	c := helped("doctor", &cobra.Command{
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.doctor(c.Context(), o)
		},
	})
	registerDir(c, &o.Dir)
	o.Typed = config.Values{}
	c.Flags().SetNormalizeFunc(wallToo)
	config.AddFlags(c.Flags(), o.Typed, "", c.Name())
	c.Flags().BoolVar(&o.Full, "full", false, "try to cross every wall that works here")
	c.Flags().BoolVarP(&o.Verbose, "verbose", "v", false, "with --full or --sandbox, list what each wall leaves open")
	return c
}

func (a *app) doctor(ctx context.Context, o doctor.Options) error {
	if last, err := report.Open(o.Dir, "last"); err == nil {
		if !last.Working {
			a.say("note", last.Incomplete())
		}
		last.Close()
	}
	o.Host, o.Load = a.host(), func(root string) (config.File, error) { return a.loadConfig(root) }
	if a.terminal {
		o.Progress = a.err
	}
	a.printDiagnosis(doctor.Diagnosis{What: "hone", Found: version()})
	var bad []doctor.Diagnosis
	for d := range doctor.Diagnose(ctx, o) {
		if d.Bad {
			bad = append(bad, d)
		}
		a.printDiagnosis(d)
	}
	if len(bad) > 0 {
		return failure.Of(fmt.Errorf("%s found", render.Count(len(bad), "problem")), "begin with "+bad[0].What+": "+cmp.Or(bad[0].Hint, bad[0].Found))
	}
	return nil
}

func (a *app) printDiagnosis(d doctor.Diagnosis) {
	a.printLine(fmt.Sprintf("%s %-12s %s", d.Mark(), d.What, d.Found))
	for _, line := range append(d.More, d.Hint) {
		if line != "" {
			a.printLine(fmt.Sprintf("  %-12s %s", "", line))
		}
	}
}
