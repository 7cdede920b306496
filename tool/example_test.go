package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hone/tool"
	"hone/workspace"
	"hone/workspace/secret"
)

func ExampleDefine() {
	tree := openTree(map[string]string{"a.txt": "first\nsecond\n", ".env": "PASSWORD=hunter2\n"})
	defer os.RemoveAll(tree.Dir())
	defer tree.Close()
	guard := secret.NewGuard(nil)

	type args struct {
		Path string `json:"path"`
	}
	head := tool.Define(tool.Tool{ReadOnly: true}, "head", "Show the first line of a file.",
		`{"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false}`,
		func(ctx context.Context, in tool.Input, a args) (tool.Result, error) {
			f, err := tool.ReadFile(ctx, tree, guard, a.Path)
			if err != nil {
				return tool.Result{}, err
			}
			line, _, _ := strings.Cut(string(f.Content), "\n")
			return tool.Result{Text: line}, nil
		})

	for _, call := range []string{`{"path": "a.txt"}`, `{"path": "./.env"}`, `{"name": "a.txt"}`} {
		result, err := head.Run(context.Background(), tool.Input{Args: json.RawMessage(call)})
		fmt.Println(result.Text, err)
	}
	// Output:
	// first <nil>
	// Error: .env is withheld because it may contain secrets: an environment file. Work without its contents <nil>
	// Error: invalid arguments for head: path is missing: expected {"type":"string"}; name is unknown; valid names: path <nil>
}

// openTree returns a tree with these files in a new directory.
func openTree(files map[string]string) *workspace.Tree {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			panic(err)
		}
	}
	tree, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		panic(err)
	}
	return tree
}
