package texttools

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
	"hone/internal/reply"
	"hone/model"
)

// tags begin a call; head says whether one does.
var tags = [...]string{"<tool_call>", "<tool_calls>", "<function_call>", "<function=", `<invoke name="`, "<|python_tag|>", "[TOOL_CALLS]", "<｜tool▁call▁begin｜>"}

const toolName = `([\w.:/-]{1,100})`

var (
	// head matches a call in tags up to its arguments, which the last group begins; the other groups are the call's name, of
	// which at most one is not empty. Without a name, the arguments are calls in JSON.
	head = lazyregexp.New(`^(?:` +
		`(?:<(?:tool_calls?|function_call|\|python_tag\|)>\s*)?<(?:function=` + toolName + `|invoke name="` + toolName + `"[^<>\n]*)>` + // Llama 3.1, Qwen3-Coder; Anthropic
		`|<tool_call>\s*` + toolName + // GLM
		`|<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?\s*` + toolName + `\s*(?:<｜tool▁sep｜>|\n)` + // DeepSeek V3 and R1; V3.1
		`|\[TOOL_CALLS\]\s*` + toolName + `\s*(?:\[CALL_ID\]\s*[\w.:/-]+\s*)?(?:\[ARGS\])?` + // Mistral
		`|<(?:tool_calls?|function_call|\|python_tag\|)>|\[TOOL_CALLS\]` + // Hermes, Qwen, SmolLM and others; Llama 3; Mistral
		")\\s*(?:```[a-z]*\\s*\n\\s*)?([{\\[]|<(?:arg_key>|parameter(?:=| name=\"))|</)")
	// tail matches what may follow a call's arguments: superfluous brackets, and the tags that close it.
	tail    = lazyregexp.New("^(?:[\\s,;}\\]`]*" + closing + ")+")
	closers = lazyregexp.New(closing)
	// argument matches what must be between the opening tags of two arguments: the groups are the name and the value. lastArgument
	// matches the end of the last one, and what follows it begins with the group.
	argument     = lazyregexp.New(`(?s)^([^<>"\n]+)(?:"[^<>\n]*>\n?|>\n?|</arg_key>\s*<arg_value>)(.*?)(?:\n?</parameter>|</arg_value>)\s*$`)
	lastArgument = lazyregexp.New(`</(?:parameter|arg_value)>\s*(` + closing + `|$)`)
	// unreadable matches the requested tags around anything else than JSON.
	unreadable = lazyregexp.New(`^<tool_call>\s*\n\s*([^<]*[^<\s])\s*</tool_call>`)
	// nameMember matches a call's name in an object that is not valid JSON, or that of a function.
	nameMember = lazyregexp.New(`['"]?\b(?:name|tool|tool_name|function)['"]?\s*[:=]\s*['"]([^'"\\\n]+)['"]|^([\w.]+)\(`)

	// fence matches the line that opens a fenced block; the groups are the run that opens it.
	fence     = lazyregexp.New("^(?:(```+)[^`\n]*|(~~~+)[^\n]*)(?:\n|$)")
	quotation = lazyregexp.New(`^ *(?: {4}|\t|>)`) // a Markdown quotation, or indented like code
)

const closing = `(?:</(?:tool_calls?|function_call|function|invoke)>|<｜tool▁call▁end｜>|<\|eom_id\|>)`

// What is ignored around a call, and between calls.
const (
	space      = " \t\r\n"
	separators = space + ",;"
)

// reader reads calls. All strings that its methods take and return as the rest are ends of its text.
type reader struct {
	text  string
	tools []model.Spec
	last  int // where the last closing tag begins; -1 if there is none
}

// found is one or more calls.
type found struct {
	from  int // where they begin in the text
	calls []model.Call
	rest  string // what follows
}

// end is where what follows begins in the text.
func (f found) end(text string) int { return len(text) - len(f.rest) }

func newReader(text string, tools []model.Spec) reader {
	r := reader{text: text, tools: tools, last: -1}
	if all := closers.FindAllStringIndex(text, -1); all != nil {
		r.last = all[len(all)-1][0]
	}
	return r
}

