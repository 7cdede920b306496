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
	c := &cobra.Command{
		Use: "skill", Short: "a skill and a Stop hook for Claude Code and Codex", Args: cobra.NoArgs,
		Long: `init skill writes files for agents that work in this directory: a skill, which tells them when and how to use hone, and a
Stop hook, which runs the check when they want to stop, and sends them back to work while it fails (hone help check).

    .claude/skills/hone/SKILL.md, .claude/settings.json      for Claude Code
    .agents/skills/hone/SKILL.md, .codex/hooks.json          for Codex

It keeps files that exist. Both agents ask before they use the hooks of a project.`,
		RunE: func(*cobra.Command, []string) error {
			at, err := loop.AbsDir(dir)
			if err != nil {
				return err
			}
			return a.init(at, loop.Starters{
				Files: func(string, func(string)) ([]loop.File, error) {
					return []loop.File{{Path: ".claude/skills/hone/SKILL.md", Content: skillText}, {Path: ".claude/settings.json", Content: claudeSettings},
						{Path: ".agents/skills/hone/SKILL.md", Content: skillText}, {Path: ".codex/hooks.json", Content: codexHooks}}, nil
				},
				Next: func(string) string {
					return "hone check, which must know the project's check; if a settings file was kept, add the hook to it: docs/mcp.md shows it"
				},
			})
		},
	}
	registerDir(c, &dir)
	return c
}
