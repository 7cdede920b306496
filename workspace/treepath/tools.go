package treepath

import (
	"path"
	"strings"
	"sync"
)

// toolFiles are the files with which the user's own tools run programs, or that they
// believe, without being asked to (ruling G26), each with the tool that does so. A name
// counts at any depth, with everything below it; a slash at its end is for the reader.
//
// What only a build or a check reads is not here: a Makefile, package.json, conftest.py.
// Neither is .husky/_, which npm ci generates: git runs it only where its settings name
// it, and there it is protected like a hook.
func toolFiles() []toolFile {
	return []toolFile{
		{".vscode/ *.code-workspace", "VS Code runs its tasks, settings and servers when the folder is opened"},
		{".vs/", "Visual Studio runs its tasks when the folder is opened"},
		{".idea/ .run/", "JetBrains IDEs run what its configurations name"},
		{".zed/", "Zed runs the language servers and tasks that it names"},
		{".fleet/", "Fleet runs what its configurations name"},
		{".helix/", "Helix runs the language servers that it names"},
		{".vimrc .exrc .nvimrc .nvim.lua _vimrc .lvimrc .local.vimrc", "Vim runs it in this directory"},
		{".dir-locals.el .dir-locals-2.el", "Emacs evaluates it when a file beside it is opened"},
		{".devcontainer/ .devcontainer.json", "editors build and start the container that it describes"},
		{".gitpod.yml", "Gitpod runs its tasks when a workspace starts"},

		{".claude/ CLAUDE.md CLAUDE.local.md", "Claude Code runs its hooks and follows its instructions"},
		{".mcp.json", "coding agents start the servers that it names"},
		{".codex/", "Codex runs what its configuration names"},
		{"AGENTS.md AGENTS.override.md AGENT.md .agents/ .rules WARP.md", "coding agents follow its instructions"},
		{".gemini/ GEMINI.md", "Gemini CLI starts the servers that it names and follows its instructions"},
		{".cursor/ .cursorrules", "Cursor starts the servers that it names and follows its instructions"},
		{".windsurf/ .windsurfrules", "Windsurf follows its instructions"},
		{".github/copilot-instructions.md .github/instructions/ .github/prompts/ .github/agents/ .github/chatmodes/ .github/hooks/ .github/mcp.json .copilot/", "GitHub Copilot follows its instructions"},
		{".aider.conf.yml .aider.conf.yaml", "Aider runs the commands that it names"},
		{".clinerules .roo/ .roorules .kilocode/ .continue/ .junie/ .kiro/ .amazonq/ .opencode/ opencode.json opencode.jsonc .goosehints .qwen/ QWEN.md .crush.json CRUSH.md .openhands/ .factory/ .trae/ .augment/ .amp/ .codebuddy/ .lingma/ .claude-plugin/", "a coding agent starts the servers that it names and follows its instructions"},

		{".github/workflows/ .github/actions/ .forgejo/workflows/ .gitea/workflows/", "the forge runs it when it is pushed"},
		{".gitlab-ci.yml .circleci/ .buildkite/ .woodpecker.yml .woodpecker/ .travis.yml .drone.yml azure-pipelines.yml bitbucket-pipelines.yml Jenkinsfile appveyor.yml .appveyor.yml .cirrus.yml .cirrus.star .build.yml .builds/ .teamcity/ .semaphore/ .gitlab/ci/ cloudbuild.yaml cloudbuild.yml cloudbuild.json buildspec.yml buildspec.yaml codemagic.yaml .readthedocs.yaml .readthedocs.yml", "the CI service runs it when it is pushed"},

		{".gitmodules .lfsconfig", "git clones from the addresses that it names"},
		{".hg/hgrc .hg/hgrc-not-shared .jj/repo/config.toml", "another version control runs what its settings name"},
		{".husky/ .githooks/", "git runs the hooks in it"},
		{".pre-commit-config.yaml .pre-commit-config.yml", "pre-commit downloads and runs the hooks that it names"},
		{"lefthook.yml lefthook.yaml lefthook.toml lefthook.json lefthook-local.yml lefthook-local.yaml lefthook-local.toml lefthook-local.json .lefthook.yml .lefthook.yaml .lefthook.toml .lefthook.json .lefthook-local.yml .lefthook-local.yaml .lefthook/ .lefthook-local/ .config/lefthook.yml .config/lefthook.yaml .config/lefthook.toml", "Lefthook runs its commands as git hooks"},
		{".overcommit.yml captainhook.json grumphp.yml grumphp.yml.dist .huskyrc .huskyrc.js .huskyrc.json .simple-git-hooks.js .simple-git-hooks.cjs .simple-git-hooks.json simple-git-hooks.js simple-git-hooks.cjs simple-git-hooks.json .lintstagedrc .lintstagedrc.js .lintstagedrc.cjs .lintstagedrc.mjs .lintstagedrc.json .lintstagedrc.yaml .lintstagedrc.yml lint-staged.config.js lint-staged.config.cjs lint-staged.config.mjs commitlint.config.js commitlint.config.cjs commitlint.config.mjs .commitlintrc.js .commitlintrc.cjs", "git hooks run what it says"},

		{".npmrc .yarnrc .yarnrc.yml", "the package manager runs programs and asks registries that it names"},
		{".cargo/config.toml .cargo/config", "Cargo runs the compilers, linkers and runners that it names"},
		{".envrc .direnv/", "direnv runs it in the directory"},
		{"mise.toml .mise.toml mise.local.toml .mise.local.toml .mise/ .config/mise/ .config/mise.toml .tool-versions", "mise and asdf install the tools and run the hooks that it names"},
		{".gdbinit .lldbinit .pdbrc", "the debugger runs it when it starts here"},
		{".Rprofile .Renviron .irbrc .pryrc .ghci .ocamlinit .iex.exs .octaverc", "an interpreter runs it when it starts here"},
		{".ycm_extra_conf.py", "a plugin of Vim runs it when a file is opened"},
	}
}

