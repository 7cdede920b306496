package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/harness"
	"hone/harness/runs"
	"hone/internal/artifact"
	"hone/internal/config"
	"hone/internal/render"
	"hone/loop"
	"hone/loop/implement"
)

func (a *app) rollupCommand() *cobra.Command {
	var dir, out string
	c := helped("rollup", &cobra.Command{
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.rollup(c.Context(), dir, out)
		},
	})
	registerDir(c, &dir)
	c.Flags().StringVarP(&out, "output", "o", "-", "the `FILE` to write, relative to the directory; - is stdout")
	return c
}

func (a *app) rollup(ctx context.Context, dir, out string) error {
	root, err := loop.AbsDir(dir)
	if err != nil {
		return err
	}
	if out != "-" && !filepath.IsLocal(out) {
		return failure.Usage("-o "+out+" is not in "+root, "hone rollup >FILE writes a file anywhere")
	}
	file, err := a.loadConfig(root)
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
	guard, err := harness.NewGuard(ctx, a.env, root, config.Send.In(file.Shared()), file.Variables(), a.environ)
	if err != nil {
		return err
	}
	text := implement.Rollup(render.Reader{Tree: tree, Guard: guard, NotSent: config.NotSent.In(file.For("implement", nil, nil))}, files)
	if out == "-" {
		_, err := io.WriteString(a.out, a.forReading(string(text)))
		return err
	}
	if err := artifact.Write(root, out, bytes.NewReader(text)); err != nil {
		return failure.Of(err, "hone doctor")
	}
	fmt.Fprintf(a.err, "hone: wrote %s, %s, about %s tokens\n", out, render.Bytes(int64(len(text))), render.Tokens(int64(len(text)/4)))
	if filepath.Clean(out) == implement.RollupName {
		fmt.Fprintln(a.err, "hone: implement now sends this file and not the tree: write it again, or remove it, when the code changes")
	}
	return nil
}