// The calls of a text are in order. It takes linear time: a call without an end extends to the end of the text.
func find(text string, tools []model.Spec) (calls []found) {
	r := newReader(text, tools)
	var fenced []found // in blocks after which only such blocks follow
	begins := true
	for pos := reasoningEnd(text); pos < len(text); {
		end := lineEnd(text, pos)
		line := strings.TrimLeft(text[pos:end], space)
		at := end - len(line)
		if line == "" {
			pos = end
			continue
		}
		if begins && opensJSON(line) {
			if only, ok := r.onlyCalls(text[at:]); ok {
				return []found{{from: at, calls: only}}
			}
			if json.Valid([]byte(text[at:])) {
				return nil // an answer in JSON may contain anything in its strings
			}
		}
		begins = false
		if m := fence.FindStringSubmatch(text[at:]); m != nil {
			inside, rest := cutBlock(text[at+len(m[0]):], m[1]+m[2])
			pos = len(text) - len(rest)
			if only, ok := newReader(inside, tools).onlyCalls(inside); ok {
				fenced = append(fenced, found{at, only, rest})
				continue
			}
		} else if quotation.MatchString(text[pos:end]) {
			pos = end
		} else if len(calls)+len(fenced) > 0 && (strings.HasPrefix(line, "<tool_result") || strings.HasPrefix(line, "<tool_response")) {
			break
		} else {
			var more []found
			more, pos = r.line(pos)
			calls = append(calls, more...)
		}
		fenced = nil
	}
	if calls == nil {
		return fenced
	}
	return calls
}

func opensJSON(s string) bool {
	return s != "" && (s[0] == '{' || s[0] == '[') && !strings.HasPrefix(s, "[TOOL_CALLS]")
}

// run opened the block.
func cutBlock(s, run string) (inside, rest string) {
	for end := 0; end < len(s); {
		next := lineEnd(s, end)
		line := strings.Trim(s[end:next], space)
		if strings.HasPrefix(line, run) && strings.Trim(line, run[:1]) == "" {
			return s[:end], s[next:]
		}
		end = next
	}
	return s, ""
}

