package phase

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hone/model"
	"hone/tool"
)

// maxCommand limits what a command's output adds to a session, in bytes.
const maxCommand = 16 << 10

// commandTool lets the verifier call commands of abl.config.sh that its walls keep from it, such as a query of the
// database (ruling A16). They run behind walls of their own, which show nothing of src/.
func (l *Loop) commandTool(names []string, hooks Hooks) tool.Tool {
	list, _ := json.Marshal(names) // strings
	return tool.Tool{
		RunsCommands: true,
		Spec: model.Spec{
			Name:        "command",
			Description: "Calls a command of the project, which runs outside of your directory: " + strings.Join(names, ", ") + ". Use it to see what requests do not show, such as stored data.",
			Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","enum":` + string(list) + `},` +
				`"arguments":{"type":"array","items":{"type":"string"},"description":"such as a query"}},"required":["name"],"additionalProperties":false}`),
		},
		Run: func(ctx context.Context, in tool.Input) (tool.Result, error) {
			var a struct {
				Name      string
				Arguments []string
			}
			if err := json.Unmarshal(in.Args, &a); err != nil || !slices.Contains(names, a.Name) {
				return tool.Failure("name must be one of " + strings.Join(names, ", ")), nil
			}
			got, err := hooks.Call(ctx, a.Name, a.Arguments...)
			return tool.Result{Text: fmt.Sprintf("exit_code: %d\n%s", got.Exit, l.shortened(maxCommand, got.Output)), Exit: &got.Exit}, err
		},
	}
}
