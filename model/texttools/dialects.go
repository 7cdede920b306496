package texttools

import (
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// dialect is a form of calls. Between its tags are JSON values; after a name, one
// JSON object with the arguments, or arguments in tags. The zero dialect is JSON
// without a tag, of which only what is a call beyond doubt counts.
type dialect struct {
	open      string
	head      *lazyregexp.Regexp // the beginning of a call with a name, which is the first group; the arguments begin at the second. nil without a name
	arguments *argumentTags      // nil if arguments are JSON only
	close     string             // empty if there is none
	strict    bool               // there is no call without the closing tag
}

// argumentTags are the tags around an argument's name and its value.
type argumentTags struct {
	open string
	pair *lazyregexp.Regexp // what must be between two opening tags: the name is the first group, and the value the second
	end  *lazyregexp.Regexp // the end of the last argument: the group is what follows it, the end of the call or of the text
}

const toolName = `([\w.:/-]+)`

var (
	glmArguments = argumentTags{"<arg_key>", lazyregexp.New(`(?s)^([^<]+)</arg_key>\s*<arg_value>(.*)</arg_value>\s*$`),
		lazyregexp.New(`</arg_value>\s*(</tool_call>|$)`)}
	qwenArguments = argumentTags{"<parameter=", lazyregexp.New(`(?s)^` + toolName + `>\n?(.*?)\n?</parameter>\s*$`),
		lazyregexp.New(`</parameter>\s*(</function>|</tool_call>|$)`)}
	anthropicArguments = argumentTags{`<parameter name="`, lazyregexp.New(`(?s)^([^"\n]+)"[^<>\n]*>\n?(.*?)\n?</parameter>\s*$`),
		lazyregexp.New(`</parameter>\s*(</invoke>|$)`)}
)

// Some models write a call in tags that has a name between the tags of another dialect.
const wrapper = `^(?:<(?:tool_calls?|function_call|\|python_tag\|)>\s*)?`

var wrapperEnd = lazyregexp.New(`^\s*</(?:tool_calls?|function_call)>`)

// dialects are all forms of calls in tags. The first that fits counts.
var dialects = [...]dialect{
	// GLM
	{open: "<tool_call>", head: lazyregexp.New(`^<tool_call>\s*` + toolName + `\s*()<arg_key>`), arguments: &glmArguments, close: "</tool_call>", strict: true},
	// Llama 3.1, Qwen3-Coder
	{open: "<function=", head: lazyregexp.New(wrapper + `<function=` + toolName + `>()`), arguments: &qwenArguments, close: "</function>"},
	// Anthropic
	{open: `<invoke name="`, head: lazyregexp.New(wrapper + `<invoke name="` + toolName + `"[^<>\n]*>()`), arguments: &anthropicArguments, close: "</invoke>", strict: true},
	// DeepSeek V3 and R1; V3.1
	{open: "<｜tool▁call▁begin｜>", head: lazyregexp.New(`^<｜tool▁call▁begin｜>function<｜tool▁sep｜>\s*` + toolName + `[ \r]*\n()`), close: "<｜tool▁call▁end｜>", strict: true},
	{open: "<｜tool▁call▁begin｜>", head: lazyregexp.New(`^<｜tool▁call▁begin｜>\s*` + toolName + `\s*<｜tool▁sep｜>()`), close: "<｜tool▁call▁end｜>", strict: true},
	// Mistral
	{open: "[TOOL_CALLS]", head: lazyregexp.New(`^\[TOOL_CALLS\]\s*` + toolName + `\s*(?:\[CALL_ID\]\s*[\w.:/-]+\s*)?(?:\[ARGS\]\s*)?()\{`)},
	{open: "[TOOL_CALLS]"},
	// Hermes, Qwen, SmolLM and others
	{open: "<tool_call>", close: "</tool_call>"},
	{open: "<tool_calls>", close: "</tool_calls>"},
	{open: "<function_call>", close: "</function_call>"},
	// Llama 3
	{open: "<|python_tag|>", close: "<|eom_id|>"},
}

func opensCall(s string) bool {
	return slices.ContainsFunc(dialects[:], func(d dialect) bool { return strings.HasPrefix(s, d.open) })
}

func opensJSON(s string) bool {
	return s != "" && (s[0] == '{' || s[0] == '[') && !opensCall(s)
}

func dialectOf(s string) (d dialect, name, inside string, ok bool) {
	for _, d := range dialects {
		if d.head == nil {
			if inside, ok := strings.CutPrefix(s, d.open); ok {
				return d, "", inside, true
			}
		} else if m := d.head.FindStringSubmatchIndex(s); m != nil {
			return d, s[m[2]:m[3]], s[m[4]:], true
		}
	}
	return dialect{}, "", "", false
}
