package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/harness"
	"hone/harness/runs"
	"hone/internal/config"
	"hone/internal/listing"
	"hone/internal/render"
	"hone/loop"
)

func (a *app) promptCommand() *cobra.Command {
	c := helped("prompt", &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return failure.Usage("prompt needs the name of a loop", "hone prompt fix; or one of: "+loopNames(c))
		},
	})
	for _, k := range kinds.All() {
		if l, ok := k.New().(previewer); ok {
			c.AddCommand(a.promptLoopCommand(k, l))
		}
	}
	return c
}

type previewer interface {
	loop.Loop
	loop.Previewer
}

func (a *app) promptLoopCommand(k loop.Kind, l previewer) *cobra.Command {
	f := &loopFlags{}
	c := &cobra.Command{
		Use: k.Use, Short: "what " + k.Name + " would send first", Args: argsOf(k),
		RunE: func(c *cobra.Command, args []string) error {
			return a.prompt(c.Context(), k, l, f, c.Flags().Changed, args)
		},
	}
	registerDir(c, &f.dir)
	f.Values = config.Values{}
	config.AddFlags(c.Flags(), f.Values, k.Name, "prompt")
	c.Flags().BoolVar(&f.output.json, "json", false, "print the request as one JSON object")
	return c
}

// It needs no key. Without a model the size is not compared with a context.
func (a *app) prompt(ctx context.Context, k loop.Kind, l previewer, f *loopFlags, changed func(string) bool, args []string) error {
	in, err := a.input(k, l, f, changed, args)
	if err != nil {
		return err
	}
	defer in.Tree.Close()
	in.Preview = true
	err = l.Resolve(ctx, in)
	unnamed := errors.Is(err, harness.ErrNoModel)
	if unnamed {
		config.Model.Set(in.Flags, "script/none")
		config.Model.Set(in.Values, "script/none")
		err = l.Resolve(ctx, in)
	}
	if err != nil {
		return err
	}
	view := loop.View{Limits: in.Limits()}
	if view.Guard, err = in.Guard(ctx); err != nil {
		return err
	}
	a.conceal(view.Guard)
	if view.Repo, err = listing.Repository(in.Root, in.Root); err != nil {
		return err
	}
	if view.Tree, err = runs.OpenTree(in.Root); err != nil {
		return err
	}
	defer view.Tree.Close()
	a.host().Advise(l, view.Tree, view.Guard)
	if advice := l.Shared().RepoAdvice; advice.File != "" {
		a.sayPlain("%s", advice)
	}
	p, err := l.Preview(ctx, view)
	if err != nil {
		return promptError(err)
	}
	name := cmp.Or(p.Model, l.Shared().Model.Name)
	if unnamed {
		name = ""
	}
	return a.showPrompt(p, name, f.output.json)
}

type preview struct {
	System string `json:"system"`
	Text   string `json:"text"`
	Bytes  int    `json:"bytes"`
	Tokens int    `json:"tokens_estimate"`
	Files  int    `json:"files"`
	Fits   bool   `json:"fits"`
}

// An empty name means no model.
func (a *app) showPrompt(p loop.Prompt, name string, asJSON bool) error {
	v := preview{System: p.System, Text: p.Text, Bytes: len(p.System) + len(p.Text), Files: p.Files, Fits: p.Fits == nil}
	v.Tokens = v.Bytes / 4
	for _, text := range p.Warnings {
		fmt.Fprintln(a.err, "hone: "+text)
	}
	if asJSON {
		return errors.Join(json.NewEncoder(a.out).Encode(v), promptError(p.Fits))
	}
	fmt.Fprint(a.out, a.forReading(p.System+"\n"+p.Text))
	if name != "" {
		name = " for " + name
	}
	what := cmp.Or(p.What, render.Count(p.Files, "file")+" and the instructions")
	fmt.Fprintf(a.err, "hone: %s, %s, about %s tokens%s\n", what,
		render.Bytes(int64(v.Bytes)), render.Tokens(int64(v.Tokens)), name)
	return promptError(p.Fits)
}

// The run itself would report it like this.
func promptError(err error) error {
	var c *hone.ContextError
	if errors.As(err, &c) {
		return failure.Usage(c.Error(), c.Next().First)
	}
	return err
}
