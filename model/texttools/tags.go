package texttools

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
	"hone/internal/reply"
	"hone/model"
)

// tag is a pair of tags around calls in JSON.
type tag struct{ open, close string }

func tags() []tag {
	return []tag{
		{"<tool_call>", "</tool_call>"},
		{"<tool_calls>", "</tool_calls>"},
		{"<function_call>", "</function_call>"},
		{"<|python_tag|>", "<|eom_id|>"},
	}
}

const (
	mistral       = "[TOOL_CALLS]"
	openFunction  = "<function="
	closeFunction = "</function>"
	openParam     = "<parameter="
	closeParam    = "</parameter>"
	openInvoke    = `<invoke name="`
	closeInvoke   = "</invoke>"
	openNamed     = `<parameter name="`
)

// opensCall reports whether s begins with a tag that may open a call.
func opensCall(s string) bool {
	return strings.HasPrefix(s, mistral) || strings.HasPrefix(s, openFunction) || strings.HasPrefix(s, openInvoke) || strings.HasPrefix(s, deepseek) ||
		slices.ContainsFunc(tags(), func(t tag) bool { return strings.HasPrefix(s, t.open) })
}

// opensResult reports whether s begins with the tag of a tool's result.
func opensResult(s string) bool {
	return strings.HasPrefix(s, "<tool_result") || strings.HasPrefix(s, "<tool_response")
}

// tagged parses the calls at a tag. If there are words before it in its line,
// it must be closed.
func (r *reader) tagged(at int, words bool) (span, bool) {
	switch rest := r.text[at:]; {
	case strings.HasPrefix(rest, mistral):
		return r.mistralCall(at)
	case strings.HasPrefix(rest, deepseek):
		return r.deepseekCall(at)
	case strings.HasPrefix(rest, openInvoke):
		if r.last(closeInvoke) < at {
			return span{}, false
		}
		return r.invoke(at)
	case strings.HasPrefix(rest, openFunction):
		if words && r.last(closeFunction) < at {
			return span{}, false
		}
		return r.function(at)
	}
	for _, t := range tags() {
		if strings.HasPrefix(r.text[at:], t.open) {
			return r.pair(at, t, words)
		}
	}
	return span{}, false
}

// insideFence matches the beginning of a fence around the contents of a tag.
var insideFence = lazyregexp.New("^```[a-z]*\\s*\n\\s*")

// pair parses the text between two tags.
func (r *reader) pair(at int, t tag, words bool) (span, bool) {
	closed := r.last(t.close) > at
	if words && !closed {
		return span{}, false
	}
	begin := r.skip(at + len(t.open))
	begin += len(insideFence.FindString(r.text[begin:]))
	if opensCall(r.text[begin:]) && !strings.HasPrefix(r.text[begin:], openFunction) {
		return span{}, false // calls with tags of their own
	}
	switch rest := r.text[begin:]; {
	case strings.HasPrefix(rest, openFunction):
		s, ok := r.function(begin)
		s.from, s.to = at, r.past(s.to, t.close)
		return s, ok
	case rest != "" && (rest[0] == '{' || rest[0] == '['):
		return r.values(at, begin, t.close)
	case argKeys.MatchString(rest) && closed:
		return r.keyed(at, begin, t.close)
	case words || !closed:
		return span{}, false
	}
	return r.broken(at, begin, begin, t.close)
}

// values parses the objects and lists from begin on.
func (r *reader) values(from, begin int, closing string) (span, bool) {
	s := span{from: from}
	for {
		end := reply.ValueEnd(r.text[begin:])
		var calls []object
		ok := end >= 0
		if ok {
			calls, ok = decode(r.text[begin : begin+end])
		}
		if !ok {
			b, ok := r.broken(from, begin, max(begin, begin+end), closing)
			s.to, s.calls = b.to, append(s.calls, b.calls...)
			return s, ok || len(s.calls) > 0
		}
		for _, c := range calls {
			s.calls = append(s.calls, c.Call)
		}
		s.to = begin + end
		begin = r.skipSeparators(s.to)
		if begin == len(r.text) || r.text[begin] != '{' && r.text[begin] != '[' || strings.HasPrefix(r.text[begin:], mistral) {
			break
		}
	}
	s.to = r.close(s.to, closing)
	return s, len(s.calls) > 0
}

// close skips a closing tag and superfluous brackets before it.
func (r *reader) close(at int, closing string) int {
	i := len(r.text) - len(strings.TrimLeft(r.text[at:], space+"}],;`"))
	if closing != "" && strings.HasPrefix(r.text[i:], closing) {
		return i + len(closing)
	}
	return at
}

