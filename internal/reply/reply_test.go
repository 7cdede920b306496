package reply

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"hone/model"
)

func TestAnswer(t *testing.T) {
	for text, want := range map[string]string{
		"a":                                 "a",
		"<think>draft</think>a":             "a",
		"draft</think>\na":                  "\na",
		"<think>x</think>y</think>a":        "a",
		"<thinking>x</thinking>a":           "a",
		"[THINK]x[/THINK]a":                 "a",
		"◁think▷x◁/think▷a":                 "a",
		"<seed:think>x</seed:think>a":       "a",
		"<think>never closed":               "",
		"<think>x</think>\n<think>again":    "",
		"the tag `</think>` and '</think>'": "the tag `</think>` and '</think>'",
		"```x```</think>a":                  "a",
		"<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>final<|message|>a": "a",
	} {
		if got := Answer(text, nil); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := Answer("a</think>b</think>c", [][2]int{{6, 19}}); got != "b</think>c" {
		t.Errorf("a covered tag: %q", got)
	}
}

func TestEnded(t *testing.T) {
	for _, c := range []struct {
		reply model.Reply
		want  string
	}{
		{model.Reply{Finish: model.Stop}, ""},
		{model.Reply{Finish: model.Length, Detail: "length"}, "it reached the output limit. Make a smaller change"},
		{model.Reply{Finish: model.Filtered, Detail: "SAFETY"}, "(filtered: SAFETY)"},
		{model.Reply{Finish: model.Other}, "(other)"},
	} {
		if got := EndProblem(c.reply); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%v: %q, want %q", c.reply, got, c.want)
		}
	}
}

func TestUnquoted(t *testing.T) {
	for quoted, want := range map[string]string{"`a`": "a", "` a `": "a", "`a": "`a", "``": "``", "`a` `b`": "`a` `b`"} {
		if got := Unquoted(quoted); got != want {
			t.Errorf("%q: %q", quoted, got)
		}
	}
}

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

// FuzzContent checks that contents that are already there are accepted and stay as
// they are, that the style of a file can be applied twice, and that nothing panics.
func FuzzContent(f *testing.F) {
	f.Add("a.py", "x = 1\ny = 2\n", "x = 1\n# ...\n")
	f.Add("a.go", "```\n", "0001: a\r\n2\n")
	f.Add("a.js", "\ufeffa\r\n", "--- a\n@@ -1 +1 @@\n{ ... }\n/* … */")
	f.Add("x", "&lt;\n", "<<<<<<< SEARCH\nREPLACE\\n")
	f.Fuzz(func(t *testing.T, name, old, content string) {
		if err := CheckContent(name, []byte(old), []byte(old)); err != nil {
			t.Errorf("the same contents: %v", err)
		}
		if got := StyleOf([]byte(old)).Apply([]byte(old)); !bytes.Equal(got, []byte(old)) {
			t.Errorf("the style changes its own contents to %q", got)
		}
		_ = CheckContent(name, []byte(old), []byte(content))
		_ = CheckContent(name, nil, []byte(content))
		_ = CheckEdit(name, []byte(old), []byte(content), []string{content})
		once := StyleOf([]byte(old)).Apply([]byte(content))
		if again := StyleOf([]byte(old)).Apply(once); !bytes.Equal(once, again) {
			t.Errorf("style applied twice: %q, once %q", again, once)
		}
	})
}

// FuzzObject checks that an object that is found is valid and has a known key, or is
// all there is, and that JSON with a known key is found again between prose.
func FuzzObject(f *testing.F) {
	known := func(key string) bool { return key == "delete" }
	for _, s := range []string{`{"delete": ["a",],}`, "x {\"delete\": \"\n\"} y", "<think>{\"delete\":1}</think>```json\n{\"delete\":2}\n```", `{"delete": "</think>"}`, `{"a":{"delete":1}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_ = Answer(text, nil)
		object, err := Object(text, known)
		if err != nil {
			return
		}
		if !json.Valid(object) {
			t.Errorf("invalid: %q", object)
		}
		if !hasKnownKey(object, known) {
			return
		}
		if again, err := Object("so:\n"+string(object)+"\nyes", known); err != nil || !bytes.Equal(again, object) && !strings.Contains(string(object), "{") {
			t.Errorf("in prose: %q, %v", again, err)
		}
	})
}

// BenchmarkHostile shows that no text costs much more than its length.
func BenchmarkHostile(b *testing.B) {
	fill := func(s string) string { return strings.Repeat(s, 1<<17/len(s)) }
	known := func(key string) bool { return key == "delete" }
	for name, text := range map[string]string{
		"braces": fill("{"), "objects": fill(`{"a":`), "nested": fill(`{"a":`) + "1" + strings.Repeat("}", 1<<17/5), "known": fill(`{"delete":`), "broken": fill(`{"delete":x`),
		"lists": fill(`{"delete":[`), "tags": fill("</think>"), "tags in one": `{"delete":"` + fill("</think>") + `"}`, "commas": `{"delete":[` + fill(", "), "ellipses": fill("...\n"), "comments": fill("# ... \n"), "remarks": fill("# a b\n"), "single remarks": fill("# a b\n\nx\n"),
		"numbers": fill("0001: \n"), "spaces": fill(" "), "dots": fill("."), "dashes": fill("- "), "entities": fill("&lt;"), "path": fill("a ("),
	} {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = Object(text, known)
				_ = CheckContent("a.py", []byte("a\nb\nc\nd\n"+text[:1<<15]), []byte(text))
			}
		})
	}
}
