package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"hone/harness"
	"hone/harness/runs"
	"hone/internal/render"
	"hone/loop"
	"hone/loop/implement"
)

func (a *app) rollupCommand() *cobra.Command {
	var dir, out string
	c := &cobra.Command{
		Use:   "rollup",
		Short: "write the code base to one file, as implement sends it",
		Long: `rollup writes every file of the directory that git does not ignore to codeRollup.txt. For binary files and
files that look secret it writes only the name. If codeRollup.txt does not exist, implement makes the same
text itself; write the file to choose its contents.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.rollup(c.Context(), dir, out)
		},
	}
	registerDir(c, &dir)
	c.Flags().StringVarP(&out, "output", "o", implement.RollupName, "the file to write, relative to the directory; - is stdout")
	return c
}

func (a *app) rollup(ctx context.Context, dir, out string) error {
	root, err := loop.AbsDir(dir)
	if err != nil {
		return err
	}
	file, err := a.loadConfig(root, "", nil)
	if err != nil {
		return err
	}
	tree, err := runs.OpenTree(root)
	if err != nil {
		return err
	}
	defer tree.Close()
	files, err := tree.Manifest(ctx, nil)
	if err != nil {
		return err
	}
	if err := a.useWorkspaceKeys(implement.Kind(), tree); err != nil {
		return err
	}
	guard, err := harness.NewGuard(ctx, a.env, root, file.Guard.Send)
	if err != nil {
		return err
	}
	text := implement.Rollup(render.Reader{Tree: tree, Guard: guard}, files)
	if out == "-" {
		_, err := a.out.Write(text)
		return err
	}
	if err := implement.Write(root, out, bytes.NewReader(text)); err != nil {
		return failed(err, "hone doctor")
	}
	_, err = fmt.Fprintf(a.err, "hone: wrote %s, %s, about %s tokens\n", out, render.Bytes(int64(len(text))), render.Tokens(int64(len(text)/4)))
	return err
}
