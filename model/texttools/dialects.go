package texttools

import (
	"encoding/json"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
	"hone/internal/reply"
	"hone/model"
)

// dialect is a form of calls in tags. Between the tags are JSON values; after a name
// one JSON object with the arguments, or arguments in tags.
type dialect struct {
	open      string
	head      *lazyregexp.Regexp // what must follow open: the name is the first group, and the arguments begin at the second; nil without a name
	arguments *argumentTags      // nil if arguments are JSON only
	close     string             // empty if there is none
	strict    bool               // there is no call without the closing tag, and no value contains the opening tag of an argument
}

// argumentTags are the tags around an argument's name and its value.
type argumentTags struct {
	open string
	head *lazyregexp.Regexp // what must follow open: the name is the group, and the value begins after it
	end  *lazyregexp.Regexp // the closing tag is the group: another argument follows it, or the end of the call or of the text
}

const toolName = `([\w.:/-]+)`

var (
	glmArguments = argumentTags{"<arg_key>", lazyregexp.New(`^([^<]+)</arg_key>\s*<arg_value>`),
		lazyregexp.New(`(</arg_value>)\s*(?:<arg_key>|</tool_call>|\z)`)}
	qwenArguments = argumentTags{"<parameter=", lazyregexp.New(`^` + toolName + `>\n?`),
		lazyregexp.New(`(\n?</parameter>)\s*(?:<parameter=|</function>|</tool_call>|\z)`)}
	anthropicArguments = argumentTags{`<parameter name="`, lazyregexp.New(`^([^"\n]+)"[^<>\n]*>\n?`),
		lazyregexp.New(`(\n?</parameter>)\s*(?:<parameter name="|</invoke>|\z)`)}
)

