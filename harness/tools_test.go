package harness

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"hone"
	"hone/internal/crashtest"
	"hone/loop"
	"hone/tool"
	"hone/workspace"
)

// closedSet is a Toolset with a closed directory.
var closedSet = loop.Toolset{Closed: ".codescribe", Why: ".codescribe contains records and is closed"}

// startedSession returns a session in a directory, with a run.
func startedSession(t *testing.T, dir string) *Session {
	t.Helper()
	l := &programLoop{loop.Settings{Model: loop.Model{Name: "script/" + replies(t)}}}
	s, err := Host{}.Start(t.Context(), loop.Kind{Name: "test"}, l, Needs{Folder: dir}, hone.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.NewRun(workspace.Rules{})
	return s
}

// countLines is a loop's own tool. Its argument is called neither path nor root.
func countLines(tree *workspace.Tree) tool.Tool {
	const schema = `{"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}`
	type args struct {
		File string `json:"file"`
	}
	return tool.Define(tool.Tool{ReadOnly: true}, "count_lines", "Counts lines.", schema,
		func(_ context.Context, _ tool.Input, a args) (tool.Result, error) {
			content, _, err := tree.Read(a.File)
			if err != nil {
				return tool.Failure(err.Error()), nil
			}
			return tool.Result{Text: strings.Repeat("|", strings.Count(string(content), "\n"))}, nil
		})
}

// No tool of a role reads a closed directory, whatever its argument is called:
// neither those of the Toolset nor those of the loop.
func TestToolsRefuseClosed(t *testing.T) {
	s := startedSession(t, crashtest.Workspace(t, map[string]string{".codescribe/loop/run.toml": "a\n", "a.txt": "a\n"}))
	tools, err := s.Tools(closedSet)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := s.RoleTree(closedSet)
	if err != nil {
		t.Fatal(err)
	}
	tools = append(tools, countLines(tree))
	for _, call := range []struct{ tool, args string }{
		{"count_lines", `{"file": ".codescribe/loop/run.toml"}`},
		{"read", `{"path": ".codescribe/loop/run.toml"}`},
		{"read", `{"path": "./.CodeScribe/loop/run.toml"}`},
		{"read", `{"path": "` + tree.Dir() + `/.codescribe/loop/run.toml"}`},
		{"grep", `{"pattern": "a", "path": ".codescribe/loop"}`},
		{"glob", `{"pattern": "**", "root": ".codescribe/"}`},
		{"write", `{"path": ".codescribe/b", "content": "b"}`},
		{"edit", `{"path": ".codescribe/loop/run.toml", "edits": [{"oldText": "a", "newText": "b"}]}`},
	} {
		i := slices.IndexFunc(tools, func(t tool.Tool) bool { return t.Name == call.tool })
		got, err := tools[i].Run(t.Context(), tool.Input{Args: json.RawMessage(call.args)})
		if err != nil || !got.Failed || !strings.Contains(got.Text, closedSet.Why) {
			t.Errorf("%s %s: %+v, %v", call.tool, call.args, got, err)
		}
	}
}

// The tree of a Toolset is the one of its directory, and the workspace's for the
// zero Toolset.
func TestRoleTreeFolder(t *testing.T) {
	s := startedSession(t, crashtest.Workspace(t, map[string]string{"src/a.txt": "a\n"}))
	if tree, err := s.RoleTree(loop.Toolset{}); err != nil || tree != s.Tree {
		t.Errorf("the zero Toolset has %v, %v", tree, err)
	}
	tree, err := s.RoleTree(loop.Toolset{Dir: "src"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := tree.Read("a.txt"); err != nil {
		t.Error(err)
	}
	if again, err := s.RoleTree(loop.Toolset{Dir: "src", ReadOnly: true}); err != nil || again != tree {
		t.Errorf("the tree was opened twice: %v", err)
	}
}

// A role does not find the loop's own files, in a repository or out of one.
func TestRoleTreeLists(t *testing.T) {
	plain := map[string]string{".codescribe/loop/run.toml": "x", "sub/.codescribe/x": "x", "sub/a": "x"}
	for name, dir := range map[string]string{"plain": crashtest.Workspace(t, plain), "repository": crashtest.Workspace(t, plain)} {
		if name == "repository" {
			if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
				t.Fatalf("git init: %v\n%s", err, out)
			}
		}
		tree, err := startedSession(t, dir).RoleTree(closedSet)
		if err != nil {
			t.Fatal(err)
		}
		files, err := tree.Files(t.Context())
		var names []string
		for _, f := range files {
			names = append(names, f.Path)
		}
		if err != nil || !slices.Equal(names, []string{"sub/.codescribe/x", "sub/a"}) {
			t.Errorf("%s: %q, %v", name, names, err)
		}
	}
}
