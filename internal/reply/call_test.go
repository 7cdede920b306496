package reply

import (
	"strings"
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
	for name, want := range map[string]string{
		"str_replace": "use edit", "functions.apply_patch": "use edit", "str_replace:0": "use edit", "Patch<|channel|>json": "use edit",
		"read_file": "there are: edit", "nothing": "there are: edit",
	} {
		got := ReadCall(model.Call{Name: name, Args: "{}"}, []model.Spec{{Name: "edit"}})
		if !strings.HasSuffix(got.Problem, "; "+want) {
			t.Errorf("%q: %q, want %q", name, got.Problem, want)
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
	const args = `{"path": "a.py", "oldText": "x", "newText": "y"}`
	for _, text := range []string{
		"so: {\"name\": \"edit\", \"arguments\": {}}", "```json\n{\"tool\": \"str_replace\", \"parameters\": {}}\n```", "<invoke name=\"edit\">", "Action: edit\nAction Input: {}",
		"<|tool_calls_section_begin|><|tool_call_begin|>functions.edit:0<|tool_call_argument_begin|>" + args + "<|tool_call_end|><|tool_calls_section_end|>",
		"<|channel|>commentary to=functions.edit <|constrain|>json<|message|>" + args + "<|call|>",
		"<|START_ACTION|>[\n{\"tool_call_id\": \"0\", \"tool_name\": \"edit\", \"parameters\": " + args + "}\n]<|END_ACTION|>",
		"<|tool_call|>[{\"name\": \"edit\", \"arguments\": " + args + "}]<|/tool_call|>",
		"<TOOLCALL>[{\"name\": \"edit\", \"arguments\": " + args + "}]</TOOLCALL>",
		">>>edit\n" + args, "edit\n" + args, "functions.edit:0" + args,
		"[edit(path='a.py', oldText='x', newText='y')]", "```tool_code\nedit(path=\"a.py\")\n```", "print(default_api.edit(path='a.py'))",
		"<tool_call name=\"edit\">\n" + args + "\n</tool_call>", "<edit>\n" + args + "\n</edit>", "<edit>\n<path>a.py</path>\n</edit>", "<replace_in_file>\n<path>a.py</path>\n</replace_in_file>",
		"<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"edit\">", "<tool_call>{'name': 'edit', 'arguments': {}}</tool_call>", "<｜tool▁sep｜>edit\n",
	} {
		if found, named := WrittenCall(text, []model.Spec{{Name: "edit"}}); !found || !named {
			t.Errorf("%q: %v, %v", text, found, named)
		}
	}
	for text, want := range map[string]bool{
		"<tool_call>{}</tool_call>": true, "[TOOL_CALLS]": true, "Action: think\n": true, "I would call `<tool_call>`.": true,
		"{\"tool\": \"hammer\"}": false, "I call the edit tool.": false, "{\"name\": \"Ann\"}": false, "I call edit (path a.py).": false, "Use edit(a, b) or replace(x=1).": false,
		"<patch>\n<p>text</p>": false, "The form <edit> is one.": false, "edit {x}": false,
	} {
		if found, named := WrittenCall(text, []model.Spec{{Name: "edit"}}); found != want || named {
			t.Errorf("%q: %v, %v", text, found, named)
		}
	}
}