// broken returns one call for text that cannot be parsed. known is its end
// according to its brackets. If no closing tag follows there, the call extends
// to the last closing tag or to the end of the text.
func (r *reader) broken(from, begin, known int, closing string) (span, bool) {
	to := len(r.text)
	end := to
	if k := r.close(known, closing); known > begin && k > known {
		end, to = k-len(closing), k
	} else if last := r.last(closing); closing != "" && last >= begin {
		end, to = last, last+len(closing)
	}
	raw := strings.Trim(r.text[begin:end], space)
	return span{from: from, to: to, calls: []model.Call{{Name: r.guess(raw), Args: raw}}}, raw != ""
}

// mistralCall parses [TOOL_CALLS] with a list of calls, or with a name and its
// arguments.
func (r *reader) mistralCall(at int) (span, bool) {
	begin := r.skip(at + len(mistral))
	if begin < len(r.text) && (r.text[begin] == '[' || r.text[begin] == '{') && !strings.HasPrefix(r.text[begin:], mistral) {
		return r.values(at, begin, "")
	}
	name, next := r.word(begin)
	if id := r.past(next, "[CALL_ID]"); id > next {
		_, next = r.word(id)
	}
	args := r.skip(r.past(next, "[ARGS]"))
	if name == "" || args == len(r.text) || r.text[args] != '{' {
		return span{}, false
	}
	return r.callWithObject(at, name, args, "")
}

// word returns the name at a position, and its end.
func (r *reader) word(at int) (string, int) {
	end := len(r.text) - len(strings.TrimLeft(r.text[at:], wordBytes))
	return r.text[at:end], end
}

// callWithObject parses the arguments of the named call, an object at begin.
func (r *reader) callWithObject(from int, name string, begin int, closing string) (span, bool) {
	end := reply.ValueEnd(r.text[begin:])
	if end >= 0 {
		if args, ok := reply.Repair(r.text[begin : begin+end]); ok {
			c := model.Call{Name: name, Args: string(args)}
			return span{from: from, to: r.close(begin+end, closing), calls: []model.Call{c}}, true
		}
	}
	s, ok := r.broken(from, begin, max(begin, begin+end), closing)
	s.calls[0].Name = name
	return s, ok
}

// function parses <function=name> with an object or with parameters in tags.
func (r *reader) function(at int) (span, bool) {
	name, end := r.word(at + len(openFunction))
	if name == "" || !strings.HasPrefix(r.text[end:], ">") {
		return span{}, false
	}
	begin := r.skip(end + 1)
	switch rest := r.text[begin:]; {
	case strings.HasPrefix(rest, "{"):
		return r.callWithObject(at, name, begin, closeFunction)
	case strings.HasPrefix(rest, openParam):
		return r.parameters(at, name, begin)
	case strings.HasPrefix(rest, closeFunction):
		return span{from: at, to: begin + len(closeFunction), calls: []model.Call{{Name: name, Args: "{}"}}}, true
	case r.last(closeFunction) < begin:
		return span{}, false
	}
	s, ok := r.broken(at, begin, begin, closeFunction)
	s.calls[0].Name = name
	return s, ok
}

// invoke parses <invoke name="…"> with parameters in tags, as Anthropic's models write
// calls.
func (r *reader) invoke(at int) (span, bool) {
	end := at + strings.Index(r.text[at:], closeInvoke)
	text := r.text[at+len(openInvoke) : end]
	name, rest, ok := strings.Cut(text, `">`)
	if !ok || strings.Trim(name, wordBytes) != "" {
		return span{}, false
	}
	values := map[string]json.RawMessage{}
	for _, part := range strings.Split(rest, openNamed)[1:] {
		key, value, ok := strings.Cut(part, `">`)
		last := strings.LastIndex(value, closeParam)
		if !ok || last < 0 {
			return r.unreadable(at, end+len(closeInvoke), name)
		}
		value = strings.TrimSuffix(strings.TrimPrefix(value[:last], "\n"), "\n")
		values[key] = r.value(name, key, value)
	}
	return callSpan(at, end+len(closeInvoke), name, string(bytes.TrimSpace(encode(values))))
}

// argKeys matches a call of GLM's models: a name, and keys and values in tags.
var argKeys = lazyregexp.New(`^([A-Za-z0-9_.:-]+)\s*<arg_key>`)

