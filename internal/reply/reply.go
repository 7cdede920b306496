// Package reply decides what a model plainly means by a reply, in one place for
// all loops, tools and providers (ruling G15).
//
//   - [Answer] removes reasoning, and [EndProblem] explains a reply that did not end
//     normally.
//   - [CheckContent] and [CheckEdit] check what a model wants to write to a file; [Style]
//     gives the text the file's line ends.
//   - [Object], [ToolName] and [Arguments] read JSON, names and arguments of tool
//     calls in the dialects of other programs.
//
// A reply with only one possible meaning is read; for any other, the error tells the
// model what to send instead. The functions keep no state and never panic.
package reply

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"hone/internal/lazyregexp"
	"hone/model"
)

// closing matches what ends a model's reasoning: the tags of DeepSeek, Qwen and
// most others, Magistral, Seed, Kimi, and the final channel of gpt-oss.
var closing = lazyregexp.New(`(?i)</think(?:ing)?>|</seed:think>|\[/THINK\]|◁/think▷|<\|channel\|>final<\|message\|>`)

// opening matches what begins it.
var opening = lazyregexp.New(`(?i)^(?:<think(?:ing)?>|<seed:think>|\[THINK\]|◁think▷|<\|channel\|>analysis<\|message\|>)`)

// Answer returns the part of a reply's text after its reasoning, which ends with
// the last tag such as </think>, whether or not it was opened. A tag between
// quotation marks does not count, and neither does one in a covered range of
// offsets: it is part of the answer, such as of a file. The ranges are in order.
// Reasoning that is not closed has no answer: it is empty.
func Answer(text string, covered [][2]int) string {
	for _, tag := range slices.Backward(closing.FindAllStringIndex(text, -1)) {
		at, end := tag[0], tag[1]
		quoted := at > 0 && end < len(text) && text[at-1] == text[end] && strings.IndexByte("\"'`", text[end]) >= 0
		if !quoted && !inRanges(covered, at) {
			text = text[end:]
			break
		}
	}
	if opening.MatchString(strings.TrimSpace(text)) {
		return ""
	}
	return text
}

// The ranges are in order.
func inRanges(ranges [][2]int, at int) bool {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i][1] > at })
	return i < len(ranges) && ranges[i][0] <= at
}

// EndProblem explains why a reply that did not end normally is not used (ruling G3),
// and what to send instead. It is empty for a reply that ended normally.
func EndProblem(r model.Reply) string {
	switch {
	case r.Finish.Normal():
		return ""
	case r.Finish == model.Length:
		return "it reached the output limit. Make a smaller change in one reply, and leave out files that stay as they are"
	case r.Detail == "" || r.Detail == string(r.Finish):
		return fmt.Sprintf("it did not end normally (%s). Send the complete reply again", r.Finish)
	}
	return fmt.Sprintf("it did not end normally (%s: %s). Send the complete reply again", r.Finish, r.Detail)
}

// Unquoted returns a path without a pair of backticks around it.
func Unquoted(name string) string {
	if len(name) > 2 && name[0] == '`' && name[len(name)-1] == '`' && strings.Count(name, "`") == 2 {
		return strings.TrimSpace(name[1 : len(name)-1])
	}
	return name
}

// Call is a tool call as the model certainly meant it.
type Call struct {
	model.Call // with the name of an offered tool and valid JSON, unless there is a problem
	// Key is equal for calls of the same name with equal arguments.
	Key string
	// Problem tells the model why the call has no such meaning; empty if it has one.
	Problem string
}

// MaxName limits how much of a tool's name is repeated, in bytes: a model can call a name of
// any length.
const MaxName = 100

// ReadCall reads a tool call that a model made.
func ReadCall(call model.Call, offered []model.Spec) Call {
	names, args := namesOf(offered), call.Args
	call.Name = ToolName(call.Name, names)
	call.Args, _ = Arguments(args)
	c := Call{Call: call, Key: Key(call.Name, call.Args)}
	var v any
	if err := json.Unmarshal([]byte(call.Args), &v); err != nil {
		c.Problem = fmt.Sprintf("the arguments are not JSON: %s. They were: %s", err, Shorten(call.Args, 500))
	}
	if key, twice := RepeatedKey(json.RawMessage(call.Args)); twice {
		c.Problem = fmt.Sprintf("the arguments have the key %q twice", Shorten(key, MaxName))
	}
	if !slices.Contains(names, call.Name) {
		hint := "there are: " + strings.Join(names, ", ")
		if at := slices.IndexFunc(names, func(name string) bool { return isSynonym(call.Name, name) }); at >= 0 {
			hint = "use " + names[at] // the model has its schema
		}
		c.Problem = fmt.Sprintf("there is no tool %q; %s", Shorten(call.Name, MaxName), hint)
	}
	return c
}

