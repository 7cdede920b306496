package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"hone/cmd/hone/failure"
	"hone/cmd/hone/kinds"
	"hone/internal/artifact"
	"hone/internal/config"
	"hone/loop"
)

func (a *app) initCommand() *cobra.Command {
	c := helped("init", &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return failure.Usage("init needs the name of a loop", "hone init fix; or one of: "+loopNames(c))
		},
	})
	for _, k := range kinds.All() {
		c.AddCommand(a.initLoopCommand(k))
	}
	c.AddCommand(a.initSkillCommand())
	return c
}

func loopNames(c *cobra.Command) string {
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return strings.Join(names, ", ")
}

func (a *app) initLoopCommand(k loop.Kind) *cobra.Command {
	if k.Starters == nil {
		return &cobra.Command{Use: k.Name, Hidden: true, RunE: func(*cobra.Command, []string) error {
			return failure.Usage(k.Name+" needs no starter files", "hone help "+k.Name)
		}}
	}
	starters := k.Starters()
	var dir string
	c := &cobra.Command{
		Use: k.Name, Short: starters.Short, Long: starters.Long, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			root := loop.AbsDir
			if k.Root != nil {
				root = k.Root
			}
			at, err := root(dir)
			if err != nil {
				return err
			}
			return a.init(c, at, starters)
		},
	}
	registerDir(c, &dir)
	if starters.Flags != nil {
		starters.Flags(c.Flags())
	}
	return c
}

func (a *app) init(c *cobra.Command, root string, starters loop.Starters) error {
	var files []loop.File
	check := checksOf(languagesOf(root, nil))
	if starters.Files != nil {
		var err error
		if files, err = starters.Files(root, check, func(text string) { a.say("note", text) }); err != nil {
			return err
		}
	}
	var written []string
	for _, f := range files {
		written = append(written, f.Path)
	}
	found := languagesOf(root, written)
	if err := checkParents(root, files, len(found) > 0 || starters.NeedsCheck); err != nil {
		return err
	}
	next := starters.Next(root, check)
	before := a.hasTrustFiles(root)
	hasConfig, kept := false, false
	for _, f := range files {
		existed, err := a.place(root, f.Path, f.Content, "")
		if err != nil {
			return err
		}
		hasConfig, kept = hasConfig || f.Path == config.HonePath, kept || existed
	}
	if !hasConfig && (len(found) > 0 || starters.NeedsCheck) { // the loop's own files may include one
		if _, err := a.place(root, config.HonePath, []byte(starterConfig(found)), ", with the check commented out"); err != nil {
			return err
		}
	}
	if !before && !kept {
		if err := a.trustStarters(root); err != nil {
			return err
		}
	}
	if checks := checksOf(found); checks != "" {
		next = strings.Replace(next, strconv.Quote(loop.ExampleCheck), quotedCheck(checks), 1)
	}
	_, err := fmt.Fprintf(a.out, "next: %s\n", commandsAt(c, dirFlag(c), next))
	return err
}

// Links are not followed. What begins with #! can be run.
func createFile(at, rel string, content []byte) error {
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(string(content), "#!") {
		mode = 0o755
	}
	return artifact.Create(at, rel, content, mode)
}

// Something other than a folder, such as a link, must not be in the way of a file that init writes, or of .config/hone.toml.
func checkParents(at string, files []loop.File, withConfig bool) error {
	if withConfig {
		files = append(slices.Clone(files), loop.File{Path: config.HonePath})
	}
	for _, f := range files {
		if err := artifact.CheckParents(at, f.Path); err != nil {
			return failure.Usage(fmt.Sprintf("cannot write %s: %v", f.Path, err), "nothing was written; init follows no links")
		}
	}
	return nil
}

// about says more of a file that it writes.
func (a *app) place(root, rel string, content []byte, about string) (existed bool, err error) {
	line := "wrote   " + rel + about
	err = createFile(root, rel, content)
	switch {
	case errors.Is(err, fs.ErrExist):
		existed = true
		line = "kept    " + rel + ", which already exists"
	case err != nil:
		return false, failure.Of(fmt.Errorf("write %s: %w", rel, err), "hone doctor")
	}
	_, err = fmt.Fprintln(a.out, line)
	return existed, err
}

//go:embed skill/SKILL.md
var skillText []byte

//go:embed skill/settings.json
var claudeSettings []byte

//go:embed skill/hooks.json
var codexHooks []byte

func (a *app) initSkillCommand() *cobra.Command {
	var dir string
	c := helped("init-skill", &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			at, err := loop.AbsDir(dir)
			if err != nil {
				return err
			}
			return a.init(c, at, loop.Starters{
				Files: func(string, string, func(string)) ([]loop.File, error) {
					return []loop.File{{Path: ".claude/skills/hone/SKILL.md", Content: skillText}, {Path: ".claude/settings.json", Content: claudeSettings},
						{Path: ".agents/skills/hone/SKILL.md", Content: skillText}, {Path: ".codex/hooks.json", Content: codexHooks}}, nil
				},
				Next: func(_, _ string) string {
					return "hone check, which must know the project's check; if a settings file was kept, add the hook to it: docs/mcp.md shows it"
				},
			})
		},
	})
	registerDir(c, &dir)
	return c
}
