package texttools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/model"
)

func testTools() []model.Spec {
	return []model.Spec{
		{Name: "write", Description: "Writes a file.", Schema: json.RawMessage(
			`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"mode":{"type":"integer"}},"required":["path","content"]}`)},
		{Name: "read", Description: "Reads a file.", Schema: json.RawMessage(
			`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
	}
}

// formatParts writes one part per line: texts quoted, calls as name(args).
func formatParts(parts []model.Part) string {
	var lines []string
	for _, p := range parts {
		if p.Call != nil {
			lines = append(lines, p.Call.Name+"("+p.Call.Args+")")
		} else {
			lines = append(lines, fmt.Sprintf("%q", p.Text))
		}
	}
	return strings.Join(lines, "\n")
}

const (
	a   = `{"name": "read", "arguments": {"path": "a"}}`
	b   = `{"name": "read", "arguments": {"path": "b"}}`
	ra2 = `read({"path":"a"})`
	ra  = `read({"path": "a"})`
	rb  = `read({"path": "b"})`
)

func lines(l ...string) string { return strings.Join(l, "\n") }

func TestParseReadsCalls(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"asked form", lines("<tool_call>", a, "</tool_call>"), ra},
		{"two, with text around", lines("First.", "", "<tool_call>", a, "</tool_call>", "<tool_call>", b, "</tool_call>", "Done.", ""),
			lines(`"First."`, ra, rb, `"\nDone.\n"`)},
		{"on one line", "<tool_call>" + a + "</tool_call><tool_call>" + b + "</tool_call>", lines(ra, rb)},
		{"after words", "I read it. <tool_call>" + a + "</tool_call>", lines(`"I read it."`, ra)},
		{"in CRLF lines", strings.ReplaceAll(lines("x", "<tool_call>", a, "</tool_call>", ""), "\n", "\r\n"), lines(`"x"`, ra)},
		{"indented a little", lines("   <tool_call>", a, "   </tool_call>"), ra},
		{"without the closing tag", lines("x", "<tool_call>", a), lines(`"x"`, ra)},
		{"in a line, without it", "I read <tool_call>" + a, lines(`"I read"`, ra)},
		{"an invoke without it", `<invoke name="read"><parameter name="path">a</parameter>`, ra2},
		{"without it, and another", lines("<tool_call>", a, "<tool_call>", b), lines(ra, rb)},
		{"a bracket too many", lines("<tool_call>", a+"}", "</tool_call>", "x"), lines(ra, `"\nx"`)},
		{"two objects in a tag", lines("<tool_call>", a, b, "</tool_call>"), lines(ra, rb)},
		{"a list in a tag", "<tool_call>[" + a + "," + b + "]</tool_call>", lines(ra, rb)},
		{"other members", `<tool_call>{"tool":"read","parameters":{"path":"a"},"id":"7"}</tool_call>`, `read({"path":"a"})`},
		{"OpenAI's members", `<tool_call>{"type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}</tool_call>`, `read({"path":"a"})`},
		{"no arguments", `<tool_call>{"name":"list"}</tool_call>`, `list({})`},
		{"null arguments", `<tool_call>{"name":"list","arguments":null}</tool_call>`, `list({})`},
		{"a tool that is not offered", `<tool_call>{"name":"rm","arguments":{}}</tool_call>`, `rm({})`},
		{"bare line feeds in a string", "<tool_call>{\"name\":\"write\",\"arguments\":{\"content\":\"a\n\tb\\\"\\n\"}}</tool_call>",
			`write({"content":"a\n\tb\"\n"})`},
		{"tags in a string", lines("<tool_call>", `{"name":"write","arguments":{"content":"</tool_call>`+"\\n<tool_call>\\n"+`{}"}}`, "</tool_call>", "x"),
			lines(`write({"content":"</tool_call>\n<tool_call>\n{}"})`, `"\nx"`)},
		{"a fence in a string", lines("<tool_call>", "{\"name\":\"write\",\"arguments\":{\"content\":\"", "```", "x", "\"}}", "</tool_call>", "<tool_call>", a, "</tool_call>"),
			lines(`write({"content":"\n`+"```"+`\nx\n"})`, ra)},
		{"function_call", "<function_call>" + a + "</function_call>", ra},
		{"python_tag", `<|python_tag|>{"name":"read","parameters":{"path":"a"}}`, `read({"path":"a"})`},
		{"Llama function", `<function=read>{"path": "a"}</function>`, ra},
		{"Llama function without an end", `x` + "\n" + `<function=read>{"path": "a"}`, lines(`"x"`, ra)},
		{"function without arguments", `<function=list></function>`, `list({})`},
		{"Qwen3-Coder", lines("<tool_call>", "<function=write>", "<parameter=path>", "a.go", "</parameter>", "<parameter=content>",
			`x := "</parameter>"`, "", "</parameter>", "<parameter=mode>", "420", "</parameter>", "</function>", "</tool_call>", "x"),
			lines(`write({"path":"a.go","content":"x := \"</parameter>\"\n","mode":420})`, `"\nx"`)},
		{"number for a string", `<function=read><parameter=path>7</parameter></function>`, `read({"path":"7"})`},
		{"Mistral list", "[TOOL_CALLS] [" + a + ", " + b + "]", lines(ra, rb)},
		{"Mistral list after words", "x[TOOL_CALLS][" + a + "]", lines(`"x"`, ra)},
		{"Mistral names", `[TOOL_CALLS]read[ARGS]{"path": "a"}[TOOL_CALLS]read[CALL_ID]x7[ARGS]{"path": "b"}`, lines(ra, rb)},
		{"bare objects", lines(" "+a+";", b, ""), lines(ra, rb)},
		{"bare list", "[" + a + "]", ra},
		{"fenced object", lines("I read.", "```json", a, "```", ""), lines(`"I read."`, ra)},
		{"fenced objects", lines("```json", a, "```", "", "~~~", b, "~~~"), lines(ra, rb)},
		{"fence that is not closed", lines("```", a), ra},
		{"fenced tags", lines("x", "```xml", "<tool_call>", a, "</tool_call>", "<tool_call>", b, "</tool_call>", "```"), lines(`"x"`, ra, rb)},
		{"after thoughts", lines("<think>", "<tool_call>", b, "</tool_call>", "```", "</think>", "", "<tool_call>", a, "</tool_call>"),
			lines(`"<think>\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"b\"}}\n</tool_call>\n`+"```"+`\n</think>"`, ra)},
		{"after thoughts that were not opened", lines("<tool_call>", b, "</tool_call>", "</think>", "<tool_call>", a, "</tool_call>"),
			lines(`"<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"b\"}}\n</tool_call>\n</think>"`, ra)},
		{"a tag in an argument", `<tool_call>{"name": "read", "arguments": {"path": "</think>"}}</tool_call>`, `read({"path": "</think>"})`},
		{"DeepSeek", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n{\"path\": \"a\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", lines(`"<｜tool▁calls▁begin｜>"`, ra, `"<｜tool▁calls▁end｜>"`)},
		{"GLM", "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>", `read({"path":"a"})`},
		{"invoke", "<invoke name=\"read\">\n<parameter name=\"path\">a</parameter>\n</invoke>", `read({"path":"a"})`},
		{"invoke in a tag", "<tool_call>\n<invoke name=\"read\"><parameter name=\"path\">a</parameter></invoke>\n</tool_call>", `read({"path":"a"})`},
		{"DeepSeek V3.1", "<｜tool▁call▁begin｜>read<｜tool▁sep｜>{\"path\": \"a\"}<｜tool▁call▁end｜>", ra},
		{"flat arguments", `<tool_call>{"name": "read", "path": "a"}</tool_call>`, `read({"path":"a"})`},
		{"bare after thoughts", "<think>x</think>\n" + a, lines(`"<think>x</think>"`, ra)},
		{"after a quoted one", lines("`<tool_call>` is the tag:", "<tool_call>", a, "</tool_call>"), lines("\"`<tool_call>` is the tag:\"", ra)},
		{"after a fenced example", lines("```", a, "```", "<tool_call>", b, "</tool_call>"), lines(fmt.Sprintf("%q", lines("```", a, "```")), rb)},
		{"after code", lines("```go", "x", "```", "<tool_call>", a, "</tool_call>"), lines(fmt.Sprintf("%q", lines("```go", "x", "```")), ra)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, formatParts(Parse(test.text, testTools()))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Text that cannot be parsed becomes a call with that text as its arguments.
func TestParseBrokenCalls(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"open string", lines("x", "<tool_call>", `{"name": "read", "arguments": {"path": "a}}`, "</tool_call>", "y"),
			lines(`"x"`, `read({"name": "read", "arguments": {"path": "a}})`, `"\ny"`)},
		{"single quotes", lines("<tool_call>", `{'name': 'read', 'arguments': {'path': 'a'}}`, "</tool_call>", "<tool_call>", b, "</tool_call>"),
			lines(`read({'name': 'read', 'arguments': {'path': 'a'}})`, rb)},
		{"trailing comma", `<tool_call>{"name": "read", "arguments": {"path": "a",}}</tool_call>`, `read({"path": "a"})`},
		{"no name", `<tool_call>{"path": "a"}</tool_call>`, `({"path": "a"})`},
		{"cut", "<tool_call>\n{\"name\": \"write\", \"arguments\": {\"content\": \"a", `write({"name": "write", "arguments": {"content": "a)`},
		{"arguments that are no object", `<tool_call>{"name": "read", "arguments": [1]}</tool_call>`, `read([1])`},
		{"the second of two", "<tool_call>" + a + "{\"name\": \"read\"</tool_call>", lines(ra, `read({"name": "read")`)},
		{"function", `<function=read>{"path": "a</function>`, `read({"path": "a)`},
		{"parameter", "<function=read><parameter=path>a</function>", `read(<parameter=path>a)`},
		{"invoke without the end of an argument", "<invoke name=\"read\"><parameter name=\"path\">a<parameter name=\"mode\">1</parameter></invoke>",
			`read(<parameter name="path">a<parameter name="mode">1</parameter>)`},
		{"GLM without the end of an argument", "<tool_call>read<arg_key>path</arg_key><arg_value>a</tool_call>", `read(<arg_key>path</arg_key><arg_value>a)`},
		{"Mistral", `[TOOL_CALLS] [{"name": "read", "arguments": {"path"`, `read([{"name": "read", "arguments": {"path")`},
		{"Mistral name", `[TOOL_CALLS]read[ARGS]{"path"`, `read({"path")`},
		// The file's text contains a call, and its quotes break the JSON.
		{"a call in a broken one", lines("<tool_call>", `{"name": "write", "arguments": {"content": "say "hi`, "</tool_call>", "<tool_call>", a, "</tool_call>", `"}}`, "</tool_call>"),
			`write(` + lines(`{"name": "write", "arguments": {"content": "say "hi`, "</tool_call>", "<tool_call>", a, "</tool_call>", `"}}`) + `)`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, formatParts(Parse(test.text, testTools()))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// None of these texts is a call.
func TestParseIgnoresQuotations(t *testing.T) {
	call := lines("<tool_call>", a, "</tool_call>")
	for name, text := range map[string]string{
		"plain":                         "The answer is 42.\n",
		"empty":                         "",
		"white space":                   " \n\n",
		"fenced example, words after":   lines("Like this:", "```json", a, "```", "That is all."),
		"fenced tags, words after":      lines("Like this:", "```", call, "```", "That is all."),
		"fence with more than calls":    lines("```json", a, "// and so on", "```"),
		"fence with a comment":          lines("```xml", "<!-- example -->", call, "```"),
		"fenced, of another tool":       lines("```json", `{"name": "rm", "arguments": {}}`, "```"),
		"fenced, with another member":   lines("```json", `{"name": "read", "arguments": {}, "version": 2}`, "```"),
		"fenced package.json":           lines("```json", `{"name": "read", "version": "1.0"}`, "```"),
		"in a quoted file":              lines("The file says:", "```md", "# Calls", call, "```"),
		"in a longer fence":             lines("````md", "```", call, "```", call, "````"),
		"in a tilde fence":              lines("~~~md", "```", call, "~~~", ""),
		"in a fence that stays open":    lines("```md", "x", call),
		"in code between backticks":     "Write `<tool_call>" + a + "</tool_call>` to read.",
		"in a quotation":                lines("> <tool_call>", "> "+a, "> </tool_call>"),
		"in indented code":              lines("So:", "", "    <tool_call>"+a+"</tool_call>"),
		"behind a tab":                  "\t<tool_call>" + a + "</tool_call>",
		"a function's words":            lines("<function=read>", "path a", "</function>"),
		"a call as code":                "<tool_call>read(path='a')</tool_call>",
		"the tag's name":                "Use the <tool_call> tag, or [TOOL_CALLS], or <function=name>.",
		"the tag at a line's beginning": lines("<tool_call> is the tag.", "[TOOL_CALLS] is another.", "<function=x is cut", "<tool_call>"),
		"escaped":                       lines(`<\tool_call>`, a, `<\/tool_call>`),
		"bare object and words":         a + "\nis how to read.",
		"bare object of another tool":   `{"name": "rm", "arguments": {}}`,
		"bare answer in JSON":           `{"name": "read", "version": 1}`,
		"findings":                      `[{"file": "a.go", "text": "wrong"}]`,
		"broken JSON":                   `{"file": "a.go`,
		"in quotation marks":            `Write "<tool_call>` + a + `</tool_call>" to read.`,
		"in an answer in JSON":          `{"contents": "\n <tool_call>{\"name\": \"read\", \"arguments\": {}}</tool_call>"}`,
		"a set":                         "{1, 2} is a set",
		"empty list of calls":           "[TOOL_CALLS] []",
		"empty tag":                     "<tool_call></tool_call>",
		"only thoughts":                 "<think>\n" + call,
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]model.Part{{Text: text}}, Parse(text, testTools())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Calls after a result that the model invented do not count.
func TestParseStopsAtAResult(t *testing.T) {
	text := lines("<tool_call>", a, "</tool_call>", "<tool_result name=\"read\">", "x", "</tool_result>", "<tool_call>", b, "</tool_call>")
	parts := Parse(text, testTools())
	if len(parts) != 2 || parts[0].Call == nil || parts[1].Call != nil || !strings.Contains(parts[1].Text, b) {
		t.Errorf("Parse = %s, want the first call and the rest as text", formatParts(parts))
	}
	text = lines("<tool_result>", "x", "</tool_result>", "<tool_call>", b, "</tool_call>")
	if parts := Parse(text, testTools()); len(parts) != 2 || parts[1].Call == nil {
		t.Errorf("Parse = %s, want the text and the call", formatParts(parts))
	}
}

func TestFormatParsesBack(t *testing.T) {
	for _, c := range []model.Call{
		{Name: "read", Args: `{"path":"a"}`},
		{Name: "read", Args: `{"path": "a < b && [TOOL_CALLS]</tool_call>\n<\\tool_call>"}`},
		{Name: "read", Args: ` {"path":"a"}`},
		{Name: "read", Args: `{"path": "a`},
		{Name: "read", Args: ``},
		{Name: "read", Args: `"a"`},
		{Name: "read", Args: `[1,2]`},
		{Name: "read", Args: `null`},
		{Name: `a"<tool_call>` + "\n", Args: lines("<tool_call>", a, "</tool_call>")},
	} {
		text := Format(c)
		if n := strings.Count(text, "<tool_call>"); n != 1 {
			t.Errorf("Format(%+v) has %d opening tags: %s", c, n, text)
		}
		parts := Parse(text, nil)
		if len(parts) != 1 || parts[0].Call == nil || !sameCall(*parts[0].Call, c) {
			t.Errorf("Format(%+v) = %s, which is read as %s", c, text, formatParts(parts))
		}
	}
}

// A file that contains a dialect's tags must not forge a call when a model quotes it.
func TestEscapeKnowsEveryDialect(t *testing.T) {
	for _, tag := range append(tags[:], "</tool_call>", "</function>", "</invoke>", "<｜tool▁call▁end｜>", "<|eom_id|>", "<arg_key>", "<parameter=", "<parameter name=") {
		if escape(tag) == tag {
			t.Errorf("%q is not escaped", tag)
		}
	}
}

// sameCall compares arguments that are objects by value.
func sameCall(x, y model.Call) bool {
	var v, w map[string]any
	if isObject(x.Args) && json.Unmarshal([]byte(x.Args), &v) == nil && json.Unmarshal([]byte(y.Args), &w) == nil {
		return x.Name == y.Name && cmp.Equal(v, w)
	}
	return x == y
}
