package treepath

import "testing"

func TestToolReason(t *testing.T) {
	for path, want := range map[string]bool{
		".vscode/tasks.json": true, "web/.vscode/a/b": true, ".VSCode/Tasks.json": true, ".vs\u200ccode/tasks.json": true, ".vscode": true,
		".mcp.json": true, "a/b/.MCP.json": true, "CLAUDE.md": true, "docs/claude.md": true, "x.code-workspace": true, ".code-workspace": true,
		".github/workflows/ci.yml": true, ".github/workflows": true, "sub/.github/actions/x/action.yml": true, ".gitmodules": true,
		".husky/pre-commit": true, ".husky/_": false, ".husky/_/pre-commit": false, ".husky/_x": true, ".cargo/config.toml": true, ".config/mise/config.toml": true,
		".github/CODEOWNERS": false, ".github": false, ".cargo/registry": false, "vscode/tasks.json": false, "x.vscode": false, "a.npmrc": false,
		"package.json": false, "Makefile": false, "README.md": false, "mcp.json": false, "workflows/ci.yml": false, ".config/hone.toml": false,
	} {
		if got := ToolReason(path); (got != "") != want {
			t.Errorf("ToolReason(%q) = %q; want a reason: %t", path, got, want)
		}
	}
}