// keyed parses such a call.
func (r *reader) keyed(at, begin int, closing string) (span, bool) {
	end := begin + strings.Index(r.text[begin:], closing)
	text := r.text[begin:end]
	name := argKeys.FindStringSubmatch(text)[1]
	values := map[string]json.RawMessage{}
	for _, part := range strings.Split(text, "<arg_key>")[1:] {
		key, value, ok := strings.Cut(part, "</arg_key>")
		value, isValue := strings.CutPrefix(strings.TrimLeft(value, space), "<arg_value>")
		last := strings.LastIndex(value, "</arg_value>")
		if !ok || !isValue || last < 0 {
			return r.unreadable(at, end+len(closing), name)
		}
		values[key] = r.value(name, key, value[:last])
	}
	return callSpan(at, end+len(closing), name, string(bytes.TrimSpace(encode(values))))
}

// The tags of DeepSeek's calls.
const (
	deepseek      = "<｜tool▁call▁begin｜>"
	deepseekSep   = "<｜tool▁sep｜>"
	deepseekClose = "<｜tool▁call▁end｜>"
)

// deepseekCall parses a name and an object, which may be in a fence.
func (r *reader) deepseekCall(at int) (span, bool) {
	if r.last(deepseekClose) < at {
		return span{}, false
	}
	text, _, closed := strings.Cut(r.text[at+len(deepseek):], deepseekClose)
	kind, rest, ok := strings.Cut(text, deepseekSep)
	if !closed || !ok {
		return span{}, false
	}
	end := at + len(deepseek) + len(text) + len(deepseekClose)
	name, args := strings.Trim(kind, space), strings.Trim(rest, space)
	if name == "function" {
		name, args, _ = strings.Cut(args, "\n")
	}
	object, ok := reply.Arguments(args)
	if !ok {
		return r.unreadable(at, end, name)
	}
	return callSpan(at, end, strings.Trim(name, space), object)
}

// unreadable returns a call with the model's text as its arguments.
func (r *reader) unreadable(from, to int, name string) (span, bool) {
	return callSpan(from, to, name, strings.Trim(r.text[from:to], space))
}

func callSpan(from, to int, name, args string) (span, bool) {
	return span{from: from, to: to, calls: []model.Call{{Name: name, Args: args}}}, true
}

// parameters parses parameters in tags. A value is JSON if the schema's type is
// not a string and it is valid.
func (r *reader) parameters(from int, name string, begin int) (span, bool) {
	var members []string
	at := begin
	for strings.HasPrefix(r.text[r.skip(at):], openParam) {
		key, end := r.word(r.skip(at) + len(openParam))
		to := -1
		if strings.HasPrefix(r.text[end:], ">") {
			to = r.parameterEnd(end + 1)
		}
		if to < 0 {
			s, ok := r.broken(from, begin, begin, closeFunction)
			s.calls[0].Name = name
			return s, ok
		}
		value := strings.TrimSuffix(strings.TrimPrefix(r.text[end+1:to], "\n"), "\n")
		members = append(members, string(compact(key))+":"+string(r.value(name, key, value)))
		at = to + len(closeParam)
	}
	c := model.Call{Name: name, Args: "{" + strings.Join(members, ",") + "}"}
	return span{from: from, to: r.past(at, closeFunction), calls: []model.Call{c}}, true
}

// parameterEnd returns the position of the closing tag that ends a value: the
// first before another parameter, the function's end or the end of the text.
func (r *reader) parameterEnd(at int) int {
	for {
		i := strings.Index(r.text[at:], closeParam)
		if i < 0 {
			return -1
		}
		rest := r.text[r.skip(at+i+len(closeParam)):]
		if rest == "" || strings.HasPrefix(rest, openParam) || strings.HasPrefix(rest, closeFunction) ||
			strings.HasPrefix(rest, tags()[0].close) {
			return at + i
		}
		at += i + len(closeParam)
	}
}

// value returns a parameter's text as JSON.
func (r *reader) value(tool, key, text string) json.RawMessage {
	i := slices.IndexFunc(r.tools, func(t model.Spec) bool { return t.Name == tool })
	if i >= 0 {
		var schema struct {
			Properties map[string]struct {
				Type any `json:"type"`
			} `json:"properties"`
		}
		err := json.Unmarshal(r.tools[i].Schema, &schema)
		p, known := schema.Properties[key]
		if err == nil && known && p.Type != "string" && json.Valid([]byte(text)) {
			return json.RawMessage(strings.Trim(text, space))
		}
	}
	return compact(text)
}

// compact returns a string as JSON without a line feed.
func compact(s string) json.RawMessage {
	return json.RawMessage(strings.TrimSuffix(string(encode(s)), "\n"))
}
