package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"hone/harness"
	"hone/internal/render"
	"hone/loop"
	"hone/loop/implement"
	"hone/workspace"
)

func (a *app) rollupCommand() *cobra.Command {
	var dir, out string
	c := &cobra.Command{
		Use:   "rollup",
		Short: "write the code base into one file, as implement sends it",
		Long: `rollup writes codeRollup.txt: every file of the folder that git does not ignore, one after the other.
What is binary or looks secret is named and left out. implement makes the same by itself where there
is no codeRollup.txt; write one to choose what is in it.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.rollup(c.Context(), dir, out)
		},
	}
	registerDir(c, &dir)
	c.Flags().StringVarP(&out, "output", "o", implement.RollupName, "the file to write below the folder; - is stdout")
	return c
}

func (a *app) rollup(ctx context.Context, dir, out string) error {
	root, err := loop.Folder(dir)
	if err != nil {
		return err
	}
	file, err := loadConfig(root, "", nil)
	if err != nil {
		return err
	}
	tree, err := harness.OpenTree(root)
	if err != nil {
		return err
	}
	defer tree.Close()
	files, err := tree.Manifest(ctx, nil)
	if err != nil {
		return err
	}
	if err := a.takeKeys(implement.Kind(), tree); err != nil {
		return err
	}
	guard := workspace.NewGuard(file.Guard.Send)
	guard.Known = harness.KnownKeys(a.env)
	text := implement.Rollup(render.Reader{Tree: tree, Guard: guard}, files)
	if out == "-" {
		_, err := a.out.Write(text)
		return err
	}
	if err := implement.Write(root, out, bytes.NewReader(text)); err != nil {
		return failed(err, "hone doctor")
	}
	_, err = fmt.Fprintf(a.err, "hone: %s written, %s, about %s tokens\n", out, render.Bytes(int64(len(text))), render.Tokens(int64(len(text)/4)))
	return err
}