// dialects are all forms of calls in tags. The first that fits counts.
var dialects = [...]dialect{
	// GLM
	{open: "<tool_call>", head: lazyregexp.New(`^\s*` + toolName + `\s*()<arg_key>`), arguments: &glmArguments, close: "</tool_call>", strict: true},
	// Hermes, Qwen, SmolLM and others
	{open: "<tool_call>", close: "</tool_call>"},
	{open: "<tool_calls>", close: "</tool_calls>"},
	{open: "<function_call>", close: "</function_call>"},
	// Llama 3; Llama 3.1, Qwen3-Coder
	{open: "<|python_tag|>", close: "<|eom_id|>"},
	{open: "<function=", head: lazyregexp.New(`^` + toolName + `>()`), arguments: &qwenArguments, close: "</function>"},
	// Anthropic
	{open: `<invoke name="`, head: lazyregexp.New(`^` + toolName + `"[^<>\n]*>()`), arguments: &anthropicArguments, close: "</invoke>", strict: true},
	// DeepSeek V3 and R1; V3.1
	{open: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", head: lazyregexp.New(`^\s*` + toolName + `[ \r]*\n()`), close: "<｜tool▁call▁end｜>", strict: true},
	{open: "<｜tool▁call▁begin｜>", head: lazyregexp.New(`^\s*` + toolName + `\s*<｜tool▁sep｜>()`), close: "<｜tool▁call▁end｜>", strict: true},
	// Mistral
	{open: "[TOOL_CALLS]", head: lazyregexp.New(`^\s*` + toolName + `\s*(?:\[CALL_ID\]\s*[\w.:/-]+\s*)?(?:\[ARGS\]\s*)?()\{`)},
	{open: "[TOOL_CALLS]"},
}

// opensCall reports whether s begins with a tag that may open a call.
func opensCall(s string) bool {
	return slices.ContainsFunc(dialects[:], func(d dialect) bool { return strings.HasPrefix(s, d.open) })
}

// opensJSON reports whether s begins with an object or a list.
func opensJSON(s string) bool {
	return s != "" && (s[0] == '{' || s[0] == '[') && !opensCall(s)
}

// dialectOf returns the dialect of the tag at the beginning of s, the tool's name if
// it has one, and what follows them.
func dialectOf(s string) (d dialect, name, inside string, ok bool) {
	for _, d := range dialects {
		rest, ok := strings.CutPrefix(s, d.open)
		if ok && d.head == nil {
			return d, "", rest, true
		}
		if !ok {
			continue
		}
		if m := d.head.FindStringSubmatchIndex(rest); m != nil {
			return d, rest[m[2]:m[3]], rest[m[4]:], true
		}
	}
	return d, "", "", false
}

// reader reads calls. All strings that its methods take and return as the rest are
// ends of its text.
type reader struct {
	text  string
	tools []model.Spec
	lasts map[string]int // last position of each closing tag
}

func newReader(text string, tools []model.Spec) *reader {
	return &reader{text: text, tools: tools, lasts: map[string]int{}}
}

// last returns the position of the last closing tag in s, an end of the text;
// negative if there is none.
func (r *reader) last(s, closing string) int {
	at, ok := r.lasts[closing]
	if !ok {
		at = strings.LastIndex(r.text, closing)
		r.lasts[closing] = at
	}
	return at - (len(r.text) - len(s))
}

func (r *reader) offers(name string) bool {
	return slices.ContainsFunc(r.tools, func(t model.Spec) bool { return t.Name == name })
}

// found is what was read at a place.
type found struct {
	text     string // the visible text inside
	calls    []call
	rest     string // what follows
	envelope bool   // the calls are members of an object with text; what follows it is text
	broken   bool   // the last call cannot be read
}

func one(name, args, rest string) found {
	return found{calls: []call{{Call: model.Call{Name: name, Args: args}}}, rest: rest}
}

func (f found) parts() []model.Part {
	parts := appendText(nil, f.text)
	for _, c := range f.calls {
		parts = append(parts, model.Part{Call: &c.Call})
	}
	return parts
}

// insideFence matches the beginning of a fence around the contents of a tag.
var insideFence = lazyregexp.New("^```[a-z]*\\s*\n\\s*")

// tagged reads the calls at a tag. If there are words before it in its line,
// it must be closed.
func (r *reader) tagged(s string, words bool) (found, bool) {
	d, name, inside, ok := dialectOf(s)
	closed := d.close == "" || r.last(s, d.close) >= 0
	if !ok || !closed && (words || d.strict) {
		return found{}, false
	}
	inside = strings.TrimLeft(inside, space)
	if d.close != "" && (closed || name == "") {
		inside = inside[len(insideFence.FindString(inside)):]
	}
	switch {
	case opensJSON(inside) && (name == "" || inside[0] == '{'):
		return r.values(name, inside, d.close)
	case d.arguments != nil && strings.HasPrefix(inside, d.arguments.open):
		return r.arguments(d, name, inside)
	case name != "" && d.close != "" && strings.HasPrefix(inside, d.close):
		return one(name, "{}", inside[len(d.close):]), true
	case name == "" && d.close != "" && opensCall(inside):
		if inner, _, _, _ := dialectOf(inside); inner.head == nil || inner.close == "" {
			return found{}, false // it is a call of its own
		}
		f, ok := r.tagged(inside, false)
		f.rest = after(f.rest, d.close)
		return f, ok
	case !closed || d.close == "" || words && name == "":
		return found{}, false
	}
	return r.broken(name, inside, inside, d.close)
}

// values reads objects and lists; after a name, the object with the arguments.
func (r *reader) values(name, s, closing string) (all found, ok bool) {
	for opensJSON(s) {
		length := max(0, reply.ValueEnd(s))
		f, ok := r.decode(name, s[:length])
		if !ok {
			f, ok = r.broken(name, s, s[length:], closing)
			return found{text: all.text, calls: append(all.calls, f.calls...), rest: f.rest, broken: true}, ok
		}
		all.text += f.text
		all.calls = append(all.calls, f.calls...)
		all.rest, all.envelope = s[length:], f.envelope
		if name != "" || f.envelope {
			break
		}
		s = strings.TrimLeft(all.rest, separators)
	}
	all.rest = after(all.rest, closing)
	return all, len(all.calls) > 0 || all.text != ""
}

// separators are what models write between objects.
const separators = space + ",;"

// after returns what follows a closing tag at the beginning of s, before which there
// may be superfluous brackets; s if there is none.
func after(s, closing string) string {
	rest, ok := strings.CutPrefix(strings.TrimLeft(s, space+"}],;`"), closing)
	if closing == "" || !ok {
		return s
	}
	return rest
}

// broken returns one call for text that cannot be read. known is what follows it
// according to its brackets. If no closing tag is there, the call extends to the last
// closing tag or to the end of the text.
func (r *reader) broken(name, s, known, closing string) (found, bool) {
	raw, rest := s, ""
	if k := after(known, closing); len(known) < len(s) && len(k) < len(known) {
		raw, rest = s[:len(s)-len(k)-len(closing)], k
	} else if last := r.last(s, closing); last >= 0 {
		raw, rest = s[:last], s[last+len(closing):]
	}
	raw = strings.Trim(raw, space)
	f := one(name, raw, rest)
	if name == "" {
		f.calls[0] = r.guess(raw)
	}
	return f, raw != ""
}

// arguments reads the arguments in tags of a call.
func (r *reader) arguments(d dialect, name, s string) (found, bool) {
	var members []string
	rest := s
	for {
		head, isArgument := strings.CutPrefix(strings.TrimLeft(rest, space), d.arguments.open)
		if !isArgument {
			return one(name, "{"+strings.Join(members, ",")+"}", after(rest, d.close)), true
		}
		key := d.arguments.head.FindStringSubmatch(head)
		if key == nil {
			return r.broken(name, s, s, d.close)
		}
		value := head[len(key[0]):]
		end := d.arguments.end.FindStringSubmatchIndex(value)
		if end == nil || d.strict && strings.Contains(value[:end[2]], d.arguments.open) {
			return r.broken(name, s, s, d.close)
		}
		members = append(members, encode(key[1])+":"+r.value(name, key[1], value[:end[2]]))
		rest = value[end[3]:]
	}
}

// value returns an argument's text as JSON: as it is if it is valid and the schema's
// type is not a string.
func (r *reader) value(tool, key, text string) string {
	var schema struct {
		Properties map[string]struct{ Type any }
	}
	for _, t := range r.tools {
		if t.Name != tool || json.Unmarshal(t.Schema, &schema) != nil {
			continue
		}
		if p, known := schema.Properties[key]; known && p.Type != "string" && json.Valid([]byte(text)) {
			return strings.Trim(text, space)
		}
	}
	return encode(text)
}
