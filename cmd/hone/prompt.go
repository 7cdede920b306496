package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hone"
	"hone/cmd/hone/screen"
	"hone/internal/render"
	"hone/workspace"
)

func (a *app) promptCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "prompt LOOP",
		Short: "print what would be sent first; send nothing",
		Long:  "prompt prints what a loop would send first, with its size and an estimate of its tokens. It sends nothing and writes nothing.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return usage("prompt needs to know which loop", "hone prompt reconcile")
		},
	}
	c.AddCommand(a.promptReconcileCommand())
	return c
}

func (a *app) promptReconcileCommand() *cobra.Command {
	var f loopFlags
	c := &cobra.Command{
		Use:   "reconcile [SOURCE_DIR]",
		Short: "what reconcile would send first",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.promptReconcile(c.Context(), f, args)
		},
	}
	registerDir(c, &f.dir)
	c.Flags().StringVarP(&f.model, "model", "m", "", "whose context the size is compared with, as PROVIDER/NAME")
	c.Flags().BoolVar(&f.output.json, "json", false, "the request as one JSON object")
	return c
}

// preview is the request as --json prints it.
type preview struct {
	System string `json:"system"`
	Text   string `json:"text"`
	Bytes  int    `json:"bytes"`
	Tokens int    `json:"tokens_estimate"`
	Files  int    `json:"files"`
	Fits   bool   `json:"fits"`
}

// promptReconcile needs no key: a model that nobody named only means that the
// size is compared with nothing.
func (a *app) promptReconcile(ctx context.Context, f loopFlags, args []string) error {
	root, s, _, err := a.resolveReconcile(f, args)
	unnamed := errors.Is(err, errNoModel)
	if unnamed {
		f.model = "script/none"
		root, s, _, err = a.resolveReconcile(f, args)
	}
	if err != nil {
		return err
	}
	repo, err := repository(root)
	if err != nil {
		return err
	}
	tree, err := workspace.Open(root, workspace.Options{List: lister(repo)})
	if err != nil {
		return err
	}
	defer tree.Close()
	v, err := s.loop(a, repo, nil).Preview(ctx, tree)
	if err != nil {
		return tooLong(err)
	}
	p := preview{System: v.System, Text: v.Text, Bytes: len(v.System) + len(v.Text), Files: v.Files, Fits: v.Fits == nil}
	p.Tokens = p.Bytes / 4
	if f.output.json {
		return errors.Join(json.NewEncoder(a.out).Encode(p), tooLong(v.Fits))
	}
	fmt.Fprintf(a.out, "%s\n%s", p.System, p.Text)
	whose := " for " + s.Model.Name
	if unnamed {
		whose = ""
	}
	fmt.Fprintf(a.err, "hone: %s and the instructions, %s, about %s tokens%s\n", screen.Count(p.Files, "file"),
		render.Bytes(int64(p.Bytes)), render.Tokens(int64(p.Tokens)), whose)
	return tooLong(v.Fits)
}

// tooLong is a prompt that does not fit, as the run itself would say it.
func tooLong(err error) error {
	var c *hone.ContextError
	if errors.As(err, &c) {
		return usage(c.Error(), c.Room)
	}
	return err
}
