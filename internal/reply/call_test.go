package reply

import (
	"encoding/json"
	"testing"

	"hone/model"
)

func TestName(t *testing.T) {
	offered := []string{"read", "edit"}
	for name, want := range map[string]string{
		"edit": "edit", "Edit": "edit", "functions.edit": "edit", "default_api.edit": "edit", "default_api:edit": "edit", "functions.edit:0": "edit",
		"edit<|channel|>commentary": "edit", "tools/edit": "edit", "editor": "editor", "str_replace": "str_replace", "": "", "edit.x": "edit.x",
	} {
		if got := ToolName(name, offered); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestHint(t *testing.T) {
	edit := model.Spec{Name: "edit", Schema: json.RawMessage(`{"type":"object","required":["path","edits"],"properties":{"path":{"type":"string"},
		"edits":{"type":"array","items":{"type":"object","required":["oldText","newText"],"properties":{}}}}}`)}
	for name, want := range map[string]string{
		"str_replace":           `use edit {"path": …, "edits": [{"oldText": …, "newText": …}]}`,
		"functions.apply_patch": `use edit {"path": …, "edits": [{"oldText": …, "newText": …}]}`,
		"str_replace:0":         `use edit {"path": …, "edits": [{"oldText": …, "newText": …}]}`,
		"Patch<|channel|>json":  `use edit {"path": …, "edits": [{"oldText": …, "newText": …}]}`,
		"read_file":             "",
		"nothing":               "",
	} {
		if got := callHint(name, []model.Spec{edit}); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestArguments(t *testing.T) {
	for args, want := range map[string]string{
		`{"a": 1}`: `{"a": 1}`, "": "{}", " null ": "{}", "```json\n{\"a\": 1}\n```": `{"a": 1}`, `"{\"a\": 1}"`: `{"a": 1}`, `"\"{}\""`: `{}`,
		"{\"a\": 1}\n</tool_call>": `{"a": 1}`, `{"a": 1}}`: `{"a": 1}`, `{"a": 1,}`: `{"a": 1}`, "{\"a\": \"x\ny\"}": `{"a": "x\ny"}`, `{"a": 1}<|im_end|>`: `{"a": 1}`,
	} {
		if got, ok := Arguments(args); !ok || got != want {
			t.Errorf("%q: %q, %v, want %q", args, got, ok, want)
		}
	}
	for _, args := range []string{`{"a":`, `{} {}`, `[1]`, `"a"`, `{"a": 'x'}`, `{"a": 1} and so on`, `""`} {
		if got, ok := Arguments(args); ok || got != args {
			t.Errorf("%q was read as %q", args, got)
		}
	}
}

func TestWrittenCall(t *testing.T) {
	for text, want := range map[string]bool{
		"<tool_call>{}</tool_call>": true, "[TOOL_CALLS]": true, "<invoke name=\"edit\">": true, "so: {\"name\": \"edit\", \"arguments\": {}}": true, "Action: edit\n": true,
		"```json\n{\"tool\": \"str_replace\", \"parameters\": {}}\n```": true, "{\"tool\": \"hammer\"}": false,
		"I call the edit tool.": false, "{\"name\": \"Ann\"}": false,
	} {
		if got := WrittenCall(text, []model.Spec{{Name: "edit"}}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
