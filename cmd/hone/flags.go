package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hone/cmd/hone/attempts"
	"hone/cmd/hone/failure"
	"hone/harness"
	"hone/internal/config"
	"hone/loop"
)

type loopFlags struct {
	config.Values // that were given
	dir           string
	trust         bool
	models        modelFlag
	output        outputFlags
}

// modelFlag are the models that were typed, one for each -m.
type modelFlag []string

func (m *modelFlag) Set(name string) error { *m = append(*m, name); return nil }
func (m *modelFlag) String() string        { return strings.Join(*m, " ") }
func (m *modelFlag) Type() string          { return "string" }

type outputFlags struct {
	json, ack, verbose, quiet, web bool
	log                            string
}

func (f *loopFlags) register(c *cobra.Command, k loop.Kind) {
	f.Values = config.Values{}
	registerDir(c, &f.dir)
	fs := c.Flags()
	config.AddFlags(fs, f.Values, k.Name, k.Name)
	model := fs.Lookup(config.Model.FlagName())
	model.Value, model.Usage = &f.models, strings.Replace(model.Usage, "`PROVIDER/NAME`", "`PROVIDER/NAME` ("+strings.Join(harness.ListedProviders(), ", ")+")", 1)
	fs.BoolVar(&f.trust, "trust", false, "run the directory's own programs, such as build.sh, without asking; does not accept its settings (see hone help trust)")
	config.SetGroup(fs, "trust", "safety", false)
	f.output.register(c)
	f.output.registerAck(c)
}

func wallToo(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "wall" {
		name = config.Wall.FlagName()
	}
	return pflag.NormalizedName(name)
}

func registerDir(c *cobra.Command, dir *string) {
	c.Flags().StringVarP(dir, "dir", "C", ".", "work in `DIR`")
}

func (f *outputFlags) register(c *cobra.Command) {
	fs := c.Flags()
	fs.BoolVar(&f.json, "json", false, "print only the run's events to stdout, as JSON lines")
	fs.StringVar(&f.log, "log", "", "also append the run's events to `FILE`, as --json prints them")
	config.SetRule(fs, "file", "log")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show the model's text and complete findings")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "show only refusals, notices, remaining findings and the result")
	fs.BoolVar(&f.web, "web", false, "show the run also on a page in the browser until it ends; see hone help web")
	for _, flag := range []string{"json", "log", "verbose", "quiet", "web"} {
		config.SetGroup(fs, flag, "output", false)
	}
}

func (f *outputFlags) registerAck(c *cobra.Command) {
	c.Flags().BoolVar(&f.ack, "ack", false, "with --json: before each model call, wait for a line on stdin with the number (seq) of the last event")
	config.SetGroup(c.Flags(), "ack", "output", true)
}

func (f *outputFlags) valid(c *cobra.Command) error {
	if f.ack && !f.json {
		return failure.Usage("--ack is for a program that reads the events of --json", "hone "+c.Name()+" --json --ack")
	}
	return nil
}

func (f *loopFlags) valid(c *cobra.Command) error {
	n := config.Attempts.In(f.Values)
	switch {
	case n < 1 || n > attempts.Most:
		return failure.Usage(fmt.Sprintf("--attempts must be from 1 to %d", attempts.Most), "hone help "+c.Name())
	case len(f.models) > n && c.Flags().Lookup("attempts") == nil:
		return failure.Usage(fmt.Sprintf("-m is given %d times, but %s has one", len(f.models), c.Name()), "-m "+f.models[0])
	case len(f.models) > n:
		return failure.Usage(fmt.Sprintf("-m is given %d times, but --attempts is %d", len(f.models), n), fmt.Sprintf("--attempts %d tries each model", len(f.models)))
	case len(f.models) > 0:
		config.Model.Before(f.Values, nil, f.models[0])
	}
	if err := f.output.valid(c); err != nil {
		return err
	}
	if f.output.ack && n > 1 {
		return failure.Usage("--ack does not work with --attempts, which makes several runs", "leave out one of them")
	}
	return nil
}