func namesOf(offered []model.Spec) (names []string) {
	for _, one := range offered {
		names = append(names, one.Name)
	}
	return names
}

// Key returns a text that is equal for calls of the same name with equal arguments. Numbers stay
// as they are written: as float64, long ones would become equal.
func Key(name, args string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	if d.Decode(&v) == nil {
		if b, err := json.Marshal(v); err == nil {
			args = string(b)
		}
	}
	return name + "\x00" + args
}

// Shorten returns a text of at most so many bytes, without its middle if it is longer.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2]+" … "+text[len(text)-most/2:], "")
}

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

// PlainName returns the name of an argument in lower case, without underscores and hyphens.
func PlainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// IsRemark reports whether an unknown member of an object only explains it, or asks for
// what is done anyway.
func IsRemark(name string, value any) bool {
	switch PlainName(name) {
	case "explanation", "reason", "reasoning", "description", "thought", "thoughts", "comment", "rationale", "instruction", "instructions", "summary", "title", "securityrisk", "toolname":
		return true
	case "encoding":
		text, _ := value.(string)
		return slices.Contains([]string{"utf8", "text", "plain", "none"}, PlainName(text))
	case "replaceall", "allowmultiple", "createdirs":
		return value == false || PlainName(name) == "createdirs"
	case "expectedreplacements":
		return value == 1.0
	}
	return false
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

// In what looks like a call, a name stands before, after or between the signs of one. The groups are names.
var (
	// namedCall matches a call with the name in a member of JSON, in an attribute, or in a special token's text.
	namedCall = lazyregexp.New(`["'](?:name|tool|tool_name|function|recipient_name|action)["']:\s*["']([^"'\s]{1,60})["']|<[^<>\n]{0,60}\bname=["']([^"'\s<>]{1,60})["']|` +
		`<[|｜][^<>\n]{1,40}[|｜]>\s*(?:to=)?([\w.:/-]{1,60})|\bto=([\w.:/-]{1,60})|(?m)^(?:>>>\s*|Action:\s*)([\w.:/-]{1,60})\s*$`)
	// ownCall matches a call in which the name itself is the sign: a tag with arguments in it, a function with
	// named arguments, or a name before an object.
	ownCall = lazyregexp.New(`<([\w.-]{1,60})>\s*(?:\{\s*"|<\w+>)|\b([\w.-]{1,60})\(\s*\w+\s*=\s*['"\[{\d]|(?m)^\W{0,4}([\w.:/-]{1,60})\s*\{\s*"`)
)

func isSynonym(name, tool string) bool {
	return slices.Contains(strings.Split(synonyms()[tool], "|"), strings.ToLower(base(name)))
}

// WrittenCall reports whether a text contains what looks like a call of one of the
// tools, or of one with another program's name for it, written as text in whatever
// form. named reports whether the name of the tool is in it: without it, the text
// may only speak of calls.
func WrittenCall(text string, offered []model.Spec) (found, named bool) {
	tools := namesOf(offered)
	means := func(forms *lazyregexp.Regexp, synonym func(string) bool) bool {
		return slices.ContainsFunc(forms.FindAllStringSubmatch(text, -1), func(m []string) bool {
			name := strings.Join(m[1:], "") // the other groups are empty
			if slices.Contains(tools, ToolName(name, tools)) {
				return true
			}
			return synonym(name) && slices.ContainsFunc(tools, func(tool string) bool { return isSynonym(name, tool) })
		})
	}
	named = means(namedCall, func(string) bool { return true }) ||
		means(ownCall, func(name string) bool { return strings.Contains(name, "_") }) // other words are in any program
	return named || written.MatchString(text), named
}
