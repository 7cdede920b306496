package main

import (
	_ "embed"

	"github.com/spf13/cobra"

	"hone/loop"
)

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