// The line feed is included.
func lineEnd(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// line reads to the end of a line, or of the line in which its last call ends.
func (r reader) line(pos int) (calls []found, end int) {
	for {
		i := strings.IndexAny(r.text[pos:], "`<[\n")
		if i < 0 {
			return calls, len(r.text)
		}
		at := pos + i
		pos = at + 1
		switch rest := r.text[at:]; {
		case rest[0] == '\n' || rest[0] == '`':
			return calls, lineEnd(r.text, at)
		case at > 0 && strings.IndexByte(`"'`, r.text[at-1]) >= 0: // quoted
		default:
			if f, ok := r.tagged(rest); ok {
				f.from = at
				calls, pos = append(calls, f), f.end(r.text)
			}
		}
	}
}

// onlyCalls returns the calls of a text that has nothing else, all of them of offered tools.
func (r reader) onlyCalls(s string) (all []model.Call, ok bool) {
	for s = strings.TrimLeft(s, space); s != ""; {
		f, ok := r.tagged(s)
		if opensJSON(s) {
			f, ok = r.values("", s, true)
		}
		if !ok || slices.ContainsFunc(f.calls, func(c model.Call) bool { return !r.offers(c.Name) }) {
			return nil, false
		}
		all = append(all, f.calls...)
		s = strings.TrimLeft(f.rest, separators)
	}
	return all, all != nil
}

func (r reader) offers(name string) bool {
	return slices.ContainsFunc(r.tools, func(t model.Spec) bool { return t.Name == name })
}

func (r reader) tagged(s string) (found, bool) {
	const longest = 1000 // of a head
	if !slices.ContainsFunc(tags[:], func(tag string) bool { return strings.HasPrefix(s, tag) }) {
		return found{}, false
	}
	m := head.FindStringSubmatch(s[:min(len(s), longest)])
	if m == nil {
		if at := unreadable.FindStringSubmatchIndex(s); at != nil {
			return r.broken("", s[at[2]:], at[3]-at[2]), true
		}
		return found{}, false
	}
	name, begin := cmp.Or(m[1:6]...), m[6]
	args := s[len(m[0])-len(begin):]
	switch {
	case begin == "</" && name == "", begin == "[" && name != "":
		return found{}, false
	case begin == "</":
		return found{calls: []model.Call{{Name: name, Args: "{}"}}, rest: args[len(tail.FindString(args)):]}, true
	case begin == "{" || begin == "[":
		return r.values(name, args, false)
	case name == "":
		return found{}, false
	}
	return r.arguments(name, args, begin)
}

// values reads JSON: the arguments, if there is a name, or calls. With certain, each call must have an object of arguments and no
// unknown members.
func (r reader) values(name, s string, certain bool) (all found, ok bool) {
	for opensJSON(s) && (name == "" || all.calls == nil) {
		length := max(0, reply.ValueEnd(s))
		value, valid := reply.Repair(s[:length])
		calls := []model.Call{{Name: name, Args: string(value)}}
		if valid && name == "" {
			calls, valid = callsIn(value, certain)
		}
		if !valid && certain {
			return found{}, false
		}
		if !valid {
			f := r.broken(name, s, length)
			return found{calls: append(all.calls, f.calls...), rest: f.rest}, true
		}
		closed := tail.FindString(s[length:])
		all = found{calls: append(all.calls, calls...), rest: s[length+len(closed):]}
		if closed != "" {
			break
		}
		s = strings.TrimLeft(all.rest, separators)
	}
	return all, all.calls != nil
}

// broken is a call that cannot be parsed: it ends where its value seems to, if the closing tag is there, or else at the last
// closing tag or at the end of the text.
func (r reader) broken(name, s string, length int) found {
	closed := tail.FindString(s[length:])
	if closed == "" {
		length = len(s)
		if last := r.last - (len(r.text) - len(s)); last >= 0 {
			length = last
		}
		closed = tail.FindString(s[length:])
	}
	raw := strings.Trim(s[:length], space)
	const far = 4096 // a name after that is probably in a file's text
	if m := nameMember.FindStringSubmatch(raw[:min(far, len(raw))]); m != nil && name == "" {
		name = m[1] + m[2]
	}
	return found{calls: []model.Call{{Name: name, Args: raw}}, rest: s[length+len(closed):]}
}

// arguments reads arguments in tags. The opening tag of an argument inside of a value makes the call unreadable.
func (r reader) arguments(name, s, open string) (found, bool) {
	end := lastArgument.FindStringSubmatchIndex(s)
	if end == nil {
		return r.broken(name, s, 0), true
	}
	var members []string
	for pair := range strings.SplitSeq(s[len(open):end[2]], open) {
		m := argument.FindStringSubmatch(pair)
		if m == nil {
			return r.broken(name, s, 0), true
		}
		members = append(members, encode(m[1])+":"+r.value(name, m[1], m[2]))
	}
	rest := s[end[2]:]
	return found{calls: []model.Call{{Name: name, Args: "{" + strings.Join(members, ",") + "}"}}, rest: rest[len(tail.FindString(rest)):]}, true
}

// The text stays as it is if it is valid JSON and the schema's type is not a string.
func (r reader) value(tool, key, text string) string {
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

// callsIn reads a call or a list of calls. The members of one may be in an object named function, as on OpenAI's wire, and the
// arguments in a string. Without a name, the arguments are the entire object.
func callsIn(value json.RawMessage, certain bool) (calls []model.Call, ok bool) {
	list := []json.RawMessage{value}
	if value[0] == '[' {
		_ = json.Unmarshal(value, &list) // it is valid
	}
	for _, raw := range list {
		var members, inner map[string]json.RawMessage
		_ = json.Unmarshal(raw, &members) // another value is not a call
		if json.Unmarshal(members["function"], &inner) == nil {
			members = inner
		}
		var c model.Call
		_ = json.Unmarshal(take(members, "name", "tool", "tool_name", "function"), &c.Name)
		take(members, "id", "call_id", "type")
		args := take(members, "arguments", "parameters", "args", "input")
		switch {
		case c.Name == "":
			return nil, false
		case args == nil:
			c.Args = encode(members)
		case string(args) == "null":
			c.Args = "{}"
		case json.Unmarshal(args, &c.Args) != nil:
			c.Args = string(args)
		}
		if certain && (args == nil || len(members) > 0 || !isObject(c.Args)) {
			return nil, false
		}
		calls = append(calls, c)
	}
	return calls, true
}

func take(members map[string]json.RawMessage, keys ...string) (value json.RawMessage) {
	for _, key := range keys {
		if value == nil {
			value = members[key]
		}
		delete(members, key)
	}
	return value
}

var callTag = lazyregexp.New(`</?(?:tool_call|function|parameter|invoke|arg_)`)

// A tag inside of a call, or of a reply in JSON, does not end the reasoning.
func reasoningEnd(text string) int {
	if json.Valid([]byte(text)) {
		return 0
	}
	var calls [][2]int
	tags := callTag.FindAllStringIndex(text, -1)
	for i := 1; i < len(tags); i++ {
		if from, to := tags[i-1][0], tags[i][0]; text[from+1] != '/' && text[to+1] == '/' {
			calls = append(calls, [2]int{from, to})
		}
	}
	return len(text) - len(reply.Answer(text, calls))
}
