package texttools

import (
	"encoding/json"
	"regexp"
	"strings"

	"hone/model"
)

// object is a call as an object says it.
type object struct {
	model.Call
	exact bool // it has arguments, and no member that a call has not
}

func nameMembers() []string { return []string{"name", "tool", "tool_name", "function"} }

func argumentMembers() []string { return []string{"arguments", "parameters", "args", "input"} }

// callHead is how an object begins that is meant to be a call.
var callHead = regexp.MustCompile(
	`^[\[\s]*\{\s*"(?:name|tool|tool_name|function)"\s*:\s*"([^"\\]+)"\s*,\s*"(?:arguments|parameters|args|input)"\s*:`)

// nameMember is a call's name in an object that is no JSON.
var nameMember = regexp.MustCompile(`['"]?\b(?:name|tool|tool_name|function)['"]?\s*[:=]\s*['"]([^'"\\\n]+)['"]`)

// envelopeHead is how CodeScribe's object begins.
var envelopeHead = regexp.MustCompile(`^\{\s*(?:"text"|"tool_calls"\s*:\s*\[)`)

// callList is the list in such an object that is no JSON.
var callList = regexp.MustCompile(`"tool_calls"\s*:\s*\[\s*\{`)

// valueEnd is the length of the JSON object or list that s begins with, by
// its brackets and strings alone; -1 where it does not end.
func valueEnd(s string) int {
	depth, inString := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
	return -1
}

// decode reads the call that raw is, or the list of them.
func decode(raw string) ([]object, bool) {
	value, ok := mend(raw)
	if !ok {
		return nil, false
	}
	elements := []json.RawMessage{value}
	if value[0] == '[' {
		// What is valid can be decoded as what it begins as.
		_ = json.Unmarshal(value, &elements)
	}
	calls := make([]object, len(elements))
	for i, e := range elements {
		if calls[i], ok = decodeObject(e); !ok {
			return nil, false
		}
	}
	return calls, true
}

// mend is raw, with the control characters in its strings escaped if it is
// JSON only then: models forget that in a file's text, and nothing else can
// be meant by them.
func mend(raw string) (json.RawMessage, bool) {
	if json.Valid([]byte(raw)) {
		return json.RawMessage(raw), true
	}
	var b strings.Builder
	inString := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case inString && c == '\\' && i+1 < len(raw):
			b.WriteByte(c)
			i++
			c = raw[i]
		case c == '"':
			inString = !inString
		}
		if inString && c < ' ' {
			// Any string can be encoded.
			escaped, _ := json.Marshal(string(rune(c)))
			b.Write(escaped[1 : len(escaped)-1])
			continue
		}
		b.WriteByte(c)
	}
	return json.RawMessage(b.String()), json.Valid([]byte(b.String()))
}

// decodeObject reads one call. OpenAI's form, with both members in an object
// named function, is read too.
func decodeObject(raw json.RawMessage) (object, bool) {
	members, ok := membersOf(raw)
	if !ok {
		return object{}, false
	}
	if inner, ok := membersOf(members["function"]); ok {
		members = inner
	}
	var c object
	for _, m := range nameMembers() {
		if c.Name == "" {
			c.Name, _ = stringOf(members[m])
		}
	}
	known := 0
	for _, m := range append(nameMembers(), "id", "call_id", "type") {
		if _, ok := members[m]; ok {
			known++
		}
	}
	c.Args = "{}"
	for _, m := range argumentMembers() {
		if value, ok := members[m]; ok {
			c.Args, c.exact = argumentText(value), len(members) == known+1
			break
		}
	}
	return c, c.Name != ""
}

// argumentText is the text of the arguments, which some models write into a
// string as OpenAI's wire does.
func argumentText(value json.RawMessage) string {
	if s, ok := stringOf(value); ok {
		return s
	}
	if string(value) == "null" {
		return "{}"
	}
	return string(value)
}

func membersOf(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var members map[string]json.RawMessage
	ok := json.Unmarshal(raw, &members) == nil && members != nil
	return members, ok
}

func stringOf(raw json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// envelope reads an object with "text" and "tool_calls".
func (r *reader) envelope() (span, bool) {
	text := r.text[r.pos:]
	if !envelopeHead.MatchString(text) {
		return span{}, false
	}
	end := valueEnd(text)
	if end < 0 {
		return r.brokenEnvelope(text)
	}
	value, ok := mend(text[:end])
	if !ok {
		return r.brokenEnvelope(text)
	}
	members, _ := membersOf(value)
	var list []json.RawMessage
	words, _ := stringOf(members["text"])
	if raw, ok := members["tool_calls"]; !ok || json.Unmarshal(raw, &list) != nil || len(list) == 0 && words == "" {
		return span{}, false
	}
	s := span{from: r.pos, to: r.pos + end, words: words}
	for _, raw := range list {
		c, ok := decodeObject(raw)
		if !ok {
			c.Call = model.Call{Name: r.guess(string(raw)), Args: string(raw)}
		}
		s.calls = append(s.calls, c.Call)
	}
	return s, true
}

func (r *reader) brokenEnvelope(text string) (span, bool) {
	at := callList.FindStringIndex(text)
	if at == nil {
		return span{}, false
	}
	c := model.Call{Name: r.guess(text[at[0]:]), Args: strings.Trim(text, space)}
	return span{from: r.pos, to: len(r.text), calls: []model.Call{c}}, true
}

// guess is the name that a call seems to have; empty where none is to be seen.
func (r *reader) guess(raw string) string {
	const near = 4096 // further in, it is a name in some file's text
	raw = raw[:min(near, len(raw))]
	if m := nameMember.FindStringSubmatch(raw); m != nil {
		return m[1]
	}
	raw = strings.TrimLeft(raw, space)
	word := raw[:len(raw)-len(strings.TrimLeft(raw, wordBytes))]
	if r.offers(word) {
		return word
	}
	return ""
}

// wordBytes are those of a tool's name.
const wordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/"
