package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/internal/config"
	"hone/internal/git"
	"hone/loop"
	"hone/loop/fix"
)

// sample contains a small project and scripted replies in place of a model's.
//
//go:embed demo
var sample embed.FS

func (a *app) demoCommand() *cobra.Command {
	var output outputFlags
	c := helped("demo", &cobra.Command{
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.demo(c.Context(), output)
		},
	})
	output.register(c)
	return c
}

func (a *app) demo(ctx context.Context, output outputFlags) error {
	dir, err := os.MkdirTemp("", "hone-demo-")
	if err != nil {
		return failure.Of(err, "")
	}
	a.trust = true // all programs of the folder are hone's
	if err := writeSample(ctx, dir); err != nil {
		return failure.Of(err, "hone doctor")
	}
	a.explain("The sample project is in %s:\n"+
		"a script, and a test that fails. The model's replies are scripted; everything else is real.\n"+
		"This is: hone fix --check \"sh test.sh\"\n\n", dir)
	f := &loopFlags{dir: dir, output: output, Values: config.Values{
		config.Model.Name: "script/" + filepath.Join(dir, ".git", "replies.script"), config.Check.Name: "sh test.sh"}}
	k := fix.Kind()
	given := func(flag string) bool { return slices.Contains([]string{"model", "dir", "check"}, flag) }
	if err := a.startLoop(ctx, k, k.New(), f, given, nil); err != nil || a.exit != 0 {
		return err
	}
	a.explain(`
Inspect the result:
  cd %s
  hone show --diff              what the run changed
  hone show                     what happened, round by round
  hone undo                     restore what it changed

Then use your own project and key:
  export GEMINI_API_KEY=…       or OPENAI_API_KEY, ANTHROPIC_API_KEY; or --model ollama/NAME
  cd your/project
  hone fix                      it finds your project's check, and asks whether to use it
`, dir)
	return nil
}

// stdout contains only JSON lines with --json.
func (a *app) explain(format string, args ...any) { fmt.Fprintf(a.err, format, args...) }

func writeSample(ctx context.Context, dir string) error {
	files, err := loop.Files(sample, "demo/project")
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := createFile(dir, f.Path, f.Content); err != nil {
			return err
		}
	}
	g, err := git.Find(dir)
	if err != nil {
		return err
	}
	repo, err := g.Init(ctx, dir)
	if err == nil {
		_, err = repo.Commit(ctx, git.Commit{Subject: "a little project"})
	}
	if err != nil {
		return err
	}
	replies, err := sample.ReadFile("demo/replies.script")
	if err != nil {
		return err
	}
	return createFile(dir, ".git/replies.script", replies)
}