type toolFile struct{ names, why string }

var toolRows = sync.OnceValue(func() map[string][]toolRow {
	rows := map[string][]toolRow{}
	for _, f := range toolFiles() {
		for name := range strings.FieldsSeq(f.names) {
			first, rest, _ := strings.Cut(Fold(strings.TrimSuffix(name, "/")), "/")
			rows[first] = append(rows[first], toolRow{rest, f.why})
		}
	}
	return rows
})

type toolRow struct {
	rest string // of the name, below the first component; empty if there is no more
	why  string
}

// ToolReason returns which of the user's own tools runs or believes the file at a
// cleaned path, such as "git runs the hooks in it", or an empty string if none does.
// Like [ProtectedReason] it knows every spelling that some file system treats as the
// same.
func ToolReason(cleaned string) string {
	for p, more := cleaned, true; more; {
		var name string
		name, p, more = strings.Cut(p, "/")
		if why := toolReason(name, p); why != "" {
			return why
		}
	}
	return ""
}

// MayBeTool reports whether the file or directory of a name may be one of the user's own
// tools, or hold one.
func MayBeTool(name string) bool {
	folded := canonical(name)
	return len(toolRows()[folded]) > 0 || len(toolRows()["*"+path.Ext(folded)]) > 0
}

// toolReason is ToolReason for a name whose parent is any directory, and for what is
// below the name.
func toolReason(name, below string) string {
	folded := canonical(name)
	if _, generated := cutNames(below, "_"); generated && folded == ".husky" {
		return ""
	}
	for _, first := range []string{folded, "*" + path.Ext(folded)} {
		for _, row := range toolRows()[first] {
			if _, ok := cutNames(below, row.rest); ok {
				return row.why
			}
		}
	}
	return ""
}
