package loop_test

import (
	"context"
	"fmt"
	"strings"

	"hone/loop"
	"hone/tool"
)

// A complete loop with a tool of its own. help and rules are usually files that the package embeds.
func ExampleChat() {
	const (
		help   = "todo [TEXT]\nlet a model do what comments ask for\n\ntodo runs until the check passes.\n\nExamples:\n  hone todo --check \"! grep -rn TODO src\"\n"
		rules  = "You do what TODO comments ask for, by calling tools. Stay inside the working directory."
		schema = `{"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false}`
	)
	prompt := func(s *loop.Settings) string {
		return "Do what the TODO comments ask for. This check decides:\n\n" + loop.Indented(s.Check) + "\n" + loop.Advised(s.Task)
	}
	tools := func(s loop.Session, set *loop.Toolset) ([]tool.Tool, error) {
		tree, err := s.RoleTree(*set)
		count := tool.Define(tool.Tool{ReadOnly: true}, "count", "Counts the TODO comments in a file.", schema,
			func(ctx context.Context, in tool.Input, a struct{ Path string }) (tool.Result, error) {
				f, err := tool.ReadFile(ctx, tree, s.Guard(), a.Path)
				return tool.Result{Text: fmt.Sprintln(strings.Count(string(f.Content), "TODO"))}, err
			})
		return []tool.Tool{count}, err
	}
	kind := loop.Kind{Name: "todo", Help: loop.ReadHelp(help), Text: true, New: func() loop.Loop {
		return &loop.Chat{Role: "doer", Rules: rules, Prompt: prompt, Tools: tools}
	}}
	shown, _ := kind.New().(loop.Previewer).Preview(context.Background(), loop.View{})
	fmt.Println(kind.Use, "—", kind.Short)
	fmt.Println(strings.TrimSpace(shown.Text))
	// Output:
	// todo [TEXT] — let a model do what comments ask for
	// Do what the TODO comments ask for. This check decides:
}
