package reply

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
	"hone/model"
)

// ToolName returns the offered tool that a name certainly means: the name itself,
// another case of it, or the name after a name space (functions.edit,
// default_api:edit), without a number or a marker after it (edit:0). Any other name
// is returned unchanged.
func ToolName(name string, offered []string) string {
	if slices.Contains(offered, name) {
		return name
	}
	short := base(name)
	for _, one := range offered {
		if strings.EqualFold(short, one) {
			return one
		}
	}
	return name
}

// base returns a name without its name space, and without a number or a marker after
// it.
func base(name string) string {
	short, _, _ := strings.Cut(strings.TrimSpace(name), "<|")
	short = strings.TrimRight(short, "0123456789")
	short = strings.TrimRight(short, ":.")
	return short[strings.LastIndexAny(short, ".:/")+1:]
}

// synonyms returns the names under which other programs offer similar tools.
func synonyms() map[string]string {
	return map[string]string{
		"edit":  "str_replace|str_replace_editor|str_replace_based_edit_tool|string_replace|replace|replace_in_file|search_replace|apply_patch|apply_diff|edit_file|multi_edit|multiedit|patch|update_file|modify_file|file_edit",
		"write": "write_file|create_file|write_to_file|create|save_file|file_write|new_file|overwrite",
		"read":  "read_file|view|view_file|open|open_file|cat|file_read|get_file|read_many_files|show_file",
		"bash":  "shell|exec|run|terminal|sh|execute|run_command|run_shell_command|execute_command|execute_bash|run_terminal_cmd|local_shell|exec_command|cmd",
		"grep":  "search|search_files|search_file_content|ripgrep|rg|grep_search|find_in_files|codebase_search|search_code",
		"glob":  "ls|list|list_dir|list_directory|list_files|find|find_files|file_search|find_path|tree",
	}
}

// CallHint returns how to call the offered tool that does what a tool of the name does
// in other programs; empty if none does.
func CallHint(name string, offered []model.Spec) string {
	for _, one := range offered {
		if isSynonym(name, one.Name) {
			return "use " + one.Name + " " + shape(one.Schema)
		}
	}
	return ""
}

// shape returns a schema's required members as JSON would show them, such as
// {"path": …, "edits": [{"oldText": …, "newText": …}]}.
func shape(schema json.RawMessage) string {
	var s struct {
		Type       string
		Required   []string
		Properties map[string]json.RawMessage
		Items      json.RawMessage
	}
	if json.Unmarshal(schema, &s) != nil {
		return "…"
	}
	switch s.Type {
	case "object":
		var members []string
		for _, name := range s.Required {
			members = append(members, fmt.Sprintf("%q: %s", name, shape(s.Properties[name])))
		}
		return "{" + strings.Join(members, ", ") + "}"
	case "array":
		return "[" + shape(s.Items) + "]"
	}
	return "…"
}

var (
	argumentFence = lazyregexp.New("(?s)^```[a-zA-Z]*\\s*\n(.*?)\\s*```$")
	argumentTail  = lazyregexp.New("^(?:\\s|[}\\]`;]|</?[a-z_|]+>|<\\|[a-zA-Z_|]+\\|?>)*$")
)

// Arguments returns the JSON object that the arguments of a call certainly mean: in
// a fence, encoded once more as a string, followed by a closing tag or superfluous
// brackets, or with faults that [Repair] removes. Empty arguments are an empty
// object. ok is false, and the text unchanged, if there is none.
func Arguments(args string) (object string, ok bool) {
	text := strings.TrimSpace(args)
	if text == "" || text == "null" {
		return "{}", true
	}
	if m := argumentFence.FindStringSubmatch(text); m != nil {
		text = strings.TrimSpace(m[1])
	}
	for range 2 {
		var inner string
		if text[0] != '"' || json.Unmarshal([]byte(text), &inner) != nil || strings.TrimSpace(inner) == "" {
			break
		}
		text = strings.TrimSpace(inner)
	}
	if text[0] != '{' {
		return args, false
	}
	end := ValueEnd(text)
	if end < 0 || !argumentTail.MatchString(text[end:]) {
		return args, false
	}
	if text == args && json.Valid([]byte(text)) {
		return args, true
	}
	fixed, ok := Repair(text[:end])
	if !ok {
		return args, false
	}
	return string(fixed), true
}

// CallExample is a call as text, in the form that models are told to write.
const CallExample = "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"README.md\"}}\n</tool_call>"

// written matches the beginning of a call that a model wrote as text.
var written = lazyregexp.New(`(?i)<\|?(?:tool_call|function_call|tool_calls|invoke|function|tool_use|python_tag)[\s>=|]|\[TOOL_CALLS\]|<｜tool▁calls?▁begin｜>|^Action(?: Input)?:\s|\*\*\* Begin Patch`)

var namedCall = lazyregexp.New(`"(?:name|tool|tool_name|function)":\s*"([^"\s]{1,60})"`)

func isSynonym(name, tool string) bool {
	return slices.Contains(strings.Split(synonyms()[tool], "|"), strings.ToLower(base(name)))
}

// WrittenCall reports whether a text contains what looks like a call of one of the
// tools, or of one with another program's name for it, written as text.
func WrittenCall(text string, tools []string) bool {
	if written.MatchString(text) {
		return true
	}
	return slices.ContainsFunc(namedCall.FindAllStringSubmatch(text, -1), func(m []string) bool {
		name := ToolName(m[1], tools)
		return slices.Contains(tools, name) || slices.ContainsFunc(tools, func(t string) bool { return isSynonym(name, t) })
	})
}
